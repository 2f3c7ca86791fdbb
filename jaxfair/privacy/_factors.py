"""Per-example gradients as products of factors, and their weighted sums.

Where a parameter matrix W meets data, the gradient of one example is `L^T R`:
L is [positions, height] and R [positions, width], one of them the inputs and
the other the back-propagated signals. At an embedding L is one-hot and kept as
row numbers. Weighted sums over examples come from the factors, and so do norms
(`factor_norms`); the product is built only where it is no larger than they are.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp

from jaxfair.models import _patches
from jaxfair.privacy._taps import Site


class Whole(NamedTuple):
  """Gradients that were built.

  Attributes:
    gradients: [n, ...] all their entries, in any layout.
    rebuild: from one of that layout to the leaf's; None if it is the leaf's.
  """

  gradients: jax.Array
  rebuild: Callable[[jax.Array], jax.Array] | None = None


@dataclasses.dataclass(frozen=True)
class Product:
  """L^T R per example.

  Attributes:
    left: [n, positions, height] numbers, or [n, positions] row numbers that
      stand for one-hot rows (those outside the table count as zero).
    right: [n, positions, width].
    rebuild: from [height, width] to the leaf's gradient; None if the leaf is that matrix.
    height: number of rows.
  """

  left: jax.Array
  right: jax.Array
  rebuild: Callable[[jax.Array], jax.Array] | None
  height: int


Part = Whole | Product
# Accelerators multiply float32 matrices in fewer digits unless told otherwise: norms would be off
# by far more than is allowed for, and a clipped gradient would leave its bound in the sum.
PRECISION = jax.lax.Precision.HIGHEST


def part(site: Site, data: jax.Array, signal: jax.Array, leaf: Any) -> Part:
  """One site's part in its leaf's per-example gradients.

  Args:
    site: from `taps.read`.
    data: [n, ...] the site's data operand.
    signal: [n, ...] cotangent of the site's output.
    leaf: shape and type of the leaf.
  """
  match site.kind:
    case "dense":
      return _dense(site, data, signal, leaf)
    case "conv":
      return _conv(site, data, signal, leaf)
    case "rows":
      return _rows(site, data, signal)
    case "shift":
      cotangent = signal
    case "negative_shift":
      cotangent = -signal
    case "scale":
      cotangent = signal * _align(data, signal)
    case other:
      raise AssertionError(f"no rule for a site of kind {other}")
  cotangent = _unbroadcast(cotangent, site.operand)
  return Whole(jax.vmap(lambda c: site.view.pull_back(c, leaf))(cotangent))


def gather(parts: list[Part], leaf: Any) -> list[Part]:
  """Chooses the form in which a leaf's gradients are kept.

  One product stays factored unless building it is cheaper. Several products (a shared matrix) stay
  factored if each is a plain matrix product; otherwise all parts are built and added.
  """
  if len(parts) < 2:
    return [_matrices(p) if _build_is_smaller(p) else p for p in parts]
  if all(_is_plain_product(p) for p in parts):
    return parts
  total = build(parts[0], leaf)
  for other in parts[1:]:
    total += build(other, leaf)
  return [Whole(total)]


def weighted_sum(parts: list[Part], weights: jax.Array, leaf: Any) -> jax.Array:
  """sum_i weights[i] gradient_i, in the leaf's shape."""
  total = jnp.zeros(leaf.shape, leaf.dtype)
  for p in parts:
    if isinstance(p, Whole):
      found = jnp.tensordot(weights, p.gradients, axes=1, precision=PRECISION)
      total += found if p.rebuild is None else p.rebuild(found)
      continue
    # Where the weight is 0 the signal may be anything, NaN too.
    weight = weights[:, None, None]
    right = jnp.where(weight == 0, 0.0, p.right * weight)
    if p.left.ndim == 2:
      rows = p.left.reshape(-1)
      updates = right.reshape(rows.size, right.shape[2])
      total = total.at[rows].add(updates, mode="drop")
      continue
    everywhere = p.left.shape[0] * p.left.shape[1]
    matrix = jnp.matmul(
      p.left.reshape(everywhere, p.left.shape[2]).T,
      right.reshape(everywhere, right.shape[2]),
      precision=PRECISION,
    )
    total += matrix if p.rebuild is None else p.rebuild(matrix)
  return total


def zero_where(bad: jax.Array, p: Part) -> Part:
  """The part with the gradients of some examples replaced by zero."""

  def clean(array: jax.Array) -> jax.Array:
    mask = bad.reshape(bad.shape + (1,) * (array.ndim - 1))
    return jnp.where(mask, jnp.zeros((), array.dtype), array)

  if isinstance(p, Whole):
    return p._replace(gradients=clean(p.gradients))
  left = p.left if p.left.ndim == 2 else clean(p.left)
  return dataclasses.replace(p, left=left, right=clean(p.right))


def build(p: Part, leaf: Any) -> jax.Array:
  """[n, *leaf] gradients."""
  if isinstance(p, Whole):
    return p.gradients if p.rebuild is None else jax.vmap(p.rebuild)(p.gradients)
  if p.left.ndim == 2:
    empty = jnp.zeros(leaf.shape, leaf.dtype)
    return jax.vmap(lambda r, s: empty.at[r].add(s, mode="drop"))(p.left, p.right)
  return build(_matrices(p), leaf)


def _matrices(p: Product) -> Whole:
  """[n, height, width] or its transpose: products run along the longer side."""
  if p.left.shape[-1] <= p.right.shape[-1]:
    return Whole(jnp.einsum("nth,ntw->nhw", p.left, p.right), p.rebuild)

  def rebuild(matrix: jax.Array) -> jax.Array:
    return matrix.T if p.rebuild is None else p.rebuild(matrix.T)

  return Whole(jnp.einsum("nth,ntw->nwh", p.left, p.right), rebuild)


def _is_plain_product(p: Part) -> bool:
  return isinstance(p, Product) and p.rebuild is None


def _build_is_smaller(p: Part) -> TypeGuard[Product]:
  """Whether L^T R is worth building: one matrix beats a Gram of positions.

  Building and keeping it saves the second contraction; it must not take more
  memory than the factors, which plain training holds as well.
  """
  if isinstance(p, Whole) or p.left.ndim == 2:
    return False
  positions, height, width = *p.left.shape[1:], p.right.shape[2]
  return positions > 1 and height * width <= 2 * positions * (height + width)


def _dense(site: Site, data: jax.Array, signal: jax.Array, leaf: Any) -> Product:
  (lhs_contract, rhs_contract), _ = site.params["dimension_numbers"]
  own, other = lhs_contract, rhs_contract
  if site.position == 1:
    own, other = rhs_contract, lhs_contract
  own_free = [d for d in range(len(site.operand)) if d not in own]
  data_free = [d for d in range(data.ndim - 1) if d not in other]
  n = data.shape[0]
  fan_in = math.prod(site.operand[d] for d in own)
  fan_out = math.prod(site.operand[d] for d in own_free)
  positions = math.prod(data.shape[d + 1] for d in data_free)
  order = [0, *(d + 1 for d in data_free), *(d + 1 for d in other)]
  inputs = data.transpose(order).reshape(n, positions, fan_in)
  if site.position == 0:  # the result's axes are (own_free, data_free)
    signals = signal.reshape(n, fan_out, positions).swapaxes(1, 2)
  else:
    signals = signal.reshape(n, positions, fan_out)
  plain = len(leaf.shape) == 2 and set(site.view.names) <= {"transpose"}
  if plain and len(own) == 1:
    axis = own[0]
    for _, params in reversed(site.view.operations):
      axis = params["permutation"][axis]
    left, right = (inputs, signals) if axis == 0 else (signals, inputs)
    return Product(left, right, None, leaf.shape[0])

  def rebuild(matrix: jax.Array) -> jax.Array:
    axes = [*own, *own_free]
    shape = [site.operand[d] for d in axes]
    operand = matrix.reshape(shape).transpose(_inverse(axes))
    return site.view.pull_back(operand, leaf)

  return Product(inputs, signals, rebuild, fan_in)


def _conv(site: Site, data: jax.Array, signal: jax.Array, leaf: Any) -> Product:
  lhs_spec, rhs_spec, out_spec = site.params["dimension_numbers"]
  channels_last = [lhs_spec[0], *lhs_spec[2:], lhs_spec[1]]
  images = data.transpose([0, *(d + 1 for d in channels_last)])
  kernel = [site.operand[d] for d in rhs_spec[2:]]
  inputs = _patches.extract(
    images,
    kernel,
    strides=site.params["window_strides"],
    padding=site.params["padding"],
    dilation=site.params["rhs_dilation"],
  )
  outputs_last = [out_spec[0], *out_spec[2:], out_spec[1]]
  signals = signal.transpose([0, *(d + 1 for d in outputs_last)])
  n, fan_out = signals.shape[0], signals.shape[-1]
  positions = math.prod(signals.shape[1:-1])
  axes = [*rhs_spec[2:], rhs_spec[1], rhs_spec[0]]  # spatial, in, out

  def rebuild(matrix: jax.Array) -> jax.Array:
    shape = [site.operand[d] for d in axes]
    operand = matrix.reshape(shape).transpose(_inverse(axes))
    return site.view.pull_back(operand, leaf)

  fan_in = inputs.shape[-1]
  return Product(
    inputs.reshape(n, positions, fan_in), signals.reshape(n, positions, fan_out), rebuild, fan_in
  )


def _rows(site: Site, data: jax.Array, signal: jax.Array) -> Product:
  n, (height, width) = data.shape[0], site.operand
  positions = math.prod(data.shape[1:])
  rows = _int32(data.reshape(n, positions), height)
  mode = site.params["mode"]
  if mode == jax.lax.GatherScatterMode.CLIP:
    rows = jnp.clip(rows, 0, height - 1)
  # The looked-up rows' width may stand anywhere among the output's axes.
  (axis,) = site.params["dimension_numbers"].offset_dims
  signals = jnp.moveaxis(signal, axis + 1, -1).reshape(n, positions, width)
  # A row number outside the table must not wrap around to the other end.
  outside = (rows < 0) | (rows >= height)
  return Product(jnp.where(outside, height, rows), signals, None, height)


def _int32(rows: jax.Array, height: int) -> jax.Array:
  """Row numbers of any integer type; those outside stay outside.

  A short type cannot hold the table's height, which is compared with and
  stands for "outside". A long one may hold numbers that int32 cannot.
  """
  if rows.dtype == jnp.int32:
    return rows
  info = jnp.iinfo(rows.dtype)
  if info.bits >= 32:
    rows = jnp.clip(rows, max(-1, int(info.min)), height)
  return rows.astype(jnp.int32)


def _align(data: jax.Array, signal: jax.Array) -> jax.Array:
  """Lets a scalar per example multiply a whole array per example."""
  return data.reshape(data.shape + (1,) * (signal.ndim - data.ndim))


def _unbroadcast(cotangent: jax.Array, operand: tuple[int, ...]) -> jax.Array:
  """Sums over the axes along which an operand was repeated."""
  if not operand:
    return jnp.sum(cotangent, axis=tuple(range(1, cotangent.ndim)))
  repeated = [d + 1 for d, size in enumerate(operand) if size != cotangent.shape[d + 1]]
  return jnp.sum(cotangent, axis=tuple(repeated), keepdims=True)


def _inverse(axes: list[int]) -> list[int]:
  return [axes.index(d) for d in range(len(axes))]
