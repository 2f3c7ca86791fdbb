"""Votes for SF-PATE: teachers of groups, fair teachers, or anybody's own."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from jaxfair import checks, training
from jaxfair.pate._teachers import train_teachers
from jaxfair.pate._votes import predict_votes, vote_counts
from jaxfair.types import Examples, Features, Key, Model, PerExampleLoss, Trainer


class Ensemble(Protocol):
  """Anything that learns from disjoint parts and votes."""

  def __call__(self, parts: Examples, x: Features) -> Any:
    """[k, m] class ids: teacher i learns from part i alone."""


def votes(
  model: Model | None,
  loss: PerExampleLoss,
  parts: Examples,
  x: Features,
  config: Any,
  *,
  num_classes: int,
  key: Key,
  trainer: Trainer = training.fit,
  ensemble: Ensemble | None = None,
) -> np.ndarray:
  """[m, C] votes of teachers, each trained on one of the parts; not for release."""
  if ensemble is None:
    if model is None:
      raise checks.ArgumentError(
        "teacher_model is missing; pass a model with one output per group, or an ensemble"
      )
    trained = train_teachers(model, loss, parts, config, key=key, trainer=trainer)
    found = predict_votes(model, trained, x)
  else:
    found = ensemble(parts, x)
  wanted = (len(parts.y), len(x))
  checks.require(
    np.shape(found) == wanted,
    f"the ensemble returned shape {np.shape(found)}; return {wanted}, one row "
    "per teacher and one column per query",
  )
  return np.asarray(vote_counts(found, num_classes, num_teachers=wanted[0]))


def estimators(make: Callable[[], Any]) -> Ensemble:
  """Teachers that are scikit-learn or fairlearn estimators.

      pate.fair_teachers(..., ensemble=pate.estimators(lambda: GridSearch(...)))

  Args:
    make: a new estimator with `fit(x, y, sensitive_features=...)` or, if it
      takes no such argument, `fit(x, y)`; and `predict(x)`.

  Returns:
    An ensemble: one estimator for each part, fitted one after the other.
  """

  def votes(parts: Examples, x: Features) -> np.ndarray:
    return np.stack(
      [
        _fitted(make(), Examples(*map(np.asarray, part))).predict(x)
        for part in zip(*parts, strict=True)
      ]
    ).astype(np.int32)

  return votes


def _fitted(estimator: Any, part: Examples) -> Any:
  names = _arguments(estimator.fit)
  if "sensitive_features" in names:
    return estimator.fit(part.x, part.y, sensitive_features=part.group) or estimator
  return estimator.fit(part.x, part.y) or estimator


def _arguments(function: Callable[..., Any]) -> Sequence[str]:
  found = inspect.signature(function).parameters
  variable = inspect.Parameter.VAR_KEYWORD
  names = list(found)
  # fairlearn's reductions take their groups through **kwargs.
  if any(p.kind is variable for p in found.values()):
    names.append("sensitive_features")
  return names
