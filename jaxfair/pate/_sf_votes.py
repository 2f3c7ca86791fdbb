"""Votes for SF-PATE: teachers of groups, fair teachers, or anybody's own."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import numpy as np

from jaxfair import checks, training
from jaxfair.pate._teachers import train_teachers
from jaxfair.pate._votes import predict_votes, vote_counts
from jaxfair.types import Examples, Model, PerExampleLoss, Trainer


class Ensemble(Protocol):
  """Anything that learns from disjoint parts and votes."""

  def __call__(self, parts: Examples, x: Any) -> Any:
    """[k, m] class ids: teacher i learns from part i alone."""


def group_votes(
  model: Model | None,
  loss: PerExampleLoss,
  parts: Examples,
  x: Any,
  config: training.FitConfig,
  *,
  num_groups: int,
  key: jax.Array,
  ensemble: Ensemble | None = None,
) -> np.ndarray:
  """[m, G] votes of plain teachers on the group; not for release."""
  parts = parts._replace(y=parts.group)
  if ensemble is None:
    model = _required(model)
    trained = train_teachers(model, loss, parts, config, key=key)
    votes = predict_votes(model, trained, x)
  else:
    votes = ensemble(parts, x)
  return _counted(votes, num_groups, parts, x)


def label_votes(
  model: Model | None,
  loss: PerExampleLoss,
  parts: Examples,
  x: Any,
  config: Any,
  *,
  num_classes: int,
  key: jax.Array,
  trainer: Trainer = training.lagrangian,
  ensemble: Ensemble | None = None,
) -> np.ndarray:
  """[m, C] votes of fair teachers on the class; not for release."""
  if ensemble is None:
    model = _required(model)
    trained = train_teachers(model, loss, parts, config, key=key, trainer=trainer)
    votes = predict_votes(model, trained, x)
  else:
    votes = ensemble(parts, x)
  return _counted(votes, num_classes, parts, x)


def estimators(make: Callable[[], Any]) -> Ensemble:
  """Teachers of scikit-learn's or fairlearn's kind.

      pate.fair_teachers(..., ensemble=pate.estimators(lambda: GridSearch(...)))

  Args:
    make: a new estimator with `fit(x, y, sensitive_features=...)` or, if it
      takes no such argument, `fit(x, y)`; and `predict(x)`.

  Returns:
    An ensemble: one estimator for each part, fitted one after the other.
  """

  def votes(parts: Examples, x: Any) -> np.ndarray:
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


def _counted(votes: Any, num_classes: int, parts: Examples, x: Any) -> np.ndarray:
  """[m, C] votes, one of each part's teacher on each query."""
  wanted = (len(parts.y), len(x))
  checks.require(
    np.shape(votes) == wanted,
    f"the ensemble returned shape {np.shape(votes)}; return {wanted}, one row "
    "per teacher and one column per query",
  )
  return np.asarray(vote_counts(votes, num_classes, num_teachers=wanted[0]))


def _required(model: Model | None) -> Model:
  if model is None:
    raise checks.ArgumentError(
      "teacher_model is missing; pass a model with one output per group, or an ensemble"
    )
  return model
