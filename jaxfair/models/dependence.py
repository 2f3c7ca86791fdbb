"""Which rows of a batch an output can depend on, read off the traced program.

Every value in a program on a batch of n rows is in one of four states: it does
not depend on the batch (None); it has one axis along which row i of the batch
alone decides the i-th part (the number of that axis); it mixes rows; or the
rule for its operation is not known. `axis_rules` maps the states of an
operation's inputs to its outputs'. Values are never looked at, so a proof holds
for all parameters and all data.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxfair.models import axis_rules


class Mixed(NamedTuple):
  """A value that depends on more than one row at a place; why."""

  reason: str


class Unknown(NamedTuple):
  """A value of which nothing can be said; why."""

  reason: str


State: TypeAlias = int | Mixed | Unknown | None


def analyse(function: Callable[..., Any], fixed: Any, rows: Any) -> State:
  """How `function(fixed, *rows)` depends on the rows.

  Args:
    function: maps fixed values and batches to arrays with the batch axis first.
    fixed: a tree of arrays or shapes that are not part of the batch.
    rows: a tuple of trees of arrays or shapes with the batch axis first.

  Returns:
    0 if output row i depends on input row i alone, None if on no row at all;
    otherwise `Mixed` or `Unknown` with the reason.
  """
  fixed = jax.tree.map(shape_of, fixed)
  rows = jax.tree.map(lambda leaf: shape_of(leaf, axis_rules.ROWS), rows)
  program = jax.make_jaxpr(function)(fixed, *rows)
  states: list[State] = [None] * len(jax.tree.leaves(fixed))
  states += [0] * len(jax.tree.leaves(rows))
  outputs = _run(program.jaxpr, states)
  for state, aval in zip(outputs, program.out_avals, strict=True):
    if state == 0 and aval.shape[0] != axis_rules.ROWS:
      return Unknown("the output has another number of rows than the batch")
    if isinstance(state, int) and state > 0:
      return Unknown(f"the output has its rows on axis {state}")
  return _worst(outputs)


def numbers(
  function: Callable[..., Any], fixed: Any, rows: Any, num_rows: int
) -> list[Any]:
  """The operations on a batch of that many rows, with the numbers in them.

  Programs whose operations and numbers agree for two sizes do not divide by
  the size of the batch, or the like.
  """
  rows = jax.tree.map(lambda leaf: shape_of(leaf, num_rows), rows)
  program = jax.make_jaxpr(function)(jax.tree.map(shape_of, fixed), *rows)
  return _numbers(program.jaxpr)


def shape_of(leaf: Any, num_rows: int | None = None) -> jax.ShapeDtypeStruct:
  """Shape and type of an array, with another number of rows if one is given."""
  shape = np.shape(leaf)
  dtype = getattr(leaf, "dtype", None) or jnp.result_type(leaf)
  if num_rows is not None:
    shape = (num_rows, *shape[1:])
  return jax.ShapeDtypeStruct(shape, dtype)


def _run(program: core.Jaxpr, inputs: list[State]) -> list[State]:
  known: dict[Any, State] = dict.fromkeys(program.constvars)
  known.update(zip(program.invars, inputs, strict=True))

  def read(atom: Any) -> State:
    return None if isinstance(atom, core.Literal) else known[atom]

  for step in program.eqns:
    outputs = _step(step, [read(atom) for atom in step.invars])
    known.update(zip(step.outvars, outputs, strict=True))
  return [read(atom) for atom in program.outvars]


def _numbers(program: core.Jaxpr) -> list[Any]:
  found: list[Any] = []
  for step in program.eqns:
    name = step.primitive.name
    if name in _CALLS:
      found += _numbers(_inner(step))
    else:
      literals = [a.val for a in step.invars if isinstance(a, core.Literal)]
      found.append((name, *map(str, literals)))
  return found


def _inner(step: core.JaxprEqn) -> core.Jaxpr:
  program = step.params[_CALLS[step.primitive.name]]
  return getattr(program, "jaxpr", program)


def _step(step: core.JaxprEqn, states: list[State]) -> list[State]:
  name = step.primitive.name
  if name in _CALLS:
    return _run(_inner(step), states)
  state = _worst(states)
  if isinstance(state, int):
    state = _apply_rule(step, name, states)
  return [state] * len(step.outvars)


def _apply_rule(step: core.JaxprEqn, name: str, axes: list[Any]) -> State:
  rule = axis_rules.RULES.get(name)
  if rule is None:
    return Unknown(f"no rule for {name}")
  try:
    return int(rule(step, axes))  # some parameters hold NumPy's integers
  except axis_rules.MixesRowsError as found:
    return Mixed(str(found))
  except axis_rules.MovesRowsError as found:
    return Unknown(str(found))


def _worst(states: list[State]) -> State:
  """Mixed before unknown, before a batch axis, before no dependence."""
  for kind in (Mixed, Unknown):
    for state in states:
      if isinstance(state, kind):
        return state
  return next((state for state in states if state is not None), None)


# Operations that run another program, and the parameter that holds it. Custom
# reverse rules are not among them: what they do backwards is not traced here.
_CALLS = {
  "jit": "jaxpr",
  "remat2": "jaxpr",
  "custom_jvp_call": "call_jaxpr",
}
