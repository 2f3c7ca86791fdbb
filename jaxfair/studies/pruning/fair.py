"""Does holding groups together help? (figures 5.7-5.9, tables 5.1 and 5.2)"""

import dataclasses
import functools
from typing import Any, Literal

import jax
import numpy as np

from jaxfair import experiments as ex
from jaxfair import pruning
from jaxfair.experiments import _claims, _study
from jaxfair.pruning import _group_profile, _impact
from jaxfair.studies.pruning import common
from jaxfair.types import Examples

# Whether groups are held together before and after. Multipliers that do not
# step stay at zero, which is plain training: one program serves all methods.
Held = Literal["never", "before", "after", "both"]
_STAGES_HELD: dict[Held, tuple[float, float]] = {
  "never": (0.0, 0.0),
  "before": (1.0, 0.0),
  "after": (0.0, 1.0),
  "both": (1.0, 1.0),
}


class Config(common.PruningConfig):
  """Settings."""

  rates: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)  # shares of the weights that go
  # Where groups are held together, see `pruning.FairPruneConfig`, and by which constraints.
  methods: ex.Sweep[Held] = (*_STAGES_HELD,)
  constraints: ex.Sweep[Literal["relaxed", "full"]] = ("relaxed",)
  tune: common.Stage = common.Stage(rounds=10)  # how a pruned network is fine-tuned
  curvature_steps: int = 3  # of Lanczos in every step under the full constraint

  def check(self) -> None:
    """Rates are shares, in order."""
    super().check()
    pruning._masks.check_rates(self.rates)


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All methods, seeds and rates of one constraint, in one program."""
  sample = common.draw(config, context)
  kind: Any = cell["constraint"]
  methods = methods_of(config, kind)
  # Nobody asks for a constraint before: the full one is expensive to compute.
  before = any(_STAGES_HELD[method][0] for method in methods)
  made = pruning.FairPruneConfig(
    rates=config.rates,
    fair="both" if before else "after",
    constraint=kind,
    train=config.train.config(),
    tune=config.tune.config(),
    curvature_steps=config.curvature_steps,
  )
  one = functools.partial(_one, sample, made)
  # The same keys in all cells: methods are compared from the same start.
  keys = jax.random.split(jax.random.fold_in(context.shared_key, 1), config.seeds)
  pairs = np.indices((len(methods), config.seeds)).reshape(2, -1)
  held = np.array([_STAGES_HELD[method] for method in methods], np.float32)
  held = held[pairs[0]]
  own = (keys[pairs[1]], held, *(rows[pairs[1]] for rows in sample.rows))
  tested, dense, learned = common.for_each_seed(one, own, sample)
  accuracy = jax.tree.map(
    lambda a, b: np.concatenate([a[:, None], b], axis=1),
    tested.before.accuracy,
    tested.after.accuracy,
  )
  values = {"accuracy": accuracy}
  for name in ("gradient_norm", "distance", "loss"):
    values[f"dense_{name}"] = jax.tree.map(common.first_only, getattr(dense, name), accuracy)
  shape = (len(methods), config.seeds)
  whole = {name: common.first_only(v, accuracy.population) for name, v in learned.items()}
  values, whole = jax.tree.map(lambda v: v.reshape(*shape, *v.shape[1:]), (values, whole))
  axes: dict[str, Any] = {
    "method": methods,
    "seed": range(config.seeds),
    "rate": [0.0, *config.rates],
  }
  told = {**cell, "groups": OTHERS["groups"] if _by_others(config) else CLASSES["groups"]}
  table = common.group_rows(told, axes, sample.dataset.group_names, values, whole)
  never = table["method"] == "never"
  return table.plus(constraint=np.where(never, "none", table["constraint"]).tolist())


def methods_of(config: Config, kind: str) -> list[Held]:
  """The methods of a cell; "never" has no constraint and is in the first."""
  first = kind == config.constraints[0]
  return [name for name in config.methods if first or name != "never"]


def _one(
  sample: common.Sample, config: pruning.FairPruneConfig, own: Any, everybody: Examples
) -> tuple[_impact.NonPrivateImpact, _group_profile.NonPrivateProfile, dict[str, jax.Array]]:
  """One method and seed: test people over rates, the whole network, and what it learned."""
  model, num_groups = sample.model, sample.num_groups
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
  dense = pruning.group_profile(model, common.LOSS, fit.dense, train, num_groups=num_groups)
  return tested, dense, common.learned(sample, fit.dense, test)


def _by_others(config: Config) -> bool:
  """Whether the groups are not the classes."""
  return config.data.group not in (None, "label", config.data.label)


def _derive(table: ex.Table) -> ex.Table:
  """Adds one name for method and constraint: they share a panel."""
  pairs = zip(table["method"], table["constraint"], strict=True)
  return table.plus(fair=[f"{m} (full)" if c == "full" else m for m, c in pairs])


def _notes(config: Config) -> list[str]:
  return [
    *common.notes(config),
    "Every method starts from the same drawn parameters and batches; the rows at rate 0 are the "
    "networks before pruning.",
    "Adam throughout; the thesis has SGD with momentum 0.9.",
  ]


ALL, PRUNED = {"group": ex.EVERYONE}, {"rate": ex.but(0.0)}
NEVER = {"method": "never", "constraint": "none"}
BEFORE, AFTER, BOTH = (
  {"method": method, "constraint": "relaxed"} for method in ("before", "after", "both")
)
FULL = {"method": "after", "constraint": "full"}


def _less(column: str, first: dict[str, Any], second: dict[str, Any]) -> _claims.Statistic:
  """By how much everyone's column is smaller under `first` than under `second`."""
  return ex.difference(column, ALL | second, ALL | first)


def _fairer(first: dict[str, Any], second: dict[str, Any], **where: Any) -> _claims.Check:
  """The gap is smaller, over all rates."""
  return (_less("accuracy_gap", first, second) > 0).at(**PRUNED, **where)


def _levels(column: str) -> _claims.Check:
  return (_less(f"dense_{column}_gap", BEFORE, NEVER) > 0).at(**CLASSES)


# Every method costs less than 2 points of accuracy against none.
COMPARABLE = {own["method"]: _less("accuracy", NEVER, own) > -0.02 for own in (BEFORE, AFTER, BOTH)}
# After or both have smaller gaps than never or before, in most rates.
MOST_CASES = {
  f"{own['method']} against {other['method']}": (_less("accuracy_gap", own, other) > 0).in_most(
    "rate"
  )
  for own in (AFTER, BOTH)
  for other in (NEVER, BEFORE)
}
# Table 5.2 alone has groups that are not the classes.
CLASSES, OTHERS = {"groups": "the classes"}, {"groups": "others"}
SHRINK = "pruning shrink the gap between the groups' accuracies, over all rates"
FIGURES = "[Fig. 5.8; Fig. 5.9]"
KEPT = (ex.difference("accuracy", FULL, AFTER) > -0.02).in_most("group")
AFTER_FIRST = (_less("accuracy_gap", AFTER, BEFORE) > 0).at(**CLASSES)

STUDY = ex.Study(
  name="pruning.fair",
  summary="Do constraints on the groups make pruned networks fairer?",
  config=Config,
  cells=ex.grid(constraint="constraints"),
  run=run,
  derive=_derive,
  notes=_notes,
  reference={"method": "never"},
  claims={
    f"before is fairer: Equal losses before {SHRINK} {FIGURES}": _fairer(BEFORE, NEVER, **CLASSES),
    f"after is fairer: Equal losses after {SHRINK} {FIGURES}": _fairer(AFTER, NEVER, **CLASSES),
    f"both is fairer: Equal losses both before and after {SHRINK} {FIGURES}": _fairer(
      BOTH, NEVER, **CLASSES
    ),
    "after beats before: The gap is smaller if losses are made equal after pruning than before it, "
    "in most rates [Fig. 5.8, after]": AFTER_FIRST.in_most("rate").at(**PRUNED),
    "after beats before, highest: At the highest rate the gap is smaller if losses are made equal "
    "after pruning than before it [Fig. 5.8, after]": AFTER_FIRST.at(rate=max),
    "accuracy stays: Equal losses before, after or both cost less than 2 points of accuracy (our "
    "reading of comparable), over all rates [Fig. 5.8, accuracy; Fig. 5.9]": _claims.every(
      COMPARABLE, **PRUNED, **CLASSES
    ),
    "levels gradient_norm: Equal losses bring the groups' gradient norms together before pruning "
    "[Fig. 5.7]": _levels("gradient_norm"),
    "levels distance: Equal losses bring the groups' distances to the decision boundary together "
    "before pruning [Fig. 5.7]": _levels("distance"),
    "full is fairer: Equal gradients and curvature after pruning leave a smaller gap than equal "
    "losses [Table 5.1]": _fairer(FULL, AFTER),
    "full keeps accuracy: Equal gradients and curvature after pruning cost less than 2 points of a "
    "group's accuracy against equal losses (our reading of insubstantial), in most groups "
    "[Table 5.1, accuracy]": KEPT.at(group=ex.but(ex.EVERYONE), **PRUNED),
    "full is more accurate: Equal gradients and curvature after pruning are more accurate for "
    "everyone than equal losses, as in the table [Table 5.1, accuracy]": (
      _less("accuracy", AFTER, FULL) > 0
    ).at(**PRUNED),
    "most cases: Equal losses after pruning, and both before and after, have smaller gaps than "
    "none and than before, each in most rates [Table 5.2]": _claims.every(
      MOST_CASES, **PRUNED, **OTHERS
    ),
    "before is no help: Equal losses before pruning have larger gaps than none in most rates, as "
    "in the table [Table 5.2, before]": (_less("accuracy_gap", NEVER, BEFORE) > 0)
    .in_most("rate")
    .at(**PRUNED, **OTHERS),
    "after costs accuracy: At the highest rate equal losses after pruning cost more than 2 points "
    "of accuracy, as in the table [Table 5.2, accuracy]": (
      _less("accuracy", AFTER, NEVER) > 0.02
    ).at(rate=max, **OTHERS),
  },
  figures=(
    ex.lines("accuracy: Accuracy of everyone", "accuracy ~ rate, fair", where=ALL),
    ex.lines(
      "gap: Gap between the best and the worst group", "accuracy_gap ~ rate, fair", where=ALL
    ),
    ex.bars(
      "groups: Accuracy of each group, over shares of weights removed",
      "accuracy ~ group, fair | rate",
    ),
    ex.bars("gradients: Gradient norms before pruning", "dense_gradient_norm ~ group, fair"),
    ex.bars("distance: Distance to the boundary before pruning", "dense_distance ~ group, fair"),
  ),
  titles={
    "rate": "share of weights removed",
    "accuracy_gap": "gap of accuracies",
    "dense_gradient_norm": "norm of the group's mean gradient",
    "dense_distance": "mean distance to the boundary",
  },
  summaries=(
    ex.summary(
      "Accuracy, and the gap between groups",
      "accuracy, accuracy_gap ~ method, constraint, rate",
      ALL,
    ),
  ),
)
