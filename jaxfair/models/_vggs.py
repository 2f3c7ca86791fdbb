"""VGG networks with GroupNorm (Simonyan and Zisserman 2015)."""

import functools

import flax.linen as nn
import jax

from jaxfair import checks
from jaxfair.models import _blocks
from jaxfair.types import Model


def vgg(depth: int, num_classes: int, *, width: int = 64) -> Model:
  """VGG-13 or VGG-19 with GroupNorm, and without dropout.

  Five stages of 3x3 convolutions, each followed by GroupNorm and ReLU, with w,
  2w, 4w, 8w and 8w channels; max-pooling by 2 after each stage, which keeps an
  odd border pixel so that 28-pixel images survive five of them; dense layers of
  64w and 64w; the logits. On 224 x 224 images this is the paper's network.

  Weights start normal with variance 2 / fan_in before a ReLU and 1 / fan_in
  before the logits, biases at zero.

  Args:
    depth: 13 or 19.
    num_classes: number of logits.
    width: w, a multiple of 4; 64 in the paper. The number of parameters grows
      with its square.

  Returns:
    A model on [h, w, c] images; the same arguments give the same object.
  """
  checks.one_of("depth", depth, _REPEATS)
  checks.integer("num_classes", num_classes, low=1)
  return _vgg(int(depth), int(num_classes), _blocks.check_width(width))


_REPEATS = {13: (2, 2, 2, 2, 2), 19: (2, 2, 4, 4, 4)}
_GROWTH = (1, 2, 4, 8, 8)


class _VGG(nn.Module):
  depth: int
  num_classes: int
  width: int

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    for repeats, growth in zip(_REPEATS[self.depth], _GROWTH, strict=True):
      for _ in range(repeats):
        x = _blocks.conv(growth * self.width, 3)(x)
        x = nn.relu(_blocks.GroupNorm()(x))
      x = _blocks.max_pool(x, 2, padding="SAME")
    dense = 64 * self.width
    return _blocks.head(x, (dense, dense), self.num_classes)


@functools.cache
def _vgg(depth: int, num_classes: int, width: int) -> Model:
  return _blocks.image_model(_VGG(depth, num_classes, width))
