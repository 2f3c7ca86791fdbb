"""Plain convolutional networks: convolutions, pooling, dense layers."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax

from jaxfair import checks
from jaxfair.models import _blocks
from jaxfair.models._dense import ACTIVATIONS
from jaxfair.types import Model


class Conv(NamedTuple):
  """One convolution, then max-pooling, then ReLU.

  Attributes:
    features: number of output channels.
    kernel: side of the square kernel.
    stride: step of the kernel.
    pool: side of the pooling squares; 1 pools nothing.
    padding: "SAME" keeps the size (before the stride), "VALID" pads nothing.
  """

  features: int
  kernel: int = 3
  stride: int = 1
  pool: int = 1
  padding: str = "SAME"


def convnet(
  num_classes: int,
  convs: Sequence[Conv] = (Conv(16, stride=2), Conv(32, stride=2)),
  hidden: Sequence[int] = (),
  *,
  activation: str = "relu",
  standardize: bool = False,
) -> Model:
  """A convolutional network on [h, w, c] images; by default a small one.

  The default, two 3x3 convolutions of stride 2 with 16 and 32 channels and one
  dense layer, trains on two cores: 28 x 28 gray images and 10 classes make
  20,490 parameters.

  Weights are drawn from a normal distribution with variance 2 / fan_in before a ReLU (He et al.
  2015) and 1 / fan_in before the logits; biases start at zero. Pixels are not scaled: scale them to
  about [0, 1] first.

  Args:
    num_classes: number of logits.
    convs: the convolutions, in order.
    hidden: widths of the dense layers between them and the logits.
    activation: "relu", "tanh" or "tempered_sigmoid", as in `mlp`; after each of these layers.
    standardize: gives the kernel of every filter mean 0 and variance 1 / fan_in before it is
      applied (Qiao et al. 2019), which needs no batch statistics. Private training then
      computes the gradients of these kernels per example, which is slower.

  Returns:
    A model; the same arguments give the same object.
  """
  checks.integer("num_classes", num_classes, low=1)
  for width in hidden:
    checks.integer("hidden", width, low=1)
  for layer in convs:
    for name in ("features", "kernel", "stride", "pool"):
      checks.integer(f"convs: {name}", getattr(layer, name), low=1)
    checks.one_of("convs: padding", layer.padding, ("SAME", "VALID"))
  # Monotone functions: pooling comes first.
  checks.one_of("activation", activation, ("relu", "tanh", "tempered_sigmoid"))
  return _convnet(int(num_classes), tuple(convs), tuple(hidden), activation, bool(standardize))


def convnet_color_mnist(num_classes: int = 10) -> Model:
  """The FairPATE paper's network for colored digits (its Table 3).

  5x5 convolutions with 20 and 50 channels, each max-pooled by 2; a dense layer
  of 500. On 28 x 28 x 3 images, 432,080 parameters. The rows of the table are
  lost in the text at hand: this is the LeNet that is usual for MNIST, with
  three input channels, in its place.

  Args:
    num_classes: number of logits.

  Returns:
    A model.
  """
  convs = (Conv(20, kernel=5, pool=2, padding="VALID"), Conv(50, kernel=5, pool=2, padding="VALID"))
  return convnet(num_classes, convs, (500,))


def convnet_celeba(num_classes: int = 2, *, width: int = 64) -> Model:
  """The FairPATE paper's network for CelebA (its Table 4).

  Four 3x3 convolutions with w, 2w, 4w and 8w channels, each max-pooled by 2;
  dense layers of 16w and 4w with ReLU between. On 256 x 256 x 3 images the
  last maps are 14 x 14, as in the table: 104,575,362 parameters.

  Args:
    num_classes: number of logits.
    width: w; 64 in the paper. Smaller ones train on a laptop.

  Returns:
    A model.
  """
  checks.integer("width", width, low=1)
  convs = [Conv(width * 2**stage, pool=2, padding="VALID") for stage in range(4)]
  return convnet(num_classes, convs, (16 * width, 4 * width))


def convnet_medium(num_classes: int, *, width: int = 16) -> Model:
  """Three convolutions, then three dense layers.

  3x3 convolutions with w, 2w and 4w channels, each max-pooled by 2; dense
  layers of 8w and 4w; the logits. The networks of the thesis's chapter on
  robustness have this shape; it gives no widths.

  Args:
    num_classes: number of logits.
    width: w.

  Returns:
    A model.
  """
  checks.integer("width", width, low=1)
  convs = [Conv(width * 2**stage, pool=2) for stage in range(3)]
  return convnet(num_classes, convs, (8 * width, 4 * width))


class _ConvNet(nn.Module):
  num_classes: int
  convs: tuple[Conv, ...]
  hidden: tuple[int, ...]
  activation: str
  standardize: bool

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    activate = ACTIVATIONS[self.activation].function
    for features, kernel, stride, pool, padding in self.convs:
      _blocks.require_pixels(x, kernel if padding == "VALID" else 1)
      x = _blocks.conv(features, kernel, stride, padding=padding, standardize=self.standardize)(x)
      # Pooling first: the same values as activation first, on a smaller map.
      if pool > 1:
        _blocks.require_pixels(x, pool)
        x = _blocks.max_pool(x, pool)
      x = activate(x)
    return _blocks.head(x, self.hidden, self.num_classes, activate)


@functools.cache
def _convnet(
  num_classes: int, convs: tuple[Conv, ...], hidden: tuple[int, ...], *options: Any
) -> Model:
  return _blocks.image_model(_ConvNet(num_classes, convs, hidden, *options))
