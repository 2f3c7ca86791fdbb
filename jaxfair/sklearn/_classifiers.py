"""Classifiers: private ones, fair and private ones, and students of private votes."""

import dataclasses
import warnings
from typing import Any

from jaxfair import accounting, checks, methods
from jaxfair.sklearn._base import Classifier
from jaxfair.sklearn._ranges import Bounds
from jaxfair.types import ArrayLike, FeaturesLike, GroupsLike

NO_GROUPS = (
  "fit got no groups, so everybody is one group and nothing is compared: this is a "
  "PrivateClassifier. Pass X_public= and public_sensitive_features=, or sensitive_features="
)


class _OfMethods(Classifier):
  """A classifier of one of several methods; see `PrivateClassifier`."""

  _default: str  # the method that None stands for

  def __init__(
    self,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    method: str | None = None,
    settings: dict[str, Any] | None = None,
    bounds: Bounds | None = None,
    classes: ArrayLike | None = None,
    ledger: accounting.DatasetLedger | None = None,
    random_state: Any = None,
  ):
    self.epsilon = epsilon
    self.delta = delta
    self.method = method
    self.settings = settings
    self.bounds = bounds
    self.classes = classes
    self.ledger = ledger
    self.random_state = random_state

  @staticmethod
  def _methods() -> tuple[str, ...]:
    """Names of the methods that it takes."""
    raise NotImplementedError

  def _chosen(self) -> tuple[methods.Method, dict[str, Any]]:
    """The method and its settings; raises for a method of another estimator."""
    method, known = methods.get(self.method or self._default), self._methods()
    checks.require(
      method.name in known,
      f"method={method.name!r} is not for {type(self).__name__}; use {' or '.join(known)}",
    )
    return method, dict(self.settings or {})


class PrivateClassifier(_OfMethods):
  """A classifier whose parameters are differentially private: DP-SGD by default.

      model = PrivateClassifier(epsilon=1.0, bounds=(low, high)).fit(x, y)
      print(model.privacy_)

  Args:
    epsilon: what one fit may spend on each person.
    delta: well below 1 / n; None takes the largest power of ten that is at most 1 / (10 n).
    method: "dp_sgd", "dp_sgd_global", "tuned_dp_sgd" or "output_perturbation"; None is "dp_sgd".
    settings: settings of the method by name, such as {"network": "mlp", "hidden": (32,)}; what is
      left out is chosen from the number of people and the budget.
    bounds: (low, high), each a number or one number per column: features are scaled from these
      declared ranges to [-1, 1]. None takes features as they are.
    classes: the labels that there may be. None takes those that occur, and `privacy_` then says
      that they count as public.
    ledger: ledger of the data set; a fit that would exceed its budget raises an error, in every
      process.
    random_state: a seed, for tests; it makes the noise guessable, so the model is marked as not for
      release. None takes randomness from the operating system.

  Attributes:
    privacy_: epsilon and delta, the unit and neighboring relation, what is protected, what is not,
      and whether the model may be released.
    released_: the model, as `methods.Released`; `released_.save(folder)` writes it with its card.
    classes_: the labels, sorted.
    groups_: names of the groups.
    n_features_in_: number of columns.

  Privacy:
    `fit` is `methods` `plan` and `release`. Each fit spends anew on the people it is given, so
    `cross_val_score` and `GridSearchCV` spend once for every fold and setting that a person is
    in. The second fit of a process on the same rows warns (`PrivacySpentWarning`) with a bound on
    the sum; `ledger` enforces a limit; `PrivateSearchCV` chooses settings within one epsilon.
  """

  _default = "dp_sgd"

  @staticmethod
  def _methods() -> tuple[str, ...]:
    own = methods.METHODS.values()
    return tuple(m.name for m in own if m.protects == "record" and not m.needs)

  def fit(self, X: FeaturesLike, y: ArrayLike) -> "PrivateClassifier":
    """Trains on private people: [n, d] features and [n] labels."""
    self._fit(*self._chosen(), X, y)
    return self


class FairPrivateClassifier(_OfMethods):
  """A private and fair classifier: FairDP-SGD by default.

      model = FairPrivateClassifier(epsilon=1.0, bounds=(low, high))
      model.fit(x, y, X_public=x_public, public_sensitive_features=groups)

  Args:
    epsilon: see `PrivateClassifier`.
    delta: see there.
    method: "fair_dp_sgd", which None stands for, and the fair variants of PATE protect a person's
      whole record, and compare groups on public people. "private_lagrangian",
      "randomized_groups", "sf_pate_s" and "sf_pate_t" compare groups of the private people, and
      protect the group of a person alone: `privacy_` says that features and labels count as
      public.
    settings: see `PrivateClassifier`; `lam` is the weight of the disparity in "fair_dp_sgd".
    bounds: see `PrivateClassifier`.
    classes: see `PrivateClassifier`.
    ledger: see `PrivateClassifier`.
    random_state: see `PrivateClassifier`.

  Attributes:
    privacy_: see `PrivateClassifier`, like the others.
    released_: the model. Where the settings have a margin between groups (`max_gap`),
      `released_.abstainer()` keeps it; `predict` answers for everybody.
    classes_: the labels, sorted.
    groups_: names of the groups, sorted.
    n_features_in_: number of columns.
  """

  _default = "fair_dp_sgd"

  @staticmethod
  def _methods() -> tuple[str, ...]:
    own = methods.METHODS.values()
    return tuple(m.name for m in own if m.needs & {"groups", "public_groups"})

  def fit(
    self,
    X: FeaturesLike,
    y: ArrayLike,
    *,
    sensitive_features: GroupsLike | None = None,
    X_public: FeaturesLike | None = None,
    public_sensitive_features: GroupsLike | None = None,
  ) -> "FairPrivateClassifier":
    """Trains on private people.

    Args:
      X: [n, d] features of the private people.
      y: [n] labels.
      sensitive_features: [n] the group of each private person, for methods that read it.
      X_public: [m, d] features of public people, for methods that compare groups on them.
      public_sensitive_features: [m] the groups of the public people.

    Without any group everybody is one group: there is nothing to compare, `fit` warns, and the
    model is that of `PrivateClassifier`.
    """
    method, settings = self._chosen()
    if sensitive_features is None and X_public is None and public_sensitive_features is None:
      warnings.warn(NO_GROUPS, stacklevel=2)
      method = methods.get("dp_sgd")
      known = {field.name for field in dataclasses.fields(method.settings)}
      settings = {name: value for name, value in settings.items() if name in known}
    self._fit(method, settings, X, y, sensitive_features, X_public, public_sensitive_features)
    return self


class PateClassifier(_OfMethods):
  """A private classifier that learns from noisy votes of teachers (PATE).

      model = PateClassifier(epsilon=2.0, bounds=(low, high)).fit(x, y, X_public=x_public)

  Args:
    epsilon: see `PrivateClassifier`.
    delta: see there.
    method: "pate", which None stands for, or "confident_pate".
    settings: see `PrivateClassifier`; such as {"num_teachers": 50, "queries": 200}.
    bounds: see `PrivateClassifier`.
    classes: see `PrivateClassifier`.
    ledger: see `PrivateClassifier`.
    random_state: see `PrivateClassifier`.

  Attributes:
    privacy_: see `PrivateClassifier`, like the others.
    released_: the model.
    classes_: the labels, sorted.
    groups_: one group of everyone.
    n_features_in_: number of columns.
  """

  _default = "pate"

  @staticmethod
  def _methods() -> tuple[str, ...]:
    return tuple(m.name for m in methods.METHODS.values() if m.needs == frozenset({"public"}))

  def fit(
    self, X: FeaturesLike, y: ArrayLike, *, X_public: FeaturesLike | None = None
  ) -> "PateClassifier":
    """Trains teachers on private people and a student on public ones.

    Args:
      X: [n, d] features of the private people.
      y: [n] labels.
      X_public: [m, d] features of public people, on which the teachers vote. None uses
        points drawn uniformly from the declared `bounds`, which costs nothing but works
        poorly with more than a few columns.
    """
    self._fit(*self._chosen(), X, y, X_public=X_public)
    return self
