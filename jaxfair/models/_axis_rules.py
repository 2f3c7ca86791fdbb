"""Where the batch axis goes: one rule for each kind of jax operation.

A rule gets one step of a traced program and, for each of its inputs, the batch
axis or None; at least one is an axis. It returns the batch axis of the outputs,
or raises. An axis of length ROWS * b stands for b neighbors of every row.
"""

from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

from jax.extend import core

# Rows in the traced batch. More than two, so that an axis of length 1 or 2 is
# never taken for it.
ROWS = 3

Axes: TypeAlias = list[int | None]


class MixesRowsError(Exception):
  """The operation makes one value of several rows."""


class MovesRowsError(Exception):
  """The operation moves rows to where these rules do not follow them."""


def _elementwise(step: core.JaxprEqn, axes: Axes) -> int:
  found = {axis for axis in axes if axis is not None}
  if len(found) > 1:
    raise MixesRowsError(f"{step.primitive.name} pairs different rows of the batch")
  return found.pop()


def _along(parameter: str) -> Callable[..., int]:
  """The rule of an operation along axes that its output keeps."""

  def rule(step: core.JaxprEqn, axes: Axes) -> int:
    axis, touched = _elementwise(step, axes), step.params[parameter]
    if axis in (touched if isinstance(touched, tuple | list) else (touched,)):
      raise _across(step)
    return axis

  return rule


def _reduction(step: core.JaxprEqn, axes: Axes) -> int:
  axis = _first(step, axes)
  if axis in step.params["axes"]:
    raise _across(step)
  return axis - sum(reduced < axis for reduced in step.params["axes"])


def _squeeze(step: core.JaxprEqn, axes: Axes) -> int:
  axis = _first(step, axes)
  return axis - sum(dropped < axis for dropped in step.params["dimensions"])


def _transpose(step: core.JaxprEqn, axes: Axes) -> int:
  return list(step.params["permutation"]).index(_first(step, axes))


def _broadcast(step: core.JaxprEqn, axes: Axes) -> int:
  return step.params["broadcast_dimensions"][_first(step, axes)]


def _reshape(step: core.JaxprEqn, axes: Axes) -> int:
  """Follows the axis by the number of elements that come before it."""
  old, new = _shape(step.invars[0]), _shape(step.outvars[0])
  before: int = prod(old[: _first(step, axes)])
  if step.params["dimensions"] is None and 0 not in old:
    for axis, length in enumerate(new):
      if prod(new[:axis]) == before and length % ROWS == 0:
        return axis
  raise _moves(step)


def _window(step: core.JaxprEqn, axes: Axes) -> int:
  axis, params = _first(step, axes), step.params
  if params["window_dimensions"][axis] > 1:
    raise _across(step)
  if (
    params["window_strides"][axis] != 1
    or params["base_dilation"][axis] != 1
    or tuple(params["padding"][axis]) != (0, 0)
  ):
    raise _moves(step)
  return axis


def _dot(step: core.JaxprEqn, axes: Axes) -> int:
  contracted, paired = step.params["dimension_numbers"]
  if axes[0] in contracted[0] or axes[1] in contracted[1]:
    raise _across(step)
  if None not in axes and tuple(axes) not in zip(*paired, strict=True):
    raise MixesRowsError("dot_general pairs different rows of the batch")
  side, axis = next((s, a) for s, a in enumerate(axes) if a is not None)
  if axis in paired[side]:
    return list(paired[side]).index(axis)
  # The output has the paired axes, then the left's free ones, then the right's.
  free = [
    [d for d in range(len(_shape(atom))) if d not in (*summed, *shared)]
    for atom, summed, shared in zip(step.invars, contracted, paired, strict=True)
  ]
  return len(paired[0]) + side * len(free[0]) + free[side].index(axis)


def _conv(step: core.JaxprEqn, axes: Axes) -> int:
  specs = step.params["dimension_numbers"]
  plain = step.params["batch_group_count"] == 1 and axes[1] is None
  if plain and axes[0] == specs.lhs_spec[0]:
    return specs.out_spec[0]
  raise _moves(step)


def _concatenate(step: core.JaxprEqn, axes: Axes) -> int:
  axis = _elementwise(step, axes)
  if axis == step.params["dimension"]:
    raise _moves(step)
  return axis


def _stack(step: core.JaxprEqn, axes: Axes) -> int:
  axis = _elementwise(step, axes)
  return axis + (axis >= step.params["axis"])


def _unstack(step: core.JaxprEqn, axes: Axes) -> int:
  axis = _first(step, axes)
  if axis == step.params["axis"]:
    raise _moves(step)
  return axis - (axis > step.params["axis"])


def _keeping_length(step: core.JaxprEqn, axes: Axes) -> int:
  """Slices and copies: the batch axis stays as long as it is."""
  axis = _first(step, axes)
  if any(_shape(atom)[axis] != _shape(step.invars[0])[axis] for atom in step.outvars):
    raise _moves(step)
  return axis


def _pad(step: core.JaxprEqn, axes: Axes) -> int:
  axis = _first(step, axes)
  if tuple(step.params["padding_config"][axis]) != (0, 0, 0):
    raise _moves(step)
  return axis


def _gather(step: core.JaxprEqn, axes: Axes) -> int:
  """Each row's places in a shared table, or the same places of every row."""
  (table, places), numbers = axes, step.params["dimension_numbers"]
  shape, rank = _shape(step.invars[0]), len(_shape(step.outvars[0]))
  outer = [d for d in range(rank) if d not in numbers.offset_dims]
  paired = dict(
    zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
  )
  if table in paired and places in (None, paired[table]):
    return outer[paired[table]]
  if table is None and places is not None and places < len(outer):
    return outer[places]
  kept = [d for d in range(len(shape)) if d not in numbers.collapsed_slice_dims and d not in paired]
  if places is None and table in kept and step.params["slice_sizes"][table] == shape[table]:
    return numbers.offset_dims[kept.index(table)]
  raise _moves(step)


def _first(step: core.JaxprEqn, axes: Axes) -> int:
  """The axis of the first input, where the others may not have one."""
  axis, *others = axes
  if axis is None or any(other is not None for other in others):
    raise _moves(step)
  return axis


def _shape(atom: Any) -> tuple[int, ...]:
  return atom.aval.shape


def _across(step: core.JaxprEqn) -> MixesRowsError:
  return MixesRowsError(f"{step.primitive.name} across the batch axis")


def _moves(step: core.JaxprEqn) -> MovesRowsError:
  return MovesRowsError(f"{step.primitive.name} moves rows of the batch")


_ELEMENTWISE = (
  "abs",
  "acos",
  "acosh",
  "add",
  "add_any",
  "and",
  "asin",
  "asinh",
  "atan",
  "atan2",
  "atanh",
  "cbrt",
  "ceil",
  "clamp",
  "convert_element_type",
  "copy",
  "copy_p",
  "cos",
  "cosh",
  "digamma",
  "div",
  "eq",
  "erf",
  "erf_inv",
  "erfc",
  "exp",
  "exp2",
  "expm1",
  "floor",
  "ge",
  "gt",
  "integer_pow",
  "is_finite",
  "le",
  "lgamma",
  "log",
  "log1p",
  "logistic",
  "lt",
  "max",
  "min",
  "mul",
  "ne",
  "neg",
  "nextafter",
  "not",
  "or",
  "pow",
  "reduce_precision",
  "rem",
  "round",
  "rsqrt",
  "select_n",
  "sign",
  "sin",
  "sinh",
  "sqrt",
  "square",
  "stop_gradient",
  "sub",
  "tan",
  "tanh",
  "xor",
)

RULES: dict[str, Callable[[core.JaxprEqn, Axes], int]] = {
  **dict.fromkeys(_ELEMENTWISE, _elementwise),
  **dict.fromkeys(
    [
      "argmax",
      "argmin",
      "reduce_and",
      "reduce_max",
      "reduce_min",
      "reduce_or",
      "reduce_prod",
      "reduce_sum",
    ],
    _reduction,
  ),
  **dict.fromkeys(["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"], _along("axis")),
  **dict.fromkeys(["reduce_window_max", "reduce_window_min", "reduce_window_sum"], _window),
  "broadcast_in_dim": _broadcast,
  "concatenate": _concatenate,
  "conv_general_dilated": _conv,
  "dot_general": _dot,
  "dynamic_slice": _keeping_length,
  "gather": _gather,
  "pad": _pad,
  "reshape": _reshape,
  "rev": _along("dimensions"),
  "slice": _keeping_length,
  "sort": _along("dimension"),
  "split": _keeping_length,
  "squeeze": _squeeze,
  "stack": _stack,
  "tile": _keeping_length,
  "top_k": _along("axis"),
  "transpose": _transpose,
  "unstack": _unstack,
}
