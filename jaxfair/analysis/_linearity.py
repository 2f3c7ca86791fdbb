"""The structure of the logits' second derivatives with respect to a layer's output.

It is derived from the traced program, never from numbers. Every value has one
relation to a perturbation: it does not depend on it; it is (piecewise) linear in it;
it is a sum of functions of single entries of it; or none of these. The second
derivatives of the logits with respect to the perturbation are then zero, diagonal, or full. "Zero"
is why Gauss-Newton traces are exact for ReLU networks, and "diagonal" is what
every hidden layer below a linear output has.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend import core

from jaxfair import _jaxpr
from jaxfair.types import PyTree


class Bend(enum.IntEnum):
  """What the second derivatives by a push look like, almost everywhere."""

  ZERO = 0
  DIAGONAL = 1
  FULL = 2


class _State(enum.IntEnum):
  FREE = 0  # does not depend on the push, or is piecewise constant in it
  POINT_LINEAR = 1  # entry i is piecewise linear in entry i of the push
  LINEAR = 2  # piecewise linear in the push
  POINT = 3  # entry i is a function of entry i
  SEPARABLE = 4  # a sum of functions of single entries
  FULL = 5


_POINTWISE = (_State.FREE, _State.POINT_LINEAR, _State.POINT)
_SPREAD = {_State.POINT_LINEAR: _State.LINEAR, _State.POINT: _State.SEPARABLE}


def bends(function: Callable[..., Any], pushes: Sequence[Any], rest: PyTree) -> list[Bend]:
  """How `function(pushes, rest)` bends along each of the pushes."""
  program = jax.make_jaxpr(function)(list(pushes), rest)
  return [_bend(program, index) for index in range(len(pushes))]


def same_places(function: Callable[..., Any], pushes: Sequence[Any], rest: PyTree) -> list[int]:
  """For each push, the first push that does exactly the same as it.

  A bias is added to what its layer's matrix gives: pushing either output is
  the same. True if nothing else looks at the value between them.
  """
  program = jax.make_jaxpr(function)(list(pushes), rest).jaxpr
  inputs = {var: i for i, var in enumerate(program.invars[: len(pushes)])}
  uses = _jaxpr.uses(program)
  first = list(range(len(pushes)))
  for index in range(len(pushes)):
    var = program.invars[index]
    while (step := _only_sum(var, uses)) is not None:
      for atom in step.invars:
        if isinstance(atom, core.Literal) or atom is var:
          continue
        if atom in inputs:
          first[inputs[atom]] = min(first[inputs[atom]], first[index])
      var = step.outvars[0]
  return first


def passes_through(
  function: Callable[..., Any], pushes: Sequence[Any], rest: PyTree, push: int, later: int
) -> bool:
  """Whether a push acts through one later place only, and entry by entry on the way there.

  True if the outputs depend on push number `push` only by way of the sum that push number `later`
  is added to, and if the entries of the input of that place are functions of the same entries of
  the push.

  Args:
    function: `(pushes, rest) -> (outputs, inputs)`, with one input for each push: what the place
      computes its value from.
    pushes: arrays or shapes, one per place.
    rest: a tree of arrays or shapes that are held fixed.
    push: number of the first push.
    later: number of the second one.
  """
  program, shapes = jax.make_jaxpr(function, return_shape=True)(list(pushes), rest)
  cut = program.jaxpr.invars[later]

  def step(equation: core.JaxprEqn, states: list[_State]) -> list[_State] | None:
    if any(atom is cut for atom in equation.invars):
      return [_State.FREE] * len(equation.outvars)
    return _step(equation, states)

  states = [_State.FREE] * len(program.jaxpr.invars)
  states[push] = _State.POINT_LINEAR
  found = _jaxpr.walk(program, states, step, constant=lambda _: _State.FREE)
  outputs, inputs = jax.tree.unflatten(jax.tree.structure(shapes), found)
  return max(jax.tree.leaves(outputs)) == _State.FREE and inputs[later] in _POINTWISE[1:]


def _only_sum(var: Any, uses: dict[Any, list[Any]]) -> Any:
  """The addition that is this value's only use, in its own shape; or None."""
  steps = uses.get(var, [])
  if len(steps) != 1 or steps[0] is None:
    return None
  (step,) = steps
  if step.primitive.name not in ("add", "add_any"):
    return None
  return step if step.outvars[0].aval.shape == var.aval.shape else None


def _bend(program: core.ClosedJaxpr, index: int) -> Bend:
  states = [_State.FREE] * len(program.jaxpr.invars)
  states[index] = _State.POINT_LINEAR
  outputs = _jaxpr.walk(program, states, _step, constant=lambda _: _State.FREE)
  worst = max(outputs, default=_State.FREE)
  if worst <= _State.LINEAR:
    return Bend.ZERO
  return Bend.DIAGONAL if worst <= _State.SEPARABLE else Bend.FULL


def _step(step: core.JaxprEqn, states: list[_State]) -> list[_State] | None:
  name = step.primitive.name
  if _jaxpr.kind(step) in _OPENED:
    return None
  if name in _CONSTANT or not any(states):
    state = _State.FREE
  elif max(states) == _State.FULL:
    state = _State.FULL
  else:
    state = _rule(step, name, states)
  return [state] * len(step.outvars)


def _rule(step: Any, name: str, states: list[_State]) -> _State:
  depends = [i for i, state in enumerate(states) if state]
  alone = len(depends) == 1
  if name == "select_n":  # which case is piecewise constant
    return _aligned(step, [_State.FREE, *states[1:]])
  if name in _SUMS or name in _ORDERED or _keeps_order(step):
    return _aligned(step, states)
  if name in _LINEAR:
    return _spread(_joined(states))
  if name == "mul" or (name == "div" and depends == [0]):
    if alone:
      return _aligned(step, states)
  elif name in _BILINEAR:
    return _spread(_joined(states)) if alone else _State.FULL
  if name in _CURVED and all(state in _POINTWISE for state in states):
    same_size = all(np.prod(step.invars[i].aval.shape) == _size(step) for i in depends)
    return _State.POINT if same_size else _State.FULL
  return _State.FULL


def _keeps_order(step: Any) -> bool:
  """Whether this is a transposition that moves axes of length 1 only."""
  if step.primitive.name != "transpose":
    return False
  shape = step.invars[0].aval.shape
  moved = [d for d in step.params["permutation"] if shape[d] != 1]
  return moved == sorted(moved)


def _aligned(step: Any, states: list[_State]) -> _State:
  """The joint state, if entries keep their places; its spread otherwise."""
  same = all(
    np.prod(atom.aval.shape) == _size(step)
    for atom, state in zip(step.invars, states, strict=True)
    if state
  )
  return _joined(states) if same else _spread(_joined(states))


def _joined(states: Sequence[_State]) -> _State:
  """The state of a sum."""
  worst = max(states)
  if worst == _State.POINT and _State.LINEAR in states:
    return _State.SEPARABLE
  return worst


def _spread(state: _State) -> _State:
  return _SPREAD.get(state, state)


def _size(step: Any) -> int:
  return int(np.prod(step.outvars[0].aval.shape))


# A custom backward pass is not opened: what it does is not traced.
_OPENED = (_jaxpr.Kind.CALL, _jaxpr.Kind.REMAT, _jaxpr.Kind.CUSTOM_JVP)
_CONSTANT = frozenset(
  {
    "gt",
    "lt",
    "ge",
    "le",
    "eq",
    "ne",
    "sign",
    "floor",
    "ceil",
    "round",
    "is_finite",
    "argmax",
    "argmin",
    "stop_gradient",
    "and",
    "or",
    "not",
  }
)
# Sums and choices: entry by entry, in one shape.
_SUMS = frozenset(
  {"add", "add_any", "sub", "neg", "max", "min", "abs", "clamp", "copy", "convert_element_type"}
)
# They keep the order of entries; aligned if they keep their number as well.
_ORDERED = frozenset({"reshape", "squeeze", "expand_dims", "broadcast_in_dim"})
_LINEAR = frozenset(
  {
    "reduce_sum",
    "reduce_max",
    "reduce_min",
    "transpose",
    "slice",
    "rev",
    "concatenate",
    "pad",
    "cumsum",
    "reduce_window_max",
    "reduce_window_sum",
    "reduce_window_min",
  }
)
_BILINEAR = frozenset({"dot_general", "conv_general_dilated"})
_CURVED = frozenset(
  {
    "mul",
    "div",
    "pow",
    "integer_pow",
    "square",
    "sqrt",
    "rsqrt",
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "logistic",
    "tanh",
    "sinh",
    "cosh",
    "sin",
    "cos",
    "tan",
    "atan",
    "atan2",
    "asinh",
    "erf",
    "erfc",
    "erf_inv",
    "lgamma",
  }
)
