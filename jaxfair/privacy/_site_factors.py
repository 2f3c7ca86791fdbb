"""From a site's inputs and signals to its part in the per-example gradients."""

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxfair.privacy import _conv_factors
from jaxfair.privacy._factors import Leaf, Part, Product, Whole
from jaxfair.privacy._sites import SHORT, Site

# From [stack, ...] gradients of one slice to the gradient of its base; None if it is that.
ToBase = Callable[[jax.Array], jax.Array] | None


def part(site: Site, data: jax.Array, signal: jax.Array, leaf: Leaf) -> Part:
  """One site's part in its leaf's per-example gradients.

  Factors are float32. Short numbers (bfloat16, float16) are exact in it, and are stored before they
  are cast: the compiler may compute in more digits than they have, and would be free to give a norm
  other factors than the sum that it bounds.

  Inside of loops every round of every example is one more example at first. Rounds that take slices
  of the leaf of their own are then stacked, the other ones added up.

  Args:
    site: from `taps.read`.
    data: [n, ...] the site's data operand. Inside of loops [first loop, n, *other loops, ...].
    signal: cotangent of the site's output; axes as those of the data.
    leaf: shape and type of the leaf.
  """
  data, signal = _in_float32(data), _in_float32(signal)
  own = site.view.sliced_by
  shared = [i for i in range(len(site.loops)) if i not in own]
  axes = [0 if i == 0 else i + 1 for i in range(len(site.loops))]
  order = [*(axes[i] for i in own), 1 if site.loops else 0, *(axes[i] for i in shared)]
  count = data.shape[1 if site.loops else 0]
  slices, rounds = (math.prod(site.loops[i] for i in some) for some in (own, shared))

  def fold(array: jax.Array) -> jax.Array:
    """[slices * n * rounds, ...]."""
    turned = array.transpose([*order, *range(len(order), array.ndim)])
    return turned.reshape(slices * count * rounds, *turned.shape[len(order) :])

  one, to_base = _one_round(site, fold(data), fold(signal), leaf)
  found = _unfold(one, slices, count, rounds)
  if to_base is None:
    return found

  def rebuild(gradients: jax.Array) -> jax.Array:
    by_slice = gradients.reshape(slices, one.stack, *gradients.shape[1:])
    bases = jax.vmap(to_base)(by_slice)
    return site.view.to_leaf(bases.reshape(*(site.loops[i] for i in own), *bases.shape[1:]))

  return dataclasses.replace(found, rebuild=rebuild)


def _in_float32(array: jax.Array) -> jax.Array:
  if array.dtype in SHORT:
    return jax.lax.optimization_barrier(array).astype(jnp.float32)
  return array


def _unfold(p: Part, slices: int, count: int, rounds: int) -> Part:
  """Stacks slices, [slices * stack * n, ...], and adds up rounds."""
  if slices == rounds == 1:
    return p

  def arrange(array: jax.Array) -> jax.Array:
    split = array.reshape(p.stack, slices, count, rounds, *array.shape[1:])
    return split.swapaxes(0, 1).reshape(slices * p.stack * count, rounds, *array.shape[1:])

  if isinstance(p, Whole):
    gradients = jnp.sum(arrange(p.gradients), axis=1)
    return dataclasses.replace(p, gradients=gradients, stack=slices * p.stack)

  def positions(array: jax.Array) -> jax.Array:
    """[slices * stack * n, rounds * positions, ...]."""
    found = arrange(array)
    return found.reshape(found.shape[0], rounds * found.shape[2], *found.shape[3:])

  return dataclasses.replace(
    p, left=positions(p.left), right=positions(p.right), stack=slices * p.stack
  )


def _one_round(site: Site, data: jax.Array, signal: jax.Array, leaf: Leaf) -> tuple[Part, ToBase]:
  match site.kind:
    case "dense":
      return _dense(site, data, signal, leaf)
    case "batched":
      return _batched(site, data, signal)
    case "conv":
      return _conv_factors.conv_part(site, data, signal, _from_kernel(site))
    case "rows":
      return _rows(site, data, signal), None
    case "shift":
      cotangent = signal
    case "negative_shift":
      cotangent = -signal
    case "scale":
      cotangent = signal * _align(data, signal)
    case other:
      raise AssertionError(f"no rule for a site of kind {other}")
  cotangent = _unbroadcast(cotangent, site.operand)
  found = Whole(jax.vmap(site.view.to_base)(cotangent))
  return found, (lambda stacked: stacked[0]) if site.view.outer else None


def _dense(site: Site, data: jax.Array, signal: jax.Array, leaf: Leaf) -> tuple[Product, ToBase]:
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
  if plain and len(own) == 1 and site.view.outer is None:
    axis = own[0]
    for _, params in reversed(site.view.operations):
      axis = params["permutation"][axis]
    left, right = (inputs, signals) if axis == 0 else (signals, inputs)
    return Product(left, right, None, leaf.shape[0]), None
  return Product(inputs, signals, None, fan_in), _from_axes(site, [*own, *own_free])


def _batched(site: Site, data: jax.Array, signal: jax.Array) -> tuple[Product, ToBase]:
  """A matrix for each index of the batch axes, as per-head weights are."""
  contract, batch = site.params["dimension_numbers"]
  side = site.position
  own, other = contract[side], contract[1 - side]
  own_batch, other_batch = batch[side], batch[1 - side]
  own_free = [d for d in range(len(site.operand)) if d not in (*own, *own_batch)]
  data_free = [d for d in range(data.ndim - 1) if d not in (*other, *other_batch)]
  n, stack = data.shape[0], math.prod(site.operand[d] for d in own_batch)
  fan_in = math.prod(site.operand[d] for d in own)
  fan_out = math.prod(site.operand[d] for d in own_free)
  positions = math.prod(data.shape[d + 1] for d in data_free)
  order = [*(d + 1 for d in other_batch), 0, *(d + 1 for d in (*data_free, *other))]
  inputs = data.transpose(order).reshape(stack * n, positions, fan_in)
  # The result's axes are (batch, those of the first operand, those of the second).
  first, second = (positions, fan_out) if side else (fan_out, positions)
  by_batch = signal.reshape(n, stack, first, second).swapaxes(0, 1)
  signals = by_batch.reshape(stack * n, first, second)
  if not side:
    signals = signals.swapaxes(1, 2)
  product = Product(inputs, signals, None, fan_in, stack)
  return product, _from_axes(site, [*own_batch, *own, *own_free])


def _from_axes(site: Site, axes: list[int]) -> Callable[[jax.Array], jax.Array]:
  """[stack, height, width] -> base, where these hold the operand's axes in this order."""

  def to_base(matrices: jax.Array) -> jax.Array:
    shape = [site.operand[d] for d in axes]
    return site.view.to_base(matrices.reshape(shape).transpose(_inverse(axes)))

  return to_base


def _from_kernel(site: Site) -> Callable[[jax.Array], jax.Array]:
  """[*kernel, in, out] -> base, or what has that many entries in that order."""
  _, (fan_out, fan_in, *spatial), _ = site.params["dimension_numbers"]
  return _from_axes(site, [*spatial, fan_in, fan_out])


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
