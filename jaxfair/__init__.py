"""jaxfair: who pays for privacy?

Trains private models, measures what privacy does to every group of people,
explains it and mitigates it. Packages load on first use, so that importing
jaxfair costs nothing beyond jax itself.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_PACKAGES = frozenset(
  {
    "types",
    "tree",
    "checks",
    "data",
    "models",
    "privacy",
    "accounting",
    "fairness",
    "analysis",
    "auditing",
    "training",
    "pate",
    "decisions",
    "disclosure",
    "pruning",
    "robustness",
    "methods",
    "frontier",
    "experiments",
    "studies",
    "report",
    "sklearn",
  }
)

_FUNCTIONS = {"load": "methods"}  # load(folder): a released model

__all__ = sorted({*_PACKAGES, *_FUNCTIONS})


def __getattr__(name: str) -> Any:
  if name in _PACKAGES:
    return importlib.import_module(f"jaxfair.{name}")
  if name in _FUNCTIONS:
    return getattr(importlib.import_module(f"jaxfair.{_FUNCTIONS[name]}"), name)
  raise AttributeError(f"module 'jaxfair' has no attribute {name!r}")


def __dir__() -> list[str]:
  return [*globals(), *__all__]
