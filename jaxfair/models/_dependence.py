"""Which rows of a batch an output can depend on, read off the traced program.

Every value in a program on a batch of n rows is in one of four states: it does
not depend on the batch (None); it has one axis along which row i of the batch
alone decides the i-th part (the number of that axis); it mixes rows; or the
rule for its operation is not known. `axis_rules` maps the states of an
operation's inputs to its outputs'. Values are never used, so a proof holds
for all parameters and all data.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from jaxfair import _jaxpr
from jaxfair.models import _axis_rules
from jaxfair.types import ArrayLike, PyTree


class Mixed(NamedTuple):
  """A value that depends on more than one row at a place; why."""

  reason: str


class Unknown(NamedTuple):
  """A value that cannot be analyzed, and why."""

  reason: str


State: TypeAlias = int | Mixed | Unknown | None


def analyze(function: Callable[..., Any], fixed: PyTree, rows: PyTree) -> State:
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
  rows = jax.tree.map(lambda leaf: shape_of(leaf, _axis_rules.ROWS), rows)
  program = jax.make_jaxpr(function)(fixed, *rows)
  states: list[State] = [None] * len(jax.tree.leaves(fixed))
  states += [0] * len(jax.tree.leaves(rows))
  outputs = _jaxpr.walk(program, states, _rule, constant=lambda _: None)
  for state, aval in zip(outputs, program.out_avals, strict=True):
    if state == 0 and aval.shape[0] != _axis_rules.ROWS:
      return Unknown("the output has another number of rows than the batch")
    if isinstance(state, int) and state > 0:
      return Unknown(f"the output has its rows on axis {state}")
  return _worst(outputs)


def numbers(function: Callable[..., Any], fixed: PyTree, rows: PyTree, num_rows: int) -> list[Any]:
  """The operations on a batch of that many rows, with the numbers in them.

  Programs whose operations and numbers agree for two sizes do not divide by
  the size of the batch, or the like.
  """
  rows = jax.tree.map(lambda leaf: shape_of(leaf, num_rows), rows)
  program = jax.make_jaxpr(function)(jax.tree.map(shape_of, fixed), *rows)
  return [
    (step.primitive.name, *_literals(step))
    for step in _jaxpr.equations(program, through=_OPENED)
    if _jaxpr.kind(step) not in _OPENED
  ]


def shape_of(
  leaf: ArrayLike | jax.ShapeDtypeStruct, num_rows: int | None = None
) -> jax.ShapeDtypeStruct:
  """Shape and type of an array, with another number of rows if one is given."""
  shape = np.shape(leaf)
  dtype = getattr(leaf, "dtype", None) or jnp.result_type(leaf)
  if num_rows is not None:
    shape = (num_rows, *shape[1:])
  return jax.ShapeDtypeStruct(shape, dtype)


def _literals(step: core.JaxprEqn) -> list[str]:
  return [str(a.val) for a in step.invars if isinstance(a, core.Literal)]


def _rule(step: core.JaxprEqn, states: list[State]) -> list[State] | None:
  if _jaxpr.kind(step) in _OPENED:
    return None
  state = _worst(states)
  if isinstance(state, int):
    state = _apply_rule(step, step.primitive.name, states)
  return [state] * len(step.outvars)


def _apply_rule(step: core.JaxprEqn, name: str, axes: list[Any]) -> State:
  rule = _axis_rules.RULES.get(name)
  if rule is None:
    return Unknown(f"no rule for {name}")
  try:
    return int(rule(step, axes))  # some parameters hold NumPy's integers
  except _axis_rules.MixesRowsError as found:
    return Mixed(str(found))
  except _axis_rules.MovesRowsError as found:
    return Unknown(str(found))


def _worst(states: list[State]) -> State:
  """Mixed before unknown, before a batch axis, before no dependence."""
  for kind in (Mixed, Unknown):
    for state in states:
      if isinstance(state, kind):
        return state
  return next((state for state in states if state is not None), None)


# Custom reverse rules are not opened: what they do backwards is not traced.
_OPENED = (_jaxpr.Kind.CALL, _jaxpr.Kind.REMAT, _jaxpr.Kind.CUSTOM_JVP)
