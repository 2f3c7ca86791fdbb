"""Flax pieces that the image networks share.

Parameters enter through plain convolutions, matrix products, additions and
multiplications, so that per-example gradient norms can be read off the layers.
"""

import math
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.models import _initial, _patches
from jaxfair.models._adapters import from_flax
from jaxfair.types import Array, Key, Model, Params


def image_model(module: nn.Module) -> Model:
  """A module on [n, h, w, c] as a model that says so when it gets another.

  Kernels start normal with variance 2 / fan_in, the logits' with 1 / fan_in;
  scales start at one and biases at zero.
  """
  inner = from_flax(module)

  def init(key: Key, x_one: Array) -> Params:
    checks.require(
      np.ndim(x_one) == 3,
      f"x_one has shape {np.shape(x_one)}; pass one image [h, w, c], with "
      "c = 1 for gray ones and without a batch axis",
    )
    return _initialize(jax.eval_shape(inner.init, key, _as_float(x_one)), key)

  def apply(params: Params, x: Array) -> jax.Array:
    checks.require(
      np.ndim(x) == 4,
      f"x has shape {np.shape(x)}; pass a batch of images [n, h, w, c], with c = 1 for gray ones",
    )
    return inner.apply(params, _as_float(x))

  return Model(init, apply)


def conv(
  features: int,
  kernel: int,
  stride: int = 1,
  *,
  padding: str | int = "SAME",
  bias: bool = True,
  standardize: bool = False,
) -> nn.Conv:
  """A square convolution, of kernels as they are or standardized."""
  sides = ((padding, padding),) * 2 if isinstance(padding, int) else padding
  return nn.Conv(
    features,
    (kernel, kernel),
    (stride, stride),
    padding=sides,
    use_bias=bias,
    conv_general_dilated=_convolve_standardized if standardize else _convolve,
  )


def head(
  x: jax.Array,
  hidden: tuple[int, ...],
  num_classes: int,
  activation: Callable[[Any], jax.Array] = nn.relu,
) -> jax.Array:
  """Dense layers and the logits; called inside a module's `__call__`."""
  x = x.reshape(x.shape[0], math.prod(x.shape[1:]))
  for width in hidden:
    x = activation(nn.Dense(width)(x))
  return nn.Dense(num_classes, name=_LOGITS)(x)


_LOGITS = "logits"


def _convolve(
  x: jax.Array, kernel: jax.Array, strides: Any, padding: Any, *, rhs_dilation: Any, **others: Any
) -> jax.Array:
  """`lax.conv_general_dilated`, by a matrix product on the smallest maps.

  XLA's convolution on CPU runs 40 times slower, and its gradients more, where
  the kernel is wider than what it makes: the last stages of deep networks.
  """
  sides = padding
  if isinstance(padding, str):
    sides = jax.lax.padtype_to_pads(x.shape[1:3], kernel.shape[:2], strides, padding)
  made = [
    (size + low + high - side) // stride + 1
    for size, (low, high), side, stride in zip(
      x.shape[1:3], sides, kernel.shape[:2], strides, strict=True
    )
  ]
  if min(made) >= kernel.shape[0]:
    return jax.lax.conv_general_dilated(
      x, kernel, strides, padding, rhs_dilation=rhs_dilation, **others
    )
  rows = _patches.extract(
    x[None], kernel.shape[:2], strides=strides, padding=sides, dilation=rhs_dilation
  )[0]
  return rows @ kernel.reshape(-1, kernel.shape[-1])


def _convolve_standardized(
  x: jax.Array, kernel: jax.Array, *arguments: Any, **others: Any
) -> jax.Array:
  """`_convolve` by kernels of mean 0 and variance 1 / fan_in, filter by filter."""
  axes = tuple(range(kernel.ndim - 1))
  centered = kernel - jnp.mean(kernel, axis=axes)
  length = jnp.sqrt(jnp.sum(jnp.square(centered), axis=axes) + 1e-8)
  return _convolve(x, centered / length, *arguments, **others)


def max_pool(x: jax.Array, window: int, padding: str = "VALID") -> jax.Array:
  """The largest value in each square, without overlap."""
  size = (window, window)
  return nn.max_pool(x, size, strides=size, padding=padding)


def require_pixels(x: jax.Array, smallest: int) -> None:
  """Raises if the next layer would shrink a feature map to nothing."""
  checks.require(
    min(x.shape[1:3]) >= smallest,
    f"x leaves maps of {x.shape[1]} x {x.shape[2]} pixels where a layer needs "
    f"{smallest}; use larger images or a network with fewer layers",
  )


class GroupNorm(nn.Module):
  """Normalizes groups of channels of one example (Wu and He 2018).

  y = scale * (x - mean_group) / sqrt(var_group + 1e-5) + bias

  At most 32 groups, and at least four channels in each where there are as
  many: a group of one channel would erase maps of one pixel. Statistics are
  of one example only.
  """

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    """Normalizes [n, h, w, c]."""
    channels = x.shape[-1]
    groups = num_groups(channels)
    grouped = x.reshape(*x.shape[:-1], groups, channels // groups)
    axes = (1, 2, 4)
    centered = grouped - jnp.mean(grouped, axes, keepdims=True)
    variance = jnp.mean(jnp.square(centered), axes, keepdims=True)
    normal = (centered * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape)
    scale = self.param("scale", nn.initializers.ones, (channels,))
    bias = self.param("bias", nn.initializers.zeros, (channels,))
    return normal * scale + bias


def num_groups(channels: int) -> int:
  """The largest divisor of channels up to 32 that leaves four a group."""
  limit = max(1, min(32, channels // 4))
  return max(k for k in range(1, limit + 1) if channels % k == 0)


def check_width(width: int) -> int:
  """Requires a whole number of channels, a multiple of four."""
  checks.integer("width", width, low=4)
  if width % 4:
    nearest = 4 * math.ceil(width / 4)
    raise checks.ArgumentError(f"width={width} must be a multiple of 4; use {nearest}")
  return int(width)


def _initialize(shapes: Params, key: jax.Array) -> Params:
  """Fills a tree of shapes by the names of its leaves."""
  paths, structure = jax.tree.flatten_with_path(shapes)
  layers = [(path[-2].key, path[-1].key, leaf.shape) for path, leaf in paths]
  kernels = [(layer, shape) for layer, leaf, shape in layers if leaf == "kernel"]
  weights = iter(
    _initial.scaled_normals(
      key,
      tuple(shape for _, shape in kernels),
      tuple(1.0 if layer == _LOGITS else 2.0 for layer, _ in kernels),
    )
  )
  start = {"kernel": lambda _: next(weights), "scale": jnp.ones, "bias": jnp.zeros}
  leaves = [start[leaf](shape) for _, leaf, shape in layers]
  return jax.tree.unflatten(structure, leaves)


def _as_float(x: Array) -> jax.Array:
  """Pixels as float32; real types stay as they are."""
  x = jnp.asarray(x)
  return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(jnp.float32)
