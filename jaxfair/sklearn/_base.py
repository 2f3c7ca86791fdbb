"""What the classifiers share: `fit` plans and releases with a method, `predict` asks the model."""

import tempfile
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from jaxfair import _schema, accounting, checks, methods
from jaxfair.methods._recipe import default_delta
from jaxfair.sklearn._public_people import public_people
from jaxfair.sklearn._ranges import scaler_of
from jaxfair.sklearn._spending import remember
from jaxfair.types import ArrayLike, Examples, FeaturesLike, GroupsLike

EVERYONE = ("everyone",)
RANGES = "the range of each feature, which was declared"
BEFORE = (
  "what was done to the features before this estimator saw them (scaling, encoding, selection): "
  "declare ranges and categories, or fit those steps on public people"
)
CLASSES = "which classes there are, taken from the labels"
DECLARED = "which classes there are, which was declared"
GROUPS = "which groups there are"


class Classifier(ClassifierMixin, BaseEstimator):
  """What all of them have in common; see `PrivateClassifier`."""

  def _fit(
    self,
    method: methods.Method,
    settings: dict[str, Any],
    X: FeaturesLike,
    y: ArrayLike,
    sensitive_features: GroupsLike | None = None,
    X_public: FeaturesLike | None = None,
    public_sensitive_features: GroupsLike | None = None,
  ) -> None:
    """Plans, charges and trains; everything that can be refused is refused before."""
    x, labels = validate_data(self, X, y, dtype=np.float32)
    check_classification_targets(labels)
    self.classes_, ids = self._encoded(labels)
    checks.require(
      sensitive_features is not None or "groups" not in method.needs,
      f"method={method.name!r} compares groups of the private people; pass sensitive_features=",
    )
    groups, group_ids, public_ids = _groups(x, sensitive_features, public_sensitive_features)
    scaler = None if self.bounds is None else scaler_of(self.bounds, x.shape[1])
    scaled = x if scaler is None else scaler.apply(x)
    people = methods.Population(
      private=Examples(scaled, ids, group_ids),
      class_names=tuple(map(str, self.classes_.tolist())),
      group_names=groups,
      public=public_people(self, method, X_public, public_ids, scaler),
      scaler=scaler,
      ledger=self.ledger,
      assumed_public=(
        BEFORE if scaler is None else RANGES,
        CLASSES if self.classes is None else DECLARED,
        *(() if groups == EVERYONE else (GROUPS,)),
      ),
    )
    delta = default_delta(len(x)) if self.delta is None else self.delta
    budget = accounting.Budget(self.epsilon, delta)
    plan = method.plan(
      _schema.build(method.settings, settings, where="settings."), people.sizes, budget
    )
    assert plan.guarantee is not None
    key = self._key()
    remember(x, ids, plan.guarantee.guarantee)
    # The key and the checkpoints of a release are erased in its folder, and then the folder.
    with tempfile.TemporaryDirectory(prefix="jaxfair-") as folder:
      self.released_ = method.release(plan, people, folder=folder, key=key)
    self.privacy_ = self.released_.guarantee
    self.groups_ = groups

  def predict(self, X: FeaturesLike) -> np.ndarray:
    """[n] the most probable class of each row."""
    x = self._features(X)
    return self.classes_[self.released_.predict(x)]

  def predict_proba(self, X: FeaturesLike) -> np.ndarray:
    """[n, C] probability of each class, in the order of `classes_`."""
    x = self._features(X)
    return self.released_.scores(x)

  def _features(self, X: FeaturesLike) -> np.ndarray:
    check_is_fitted(self)
    return validate_data(self, X, reset=False, dtype=np.float32)

  def _encoded(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes, and [n] the place of each label among them."""
    if self.classes is None:
      classes, ids = np.unique(y, return_inverse=True)
    else:
      classes = np.unique(np.asarray(self.classes))
      checks.require(
        bool(np.isin(y, classes).all()) and (classes.dtype.kind == "U") == (y.dtype.kind in "UO"),
        f"y has labels that are not among classes={classes.tolist()}; declare all of them",
      )
      ids = np.searchsorted(classes, y)
    checks.require(len(classes) > 1, "y has one class; a classifier needs two classes or more")
    return classes, ids.astype(np.int32)

  def _key(self) -> jax.Array | None:
    """None takes randomness from the operating system."""
    if self.random_state is None:
      return None
    drawn = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
    return jax.random.key(drawn)

  def __sklearn_tags__(self) -> Any:
    tags = super().__sklearn_tags__()
    tags.non_deterministic = self.random_state is None
    tags.classifier_tags.poor_score = True  # noise on few people
    return tags


def _groups(
  x: np.ndarray, private: GroupsLike | None, public: GroupsLike | None
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray | None]:
  """Names of the groups, [n] ids of the private and [m] of the public people."""
  given = {"sensitive_features": private, "public_sensitive_features": public}
  columns = {name: np.asarray(own).astype(str) for name, own in given.items() if own is not None}
  for name, own in columns.items():
    checks.require(
      own.ndim == 1, f"{name} has shape {own.shape}; pass one group per person, shape (n,)"
    )
  if private is not None:
    check_consistent_length(x, columns["sensitive_features"])
  none = np.zeros(len(x), np.int32)
  if not columns:
    return EVERYONE, none, None
  names = np.unique(np.concatenate(list(columns.values())))
  ids = {name: np.searchsorted(names, own).astype(np.int32) for name, own in columns.items()}
  told = tuple(names.tolist())
  return told, ids.get("sensitive_features", none), ids.get("public_sensitive_features")
