"""Residual networks with GroupNorm (He et al. 2016; Wu and He 2018)."""

import functools
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.models import _blocks
from jaxfair.types import Model


def resnet(depth: int, num_classes: int, *, width: int = 64, small_images: bool = True) -> Model:
  """ResNet-18 or ResNet-50 with GroupNorm in place of BatchNorm.

  Convolutions start normal with variance 2 / fan_in, norms at scale 1 and bias
  0, the logits' weights with variance 1 / fan_in. The stride of a bottleneck
  sits on its 3x3 convolution.

  Args:
    depth: 18 (basic blocks) or 50 (bottlenecks).
    num_classes: number of logits.
    width: channels of the first stage, a multiple of 4; 64 in the paper. The
      number of parameters grows with its square.
    small_images: True opens with a 3x3 convolution and no pooling, for images
      of about 28 to 64 pixels. False opens as the paper does, for 224 pixels:
      7x7 with stride 2, then max-pooling by 2.

  Returns:
    A model on [h, w, c] images; the same arguments give the same object.
  """
  checks.one_of("depth", depth, _DESIGNS)
  checks.integer("num_classes", num_classes, low=1)
  width = _blocks.check_width(width)
  return _resnet(int(depth), int(num_classes), width, bool(small_images))


class _BasicBlock(nn.Module):
  width: int
  stride: int

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    y = _conv(self.width, 3, self.stride)(x)
    y = nn.relu(_blocks.GroupNorm()(y))
    y = _blocks.GroupNorm()(_conv(self.width, 3)(y))
    return nn.relu(y + _shortcut(x, self.width, self.stride))


class _Bottleneck(nn.Module):
  width: int
  stride: int

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    y = nn.relu(_blocks.GroupNorm()(_conv(self.width, 1)(x)))
    y = nn.relu(_blocks.GroupNorm()(_conv(self.width, 3, self.stride)(y)))
    y = _blocks.GroupNorm()(_conv(4 * self.width, 1)(y))
    return nn.relu(y + _shortcut(x, 4 * self.width, self.stride))


class _Design(NamedTuple):
  block: Any
  repeats: tuple[int, ...]


_DESIGNS = {18: _Design(_BasicBlock, (2, 2, 2, 2)), 50: _Design(_Bottleneck, (3, 4, 6, 3))}


class _ResNet(nn.Module):
  depth: int
  num_classes: int
  width: int
  small_images: bool

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    design = _DESIGNS[self.depth]
    if self.small_images:
      x = nn.relu(_blocks.GroupNorm()(_conv(self.width, 3)(x)))
    else:
      x = nn.relu(_blocks.GroupNorm()(_conv(self.width, 7, 2)(x)))
      x = nn.max_pool(x, (3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
    for stage, repeats in enumerate(design.repeats):
      for index in range(repeats):
        stride = 2 if stage > 0 and index == 0 else 1
        x = design.block(self.width * 2**stage, stride)(x)
    return _blocks.head(jnp.mean(x, axis=(1, 2)), (), self.num_classes)


def _conv(features: int, kernel: int, stride: int = 1) -> nn.Conv:
  # The norm that follows has the bias. Equal padding on both sides, as in the
  # paper; "SAME" would shift strided maps by half a pixel.
  padding = kernel // 2
  return _blocks.conv(features, kernel, stride, padding=padding, bias=False)


def _shortcut(x: jax.Array, features: int, stride: int) -> jax.Array:
  if x.shape[-1] == features and stride == 1:
    return x
  return _blocks.GroupNorm()(_conv(features, 1, stride)(x))


@functools.cache
def _resnet(depth: int, num_classes: int, width: int, small_images: bool) -> Model:
  return _blocks.image_model(_ResNet(depth, num_classes, width, small_images))
