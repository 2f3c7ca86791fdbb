"""Networks as `Model(init, apply)`, losses per example, and the coupling check.

There are no batch statistics and no dropout here, and nothing knows about groups or privacy.
"""

import importlib
from typing import TYPE_CHECKING, Any

from jaxfair.models._adapters import from_flax, from_haiku
from jaxfair.models._coupling import check_independent
from jaxfair.models._dense import logistic, mlp
from jaxfair.models._extractors import extractor
from jaxfair.models._features import embed, with_head
from jaxfair.models._fine_tuning import frozen, low_rank
from jaxfair.models._inference import predict, scores
from jaxfair.models._losses import cross_entropy, soft_cross_entropy, zero_one
from jaxfair.models._module_adapters import from_equinox, from_nnx
from jaxfair.models._networks import network
from jaxfair.models._pretrained import pretrained
from jaxfair.models._scattering import scattering

if TYPE_CHECKING:
  from jaxfair.models._convnets import Conv, convnet
  from jaxfair.models._resnets import resnet
  from jaxfair.models._vggs import vgg

from jaxfair.models._coupling import CouplingError

__all__ = [
  "Conv",
  "CouplingError",
  "check_independent",
  "convnet",
  "cross_entropy",
  "embed",
  "extractor",
  "from_equinox",
  "from_flax",
  "from_haiku",
  "from_nnx",
  "frozen",
  "logistic",
  "low_rank",
  "mlp",
  "network",
  "predict",
  "pretrained",
  "resnet",
  "scattering",
  "scores",
  "soft_cross_entropy",
  "vgg",
  "with_head",
  "zero_one",
]

# Modules that need flax, which takes longer to import than jax, load on use.
_LAZY = {
  "Conv": "_convnets",
  "convnet": "_convnets",
  "convnet_celeba": "_convnets",
  "convnet_color_mnist": "_convnets",
  "convnet_medium": "_convnets",
  "resnet": "_resnets",
  "vgg": "_vggs",
}


def __getattr__(name: str) -> Any:
  if name in _LAZY:
    module = importlib.import_module(f"jaxfair.models.{_LAZY[name]}")
    return getattr(module, name)
  raise AttributeError(f"module 'jaxfair.models' has no attribute {name!r}")


def __dir__() -> list[str]:
  return [*globals(), *_LAZY]
