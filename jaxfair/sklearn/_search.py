"""A search for settings whose price includes the choice."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxfair import accounting, checks, methods
from jaxfair.sklearn._base import Classifier
from jaxfair.sklearn._ranges import Bounds
from jaxfair.types import ArrayLike, FeaturesLike

SEARCHED = {"learning_rate": "rate_factors", "steps": "step_factors"}


class PrivateSearchCV(Classifier):
  """DP-SGD with learning rate and steps chosen by private scores, all within one epsilon.

      search = PrivateSearchCV({"learning_rate": [1.0, 4.0], "steps": [50, 100]}, epsilon=1.0)
      search.fit(x, y)

  Takes the place of `GridSearchCV`, which spends epsilon on every fold and setting. Draws settings
  at random, trains each on all people and scores it on them with noise; there are no folds, since
  a private model hardly overfits. The best model is kept; the others, the scores and the number
  of trainings are not shown.

  Args:
    param_grid: values to choose from: "learning_rate", "steps" or both. One epsilon covers these,
      since all trainings have the same noise; other settings are the same in all trainings.
    epsilon: what the whole search spends on each person.
    delta: see `PrivateClassifier`.
    mean_runs: average number of trainings; the number is random, as the guarantee requires.
    settings: other settings of "tuned_dp_sgd", such as {"network": "mlp"}.
    bounds: see `PrivateClassifier`.
    classes: see `PrivateClassifier`.
    ledger: see `PrivateClassifier`.
    random_state: see `PrivateClassifier`.

  Attributes:
    privacy_: the guarantee of the search and the model together.
    released_: the model.
    classes_: the labels, sorted.
    groups_: one group of everyone.
    n_features_in_: number of columns.

  Reference:
    Papernot and Steinke 2022, Theorem 2; `accounting.RepeatAndSelect`.
  """

  def __init__(
    self,
    param_grid: Mapping[str, Sequence[float]] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    mean_runs: float = 5.0,
    settings: dict[str, Any] | None = None,
    bounds: Bounds | None = None,
    classes: ArrayLike | None = None,
    ledger: accounting.DatasetLedger | None = None,
    random_state: Any = None,
  ):
    self.param_grid = param_grid
    self.epsilon = epsilon
    self.delta = delta
    self.mean_runs = mean_runs
    self.settings = settings
    self.bounds = bounds
    self.classes = classes
    self.ledger = ledger
    self.random_state = random_state

  def fit(self, X: FeaturesLike, y: ArrayLike) -> "PrivateSearchCV":
    """Searches on private people: [n, d] features and [n] labels."""
    self._fit(*self._chosen(), X, y)
    return self

  def _chosen(self) -> tuple[methods.Method, dict[str, Any]]:
    """The search as settings of "tuned_dp_sgd"."""
    method, grid = methods.get("tuned_dp_sgd"), dict(self.param_grid or {})
    chosen = {**(self.settings or {}), "mean_runs": self.mean_runs}
    for name, values in grid.items():
      checks.require(
        name in SEARCHED,
        f"param_grid has {name!r}, but only {' and '.join(SEARCHED)} can be searched; give it "
        "one value in settings=",
      )
      checks.require(
        name not in chosen, f"{name!r} is in param_grid and in settings; leave it out of one"
      )
      checks.require(len(values) > 0, f"param_grid[{name!r}] is empty; give at least one value")
      for value in values:
        checks.positive(f"param_grid[{name!r}]", value)
      largest = max(values)
      chosen[name] = int(largest) if name == "steps" else float(largest)
      chosen[SEARCHED[name]] = tuple(float(value / largest) for value in values)
    if grid:  # what is not in the grid is not varied
      chosen = dict.fromkeys(SEARCHED.values(), (1.0,)) | chosen
    return method, chosen
