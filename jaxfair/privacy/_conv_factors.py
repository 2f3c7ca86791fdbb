"""From a convolution's images and signals to its part in the per-example gradients."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair.models import _patches
from jaxfair.privacy import _factors
from jaxfair.privacy._factors import Part, Product, Whole
from jaxfair.privacy._sites import Site

ToBase = Callable[[jax.Array], jax.Array]
# Bytes of patches at a time, which stay in a core's cache. Written to memory and read again,
# patches take several times as long as the products.
PATCHES = 2**20
# Of fewer channels the products of single offsets are too thin to be fast.
MANY_CHANNELS = 32


def conv_part(
  site: Site, data: jax.Array, signal: jax.Array, to_base: ToBase
) -> tuple[Part, ToBase]:
  """A convolution's part in its kernel's per-example gradients, in one round.

  Args:
    site: the convolution.
    data: [n, ...] its images.
    signal: [n, ...] cotangent of its result.
    to_base: from [*kernel, in, out] to the base of the site's view.

  Returns:
    The part, and how its [stack, ...] gradients become the base's.
  """
  lhs_spec, rhs_spec, out_spec = site.params["dimension_numbers"]
  images = data.transpose([0, *(d + 1 for d in (lhs_spec[0], *lhs_spec[2:], lhs_spec[1]))])
  images = _with_holes(images, site.params["lhs_dilation"])
  signals = signal.transpose([0, *(d + 1 for d in (out_spec[0], *out_spec[2:], out_spec[1]))])
  groups = site.params["feature_group_count"]
  kernel = [site.operand[d] for d in rhs_spec[2:]]
  per_group, fan_out = site.operand[rhs_spec[1]], site.operand[rhs_spec[0]]
  window = {
    "strides": site.params["window_strides"],
    "padding": site.params["padding"],
    "dilation": site.params["rhs_dilation"],
  }
  positions = math.prod(signals.shape[1:-1])
  if groups > 1 and per_group == 1:
    return _by_offset(_depthwise, images, signals, kernel, window), to_base
  fan_in = math.prod(kernel) * per_group
  few = fan_in * fan_out <= 2 * positions * (fan_in + fan_out)  # as `gather` decides
  n = signals.shape[0]
  # An accelerator would wait for one small chunk after the other.
  if groups == 1 and few and n > 1 and jax.default_backend() == "cpu":
    gradients, transposed = _by_chunk(images, signals, kernel, window)
    return Whole(gradients), (lambda g: to_base(g.swapaxes(1, 2))) if transposed else to_base
  if groups == 1 and few and per_group >= MANY_CHANNELS:
    return _by_offset(_matrix, images, signals, kernel, window), to_base
  inputs = _patches.extract(images, kernel, **window)
  if groups == 1:
    left, right = inputs.reshape(n, positions, fan_in), signals.reshape(n, positions, fan_out)
    return Product(left, right, None, fan_in), to_base
  width = fan_out // groups
  by_group = inputs.reshape(n, positions, -1, groups, per_group).transpose(3, 0, 1, 2, 4)
  right = signals.reshape(n, positions, groups, width).transpose(2, 0, 1, 3)

  def from_groups(matrices: jax.Array) -> jax.Array:
    """[groups, kernel * in, out] -> base."""
    return to_base(matrices.swapaxes(0, 1).reshape(fan_in, fan_out))

  product = Product(
    by_group.reshape(groups * n, positions, fan_in),
    right.reshape(groups * n, positions, width),
    None,
    fan_in,
    groups,
  )
  return product, from_groups


def _with_holes(images: jax.Array, dilation: tuple[int, ...]) -> jax.Array:
  """[n, batch, *spatial, channels] images as a transposed convolution sees them."""
  if all(d == 1 for d in dilation):
    return images
  zero = jnp.zeros((), images.dtype)
  spread = [(0, 0, 0)] * 2 + [(0, 0, d - 1) for d in dilation] + [(0, 0, 0)]
  return jax.lax.pad(images, zero, spread)


def _by_chunk(
  images: jax.Array, signals: jax.Array, kernel: list[int], window: dict[str, Any]
) -> tuple[jax.Array, bool]:
  """Gradients of a kernel, a few examples at a time, by patches that stay in the cache.

  A single example, which two passes map over the others, cannot be cut; see `_by_offset`.

  Args:
    images: [n, batch, *spatial, channels].
    signals: [n, batch, *spatial, channels].
    kernel: spatial size of the kernel.
    window: strides, padding and dilation.

  Returns:
    [n, kernel * in, out], or its transpose, and whether it is that.
  """
  n, channels = signals.shape[0], images.shape[-1]
  fan_in, fan_out = math.prod(kernel) * channels, signals.shape[-1]
  positions = math.prod(signals.shape[1:-1])
  most = max(1, PATCHES // max(1, positions * fan_in * images.dtype.itemsize))
  size = _chunk_size(n, most)
  chunks = -(-n // size)

  def cut(array: jax.Array) -> jax.Array:
    """[chunks, size, ...], zeros behind the last example."""
    ends = [(0, chunks * size - n)] + [(0, 0)] * (array.ndim - 1)
    return jnp.pad(array, ends).reshape(chunks, size, *array.shape[1:])

  def of_chunk(both: tuple[jax.Array, jax.Array]) -> jax.Array:
    some, theirs = both
    patches = _patches.extract(some, kernel, **window).reshape(size, positions, fan_in)
    return _factors.products(patches, theirs.reshape(size, positions, fan_out))

  found = jax.lax.map(of_chunk, (cut(images), cut(signals)))
  return found.reshape(chunks * size, *found.shape[2:])[:n], fan_in > fan_out


def _chunk_size(n: int, most: int) -> int:
  """A number of examples up to `most`: one that divides n, for which nothing is copied, if any."""
  fewest = -(-n // most)
  even = (-(-n // chunks) for chunks in range(fewest, 2 * fewest) if n % chunks == 0)
  return next(even, -(-n // fewest))


def _by_offset(
  contract: Callable[[jax.Array, jax.Array], jax.Array],
  images: jax.Array,
  signals: jax.Array,
  kernel: list[int],
  window: dict[str, Any],
) -> Whole:
  """Gradients of a kernel, a stack of its offsets, one after the other.

  Patches of all offsets together are as many times larger than the images as the kernel has
  offsets. In a loop they are not there at the same time, nor before the signals are.

  Args:
    contract: from what an offset sees and the signals, [n, positions, channels] both, to the
      gradient there, [n, in, out].
    images: [n, batch, *spatial, channels].
    signals: [n, batch, *spatial, channels].
    kernel: spatial size of the kernel.
    window: strides, padding and dilation.
  """
  n, batch, *out, _ = signals.shape
  low_high = [(0, 0), (0, 0), *window["padding"], (0, 0)]
  padded = jax.lax.pad(
    images, jnp.zeros((), images.dtype), [(low, high, 0) for low, high in low_high]
  )
  positions = batch * math.prod(out)
  rows = signals.reshape(n, positions, signals.shape[-1])
  spans = [(size - 1) * stride + 1 for size, stride in zip(out, window["strides"], strict=True)]
  offsets = itertools.product(*(range(k) for k in kernel))
  starts = np.array([*offsets], np.int32) * np.array(window["dilation"], np.int32)

  def at_offset(_: None, start: jax.Array) -> tuple[None, jax.Array]:
    begin = [0, 0, *start, 0]
    seen = jax.lax.dynamic_slice(padded, begin, (n, batch, *spans, padded.shape[-1]))
    seen = seen[(slice(None), slice(None), *(slice(None, None, s) for s in window["strides"]))]
    return None, contract(seen.reshape(n, positions, seen.shape[-1]), rows)

  _, gradients = jax.lax.scan(at_offset, None, jnp.asarray(starts))
  return Whole(gradients.reshape(len(starts) * n, *gradients.shape[2:]), stack=len(starts))


def _depthwise(seen: jax.Array, signals: jax.Array) -> jax.Array:
  """Each output channel sees one input channel: [n, 1, out]."""
  n, positions, channels = seen.shape
  by_channel = signals.reshape(n, positions, channels, signals.shape[-1] // channels)
  return jnp.sum(by_channel * seen[..., None], axis=1).reshape(n, 1, signals.shape[-1])


def _matrix(seen: jax.Array, signals: jax.Array) -> jax.Array:
  return jnp.einsum("npi,npo->nio", seen, signals)
