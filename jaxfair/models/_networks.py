"""Networks by name: the one table that configs and command lines choose from."""

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from jaxfair import checks
from jaxfair.models._dense import logistic, mlp
from jaxfair.types import Model, PyTree

_Builder = Callable[[int, tuple[int, ...], int | None], Model]


def network(
  name: str, num_classes: int, *, hidden: Sequence[int] = (64,), width: int | None = None
) -> Model:
  """The network with this name.

  Args:
    name: one of `NETWORKS`.
    num_classes: number of logits.
    hidden: widths of the dense layers of "convnet" and of "mlp", "tanh_mlp" and "tempered_mlp".
    width: channels of the first convolution; each network's own by default.
  """
  checks.one_of("network", name, NETWORKS)
  return NETWORKS[name](num_classes, tuple(hidden), width)


def _lazy(function: str, *leading: Any, **fixed: PyTree) -> _Builder:
  """A builder in a module that needs flax, which is slow to import."""

  def build(num_classes: int, hidden: tuple[int, ...], width: int | None) -> Model:
    models = importlib.import_module("jaxfair.models")
    options = fixed if width is None else {**fixed, "width": width}
    made: Model = getattr(models, function)(*leading, num_classes, **options)
    return made

  return build


def _small_cnn(
  num_classes: int, hidden: tuple[int, ...], width: int | None, standardize: bool = False
) -> Model:
  from jaxfair.models._convnets import Conv, convnet

  width = width or 32
  convs = [Conv(width * 2**stage, stride=2) for stage in range(3)]
  return convnet(num_classes, convs, (8 * width,), standardize=standardize)


def _strided_cnn(num_classes: int, hidden: tuple[int, ...], width: int | None) -> Model:
  from jaxfair.models._convnets import Conv, convnet

  width = width or 8
  convs = (Conv(width, kernel=5, stride=4), Conv(2 * width, stride=2), Conv(4 * width, stride=2))
  return convnet(num_classes, convs, (8 * width,))


def _two_stage_cnn(num_classes: int, hidden: tuple[int, ...], width: int | None) -> Model:
  from jaxfair.models._convnets import Conv, convnet

  width = width or 32
  convs = [Conv(width * 2**stage, pool=2) for stage in range(2)]
  return convnet(num_classes, convs, (8 * width, 4 * width))


def _convnet(num_classes: int, hidden: tuple[int, ...], width: int | None) -> Model:
  from jaxfair.models._convnets import convnet

  return convnet(num_classes, hidden=hidden)


NETWORKS: dict[str, _Builder] = {
  "logistic": lambda num_classes, hidden, width: logistic(num_classes),
  "mlp": lambda num_classes, hidden, width: mlp(hidden, num_classes),
  "tanh_mlp": lambda num_classes, hidden, width: mlp(hidden, num_classes, "tanh"),
  "tempered_mlp": lambda num_classes, hidden, width: mlp(hidden, num_classes, "tempered_sigmoid"),
  "convnet": _convnet,
  "small_cnn": _small_cnn,  # three convolutions of stride 2: for two cores
  "standardized_cnn": functools.partial(_small_cnn, standardize=True),
  "strided_cnn": _strided_cnn,  # the first of stride 4: smaller still
  "cnn": _lazy("convnet_medium"),
  "cnn2": _two_stage_cnn,
  "cnn_color_mnist": _lazy("convnet_color_mnist"),
  "cnn_celeba": _lazy("convnet_celeba"),
  **{f"resnet{depth}": _lazy("resnet", depth) for depth in (18, 50)},
  **{f"vgg{depth}": _lazy("vgg", depth) for depth in (13, 19)},
}
