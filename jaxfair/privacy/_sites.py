"""Which operations between a parameter and data have a fast clipping rule.

A site is one such operation. Its parameter's gradient is a simple function of
the data operand and of the cotangent of the result, so that neither norms nor
clipped sums need the gradients of single examples.
"""

import dataclasses
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.extend import core
from numpy.typing import DTypeLike

VIEWS = frozenset({"reshape", "transpose", "squeeze", "expand_dims", "broadcast_in_dim", "copy"})
SHORT = (jnp.dtype(jnp.bfloat16), jnp.dtype(jnp.float16))

Aval: TypeAlias = jax.ShapeDtypeStruct  # or what a traced value is: a shape and a type


class View(NamedTuple):
  """A parameter leaf seen through rearrangements (reshape, broadcast, ...).

  Casts to other floating-point types are not recorded: gradients are kept in
  float32, whatever the model computes in.

  Attributes:
    leaf: index of the leaf.
    base: shape and type of what the operations start from: the leaf, or its slice in a loop.
    operations: (primitive, params) to replay on it.
    outer: what the base is a slice of, along its first axis; None if the base is the leaf.
    loop: which of the nested loops (0 is the outermost) takes that slice.
  """

  leaf: int
  base: jax.ShapeDtypeStruct
  operations: tuple[Any, ...] = ()
  outer: "View | None" = None
  loop: int = -1

  def apply(self, value: jax.Array) -> jax.Array:
    """The view of the base's value."""
    for primitive, params in self.operations:
      value = primitive.bind(value, **params)
    return value

  def to_base(self, cotangent: jax.Array) -> jax.Array:
    """The base's cotangent from the view's."""
    if not self.operations:
      return cotangent
    (result,) = jax.linear_transpose(self.apply, self.base)(cotangent)
    return result

  def to_leaf(self, cotangents: jax.Array) -> jax.Array:
    """The leaf's cotangent from [*loops that slice it, *base] ones."""
    if self.outer is None:
      return cotangents
    back = self.outer.to_base
    for _ in self.outer.sliced_by:
      back = jax.vmap(back)
    return self.outer.to_leaf(back(cotangents))

  @property
  def sliced_by(self) -> tuple[int, ...]:
    """The loops that take slices of the leaf, the outermost first."""
    return () if self.outer is None else (*self.outer.sliced_by, self.loop)

  @property
  def names(self) -> tuple[str, ...]:
    """The rearrangements' names, in order, since the last slice."""
    return tuple(primitive.name for primitive, _ in self.operations)


@dataclasses.dataclass(frozen=True)
class Site:
  """A place where one parameter meets data.

  Attributes:
    kind: "dense", "batched", "conv", "rows", "shift", "negative_shift" or "scale".
    view: the parameter operand.
    operand: shape of the parameter operand.
    position: which operand the parameter is.
    params: the operation's own parameters.
    output: shape and type of the result, in one round of the loops.
    data: shape and type of the data operand, in one round of the loops.
    loops: lengths of the loops around it, the outermost first.
    tap: index of the tap whose cotangent is the result's.
    source: index of the captured array that is the data operand; -1 if it plays no part.
  """

  kind: str
  view: View
  operand: tuple[int, ...]
  position: int
  params: dict[str, Any]
  output: jax.ShapeDtypeStruct
  data: jax.ShapeDtypeStruct
  loops: tuple[int, ...] = ()
  tap: int = -1
  source: int = -1

  @property
  def needs_data(self) -> bool:
    """Whether the parameter's gradient depends on the data operand."""
    return self.kind not in ("shift", "negative_shift")

  @property
  def shares(self) -> bool:
    """Whether a loop uses the same parameter in each of its rounds."""
    return len(self.view.sliced_by) < len(self.loops)


def recognize(equation: Any, view: View, position: int, *, plain: bool) -> Site | None:
  """The site that an equation is; None if no rule fits.

  Args:
    equation: of two operands, one a view of a parameter and the other data.
    view: of the parameter.
    position: which of the operands it is.
    plain: whether only float32 operations with the oldest rules count, as
      analyses of curvature need them.
  """
  parameter, data = equation.invars[position].aval, equation.invars[1 - position].aval
  output = equation.outvars[0].aval
  kind = _kind(equation, view, parameter, position)
  if kind is None or not _has_real_factors(kind, parameter, data, output, plain):
    return None
  if plain and (kind == "batched" or (kind == "conv" and not _is_plain_conv(equation.params))):
    return None
  return Site(
    kind,
    view,
    tuple(parameter.shape),
    position,
    equation.params,
    jax.ShapeDtypeStruct(output.shape, output.dtype),
    jax.ShapeDtypeStruct(data.shape, data.dtype),
  )


def keeps_view(equation: Any, *, plain: bool) -> bool:
  """Whether an equation of one operand only casts it to another real type."""
  if plain or equation.primitive.name != "convert_element_type":
    return False
  return _is_real(equation.invars[0].aval.dtype) and _is_real(equation.outvars[0].aval.dtype)


def _is_real(dtype: DTypeLike) -> bool:
  return dtype == jnp.float32 or dtype in SHORT


def _has_real_factors(kind: str, parameter: Aval, data: Aval, output: Aval, plain: bool) -> bool:
  """Whether inputs and signals are real numbers that float32 holds exactly.

  Of other kinds (complex ones) they may not even be factors. Row numbers are
  integers of any length: they are compared, not computed with.
  """
  types = [parameter.dtype, output.dtype, *([] if kind == "rows" else [data.dtype])]
  if plain:
    return len(set(types)) == 1 and types[0] in (jnp.float32, jnp.float64)
  return all(_is_real(dtype) for dtype in types)


def _kind(equation: core.JaxprEqn, view: View, parameter: Aval, position: int) -> str | None:
  name, params = equation.primitive.name, equation.params
  unrepeated = "broadcast_in_dim" not in view.names
  if name == "dot_general":
    batched = params["dimension_numbers"][1] != ((), ())
    return ("batched" if batched else "dense") if unrepeated else None
  if name == "conv_general_dilated":
    readable = position == 1 and params["batch_group_count"] == 1
    return "conv" if unrepeated and readable else None
  if name in ("add", "add_any"):
    return "shift"
  if name == "sub":
    return "shift" if position == 0 else "negative_shift"
  if name == "mul":
    return "scale"
  if name == "gather" and position == 0 and not view.operations and not view.outer:
    return "rows" if _takes_rows(params, parameter.shape) else None
  return None


def _is_plain_conv(params: dict[str, Any]) -> bool:
  return params["feature_group_count"] == 1 and all(d == 1 for d in params["lhs_dilation"])


def _takes_rows(params: dict[str, Any], table: tuple[int, ...]) -> bool:
  """Whether a gather looks up whole rows of a table, as embeddings do."""
  numbers = params["dimension_numbers"]
  return (
    numbers.collapsed_slice_dims == (0,)
    and numbers.start_index_map == (0,)
    and numbers.operand_batching_dims == ()
    and params["slice_sizes"] == (1, *table[1:])
    and len(table) == 2
  )
