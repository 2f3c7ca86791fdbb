"""Does holding groups together help? (figures 5.7-5.9, tables 5.1 and 5.2)"""

import dataclasses
import functools
from typing import Any, Literal

import jax
import numpy as np

from jaxfair import experiments as ex
from jaxfair import pruning
from jaxfair.experiments import Claim, Figure, Summary
from jaxfair.experiments._measures import EVERYONE
from jaxfair.studies.pruning import common
from jaxfair.types import Examples, Model


class Config(common.PruningConfig):
  """Settings.

  Attributes:
    rates: shares of the weights that go.
    methods: where groups are held together; see `pruning.FairPruneConfig`.
    constraints: by which constraints.
    tune: how a pruned network is fine-tuned.
    curvature_steps: of Lanczos in every step under the full constraint.
  """

  rates: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)
  methods: ex.Sweep[Literal["never", "before", "after", "both"]] = (
    "never",
    "before",
    "after",
    "both",
  )
  constraints: ex.Sweep[Literal["relaxed", "full"]] = ("relaxed",)
  tune: common.Stage = common.Stage(rounds=10)
  curvature_steps: int = 3

  def check(self) -> None:
    """Rates are shares, in order."""
    super().check()
    pruning._masks.check_rates(self.rates)


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All methods, seeds and rates of one constraint, in one program."""
  sample = common.draw(config, context)
  kind: Any = cell["constraint"]
  methods = methods_of(config, kind)
  # Nobody asks for a constraint before: the full one is dear to look at.
  before = any(_STAGES_HELD[method][0] for method in methods)
  made = pruning.FairPruneConfig(
    rates=config.rates,
    fair="both" if before else "after",
    constraint=kind,
    train=config.train.config(),
    tune=config.tune.config(),
    curvature_steps=config.curvature_steps,
  )
  one = functools.partial(_one, sample.model, sample.num_groups, made)
  # The same keys in all cells: methods are compared from the same start.
  keys = jax.random.split(jax.random.fold_in(context.shared_key, 1), config.seeds)
  pairs = np.indices((len(methods), config.seeds)).reshape(2, -1)
  held = np.array([_STAGES_HELD[method] for method in methods], np.float32)
  held = held[pairs[0]]
  own = (keys[pairs[1]], held, *(rows[pairs[1]] for rows in sample.rows))
  tested, dense = common.for_each_seed(one, own, sample)
  accuracy = jax.tree.map(
    lambda a, b: np.concatenate([a[:, None], b], axis=1),
    tested.before.accuracy,
    tested.after.accuracy,
  )
  values = {"accuracy": accuracy}
  for name in ("gradient_norm", "distance", "loss"):
    values[f"dense_{name}"] = _first_only(getattr(dense, name), accuracy)
  shape = (len(methods), config.seeds)
  values = jax.tree.map(lambda v: v.reshape(*shape, *v.shape[1:]), values)
  axes: dict[str, Any] = {
    "method": methods,
    "seed": range(config.seeds),
    "rate": [0.0, *config.rates],
  }
  table = common.group_rows(dict(cell), axes, sample.dataset.group_names, values)
  never = table["method"] == "never"
  return table.plus(constraint=np.where(never, "none", table["constraint"]).tolist())


def methods_of(config: Config, kind: str) -> list[str]:
  """The methods of a cell; "never" has no constraint and is in the first."""
  first = kind == config.constraints[0]
  return [name for name in config.methods if first or name != "never"]


# Whether groups are held together before and after. Multipliers that do not
# step stay at zero, which is plain training: one program serves all methods.
_STAGES_HELD = {"never": (0.0, 0.0), "before": (1.0, 0.0), "after": (0.0, 1.0), "both": (1.0, 1.0)}


def _one(
  model: Model, num_groups: int, config: pruning.FairPruneConfig, own: Any, everybody: Examples
) -> tuple[pruning.NonPrivateImpact, pruning.NonPrivateLook]:
  """One method and seed: test people over rates, and the whole network."""
  key, held, train_rows, test_rows = own
  train, test = everybody.take(train_rows), everybody.take(test_rows)
  before, after = (
    dataclasses.replace(stage, dual_rate=stage.dual_rate * share)
    for stage, share in zip((config.train, config.tune), held, strict=True)
  )
  config = dataclasses.replace(config, train=before, tune=after)
  fit = pruning.fair_prune(model, common.LOSS, train, config, num_groups=num_groups, key=key)
  tested = pruning.compare(
    model,
    common.LOSS,
    fit.dense,
    fit.params,
    test,
    num_groups=num_groups,
    rates=config.rates,
    gradients=False,
  )
  dense = pruning.look(model, common.LOSS, fit.dense, train, num_groups=num_groups)
  return tested, dense


def _first_only(value: Any, like: Any) -> Any:
  """The value at the first rate, which is 0; nothing is known at others."""

  def one(first: np.ndarray, shaped: np.ndarray) -> np.ndarray:
    whole = np.full(shaped.shape, np.nan)
    whole[:, 0] = first
    return whole

  return jax.tree.map(one, value, like)


def _derive(table: ex.Table) -> ex.Table:
  """Adds one name for method and constraint: they share a panel."""
  if "method" not in table:
    return table
  pairs = zip(table["method"], table["constraint"], strict=True)
  return table.plus(fair=[f"{m} (full)" if c == "full" else m for m, c in pairs])


def _notes(config: Config) -> list[str]:
  return [
    *common.notes(config),
    "Every method starts from the same drawn parameters and batches; the rows "
    "at rate 0 are the networks before pruning.",
    "Adam throughout; the thesis has SGD with momentum 0.9.",
  ]


ALL = {"group": EVERYONE}


def _relaxed(method: str) -> dict[str, Any]:
  return {"method": method, "constraint": "none" if method == "never" else "relaxed"}


FULL = {"method": "after", "constraint": "full"}


def _less(column: str, first: dict[str, Any], second: dict[str, Any]) -> ex.Statistic:
  """By how much everyone's column is smaller under `first` than under `second`."""
  return ex.difference(column, ALL | second, ALL | first)


def _pruned(check: ex.Check) -> ex.Check:
  return check.at(rate=ex.but(0.0))


def _fairer(method: str, when: str) -> Claim:
  return Claim(
    f"{method} is fairer",
    f"Equal losses {when} pruning shrink the gap between the groups' accuracies, over all rates",
    _pruned(_less("accuracy_gap", _relaxed(method), _relaxed("never")) > 0),
    source="Fig. 5.8, 5.9; Table 5.2",
  )


def _levels(column: str, words: str) -> Claim:
  return Claim(
    f"levels {column}",
    f"Equal losses bring the groups' {words} together before pruning",
    _less(f"dense_{column}_gap", _relaxed("before"), _relaxed("never")) > 0,
    source="Fig. 5.7",
  )


def _line(name: str, title: str, y: str, **options: Any) -> Figure:
  return Figure(
    name, title, "rate", y, "line", "fair", x_title="share of weights removed", where=ALL, **options
  )


STUDY = ex.Study(
  name="pruning.fair",
  summary="Do constraints on the groups make pruned networks fairer?",
  config=Config,
  cells=ex.grid(constraint="constraints"),
  run=run,
  derive=_derive,
  notes=_notes,
  claims=(
    _fairer("before", "before"),
    _fairer("after", "after"),
    _fairer("both", "both before and after"),
    Claim(
      "after beats before",
      "At the highest rate the gap is smaller if losses are made equal after pruning than before "
      "it",
      (_less("accuracy_gap", _relaxed("after"), _relaxed("before")) > 0).at(rate=max),
      source="Fig. 5.8, 5.9",
    ),
    Claim(
      "accuracy stays",
      "Equal losses after pruning cost less than 2 points of accuracy, over all rates",
      _pruned(_less("accuracy", _relaxed("never"), _relaxed("after")) > -0.02),
      source="Fig. 5.8, 5.9",
    ),
    _levels("gradient_norm", "gradient norms"),
    _levels("distance", "distances to the decision boundary"),
    Claim(
      "full is fairer",
      "Equal gradients and curvature after pruning leave a smaller gap than equal losses",
      _pruned(_less("accuracy_gap", FULL, _relaxed("after")) > 0),
      source="Table 5.1",
    ),
    Claim(
      "full keeps accuracy",
      "Equal gradients and curvature after pruning cost less than 2 points of accuracy against "
      "equal losses",
      _pruned(_less("accuracy", _relaxed("after"), FULL) > -0.02),
      source="Table 5.1",
    ),
  ),
  figures=(
    _line("accuracy", "Accuracy of everyone", "accuracy"),
    _line(
      "gap", "Gap between the best and the worst group", "accuracy_gap", y_title="gap of accuracies"
    ),
    Figure(
      "groups",
      "Accuracy of each group, over shares of weights removed",
      "group",
      "accuracy",
      color="fair",
      facet="rate",
    ),
    Figure(
      "gradients",
      "Gradient norms before pruning",
      "group",
      "dense_gradient_norm",
      color="fair",
      y_title="norm of the group's mean gradient",
    ),
    Figure(
      "distance",
      "Distance to the boundary before pruning",
      "group",
      "dense_distance",
      color="fair",
      y_title="mean distance to the boundary",
    ),
  ),
  summaries=(
    Summary(
      "Accuracy, and the gap between groups",
      ("method", "constraint", "rate"),
      ("accuracy", "accuracy_gap"),
      ALL,
    ),
  ),
)
