"""Who pays for a smaller network, and why (figures 5.1-5.6, 5.10-5.13)."""

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import checks, pruning
from jaxfair import experiments as ex
from jaxfair.experiments import Count, _claims, _statistics, _study
from jaxfair.pruning import _impact
from jaxfair.studies.pruning import common
from jaxfair.types import Examples


class Config(common.PruningConfig):
  """Settings."""

  rates: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)  # shares of the weights that go
  tune: common.Stage = common.Stage(rounds=5)  # how a pruned network is fine-tuned
  scope: pruning._masks.Scope = "global"  # of `pruning.magnitude_masks`, as is the unit
  unit: pruning._masks.Unit = "weight"
  curvature_steps: Count = 12  # of Lanczos
  max_curved: int | None = 500  # curvature is that of at most this many training people

  def check(self) -> None:
    """Rates are shares, in order; 0 is always measured."""
    super().check()
    pruning._masks.check_rates(self.rates)
    checks.require(0.0 not in self.rates, "rates: leave out 0, which is always measured")


class Found(NamedTuple):
  """Impacts on training and test people, fine-tuned and before that."""

  tuned: _impact.NonPrivateImpact
  cut: _impact.NonPrivateImpact
  tested: _impact.NonPrivateImpact
  cut_tested: _impact.NonPrivateImpact
  learned: dict[str, jax.Array]  # of the network before pruning


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """Trains, prunes, fine-tunes and looks, for all seeds and rates."""
  sample = common.draw(config, context)
  model, num_groups = sample.model, sample.num_groups

  def one(own: Any, everybody: Examples) -> Any:
    key, train_rows, test_rows = own
    train, test = everybody.take(train_rows), everybody.take(test_rows)
    keys = jax.random.split(key, 2)
    settings = pruning.FairPruneConfig(
      rates=config.rates,
      fair="never",
      train=config.train.config(),
      tune=config.tune.config(),
      scope=config.scope,
      unit=config.unit,
    )
    fit = pruning.fair_prune(
      model, common.LOSS, train, settings, num_groups=num_groups, key=keys[0]
    )
    cut = jax.tree.map(lambda leaf, keep: leaf * keep, fit.dense, fit.masks)
    look = functools.partial(
      pruning.compare, model, common.LOSS, fit.dense, num_groups=num_groups, rates=config.rates
    )
    return Found(
      tuned=look(
        fit.params, train, key=keys[1], steps=config.curvature_steps, max_curved=config.max_curved
      ),
      cut=look(cut, train, gradients=False),
      tested=look(fit.params, test, gradients=False),
      cut_tested=look(cut, test, gradients=False),
      learned=common.learned(sample, fit.dense, test),
    )

  keys = jax.random.split(context.key, config.seeds)
  found = common.for_each_seed(one, (keys, *sample.rows), sample)
  return _table(config, cell, sample, found)


def _table(config: Config, cell: _study.Cell, sample: common.Sample, found: Found) -> ex.Table:
  tuned, cut, tested, cut_tested, learned = found
  values = {
    "accuracy": _with_start(tested, "accuracy"),
    "accuracy_untuned": _with_start(cut_tested, "accuracy"),
    "loss": _with_start(tuned, "loss"),
    "gradient_norm": _with_start(tuned, "gradient_norm"),
    "top_eigenvalue": _with_start(tuned, "top_eigenvalue"),
    "distance": _with_start(tuned, "distance"),
    "excess_loss": _zero_first(cut.excess_loss),
    "accuracy_cost": _zero_first(tested.accuracy_cost),
    "bound": _zero_first(_bound(tuned.before, cut.moved)),
  }
  rates = [0.0, *config.rates]
  axes: dict[str, Any] = {"seed": range(config.seeds), "rate": rates}
  told = {**cell, "data": sample.dataset.name}  # a stand-in is not named as what it stands for
  like = values["accuracy"].population
  whole = {name: common.first_only(value, like) for name, value in learned.items()}
  table = common.group_rows(told, axes, sample.dataset.group_names, values, whole)
  sizes = {**sample.dataset.group_sizes, ex.EVERYONE: sample.dataset.size}
  excess, bound = table["excess_loss"], table["bound"]
  return table.plus(
    size=[float(sizes[name]) for name in table["group"]],
    looseness=np.divide(bound, excess, out=np.full(len(table), np.nan), where=excess > 0),
    bound_holds=(excess <= bound + 1e-6).astype(float),
  )


def _with_start(found: Any, name: str) -> Any:
  """Before, then after, along the axis of rates."""
  before, after = getattr(found.before, name), getattr(found.after, name)
  return jax.tree.map(lambda one, many: np.concatenate([one[:, None], many], axis=1), before, after)


def _zero_first(value: Any) -> Any:
  return jax.tree.map(lambda v: np.concatenate([np.zeros_like(v[:, :1]), v], axis=1), value)


def _bound(before: Any, moved: Any) -> Any:
  """The two terms of Theorem 5.1 at every rate."""

  def one(norm: np.ndarray, top: np.ndarray) -> np.ndarray:
    far = moved.reshape(*moved.shape, *(1,) * (norm.ndim - 1))
    return norm[:, None] * far + 0.5 * top[:, None] * far**2

  return jax.tree.map(one, before.gradient_norm, before.top_eigenvalue)


def _derive(table: ex.Table) -> ex.Table:
  """Adds what each row's network was like before pruning."""
  columns = ("accuracy", "gradient_norm", "top_eigenvalue")
  before = {f"{column}_before": column for column in columns}
  return table.join(table.where(rate=0.0), ("seed", "group"), **before)


def _notes(config: Config) -> list[str]:
  return [
    *common.notes(config),
    "The thesis reports normalized metrics; these are not.",
    "Excess loss and its bound are those of one-shot pruning before the fine-tuning; accuracy is "
    "that after it.",
    "Distance to the boundary is the largest probability minus the second. Curvature: "
    f"{config.curvature_steps} Lanczos steps on at most {config.max_curved or 'all'} people.",
  ]


GROUPS, DENSE = {"group": ex.but(ex.EVERYONE)}, {"rate": 0.0}


def _related(x: str, y: str, rate: Any = 0.0) -> _claims.Statistic:
  """Correlation of two columns over the groups at one rate; before pruning by default."""
  return ex.correlation(x, y, points=("group",)).at(rate=rate, **GROUPS)


def _smallest_minus_largest(table: ex.Table, level: float) -> _claims.Estimate:
  """Accuracy cost of the smallest group minus that of the largest."""
  order = table["group"][np.argsort(table["size"], kind="stable")]
  first, second = ({"group": str(order[end])} for end in (0, -1))
  return ex.difference("accuracy_cost", first, second).estimate(table, level)


def _only_the_largest_gains(table: ex.Table) -> dict[str, _claims.Check]:
  """The largest group's accuracy rises with the rate, every other's falls."""
  sizes = dict(zip(table["group"], table["size"], strict=True))
  largest, trend = max(sizes, key=lambda name: sizes[name]), ex.trend("accuracy", "rate")
  return {
    name: (trend > 0 if name == largest else trend < 0).at(group=name) for name in map(str, sizes)
  }


SMALLEST = _claims.Statistic(_smallest_minus_largest)
BELOW = _statistics.of_points(
  "share of repetitions below the bound, least of groups and rates",
  lambda labels, holds: holds.min(axis=0),
  values=("bound_holds",),
  points=("group", "rate"),
)
BEFORE = "Before pruning; one point per seed."

STUDY = ex.Study(
  name="pruning.rates",
  summary="Who pays for a smaller network, and why?",
  config=Config,
  cells=lambda config: [{"data": config.data.name, "network": config.network.kind}],
  run=run,
  derive=_derive,
  notes=_notes,
  claims={
    "majority: As the pruning rate grows, the accuracy of the largest group rises and every "
    "other's falls [Fig. 5.1]": _claims.every(_only_the_largest_gains, **GROUPS),
    "gap: The accuracies of the groups drift apart as the pruning rate grows "
    "[Fig. 5.10; Fig. 5.11]": (ex.trend("accuracy_gap", "rate") > 0).at(group=ex.EVERYONE),
    "matthew: Groups with a lower accuracy before pruning lose more of it at the highest rate "
    "[Fig. 5.1, Matthew]": _related("accuracy_before", "accuracy_cost", max) < 0,
    "smallest: At the highest rate the smallest group loses more accuracy than the largest "
    "[Fig. 5.4]": (SMALLEST > 0).at(rate=max, **GROUPS),
    "size and gradient: Smaller groups have larger gradient norms [Fig. 5.2; Prop. 5.1]": _related(
      "size", "gradient_norm"
    )
    < 0,
    "accuracy and gradient: Groups of lower accuracy have larger gradient norms "
    "[Fig. 5.3]": _related("accuracy", "gradient_norm") < 0,
    "gradient and cost: Groups with a larger gradient norm before pruning lose more accuracy "
    "[Fig. 5.12]": _related("gradient_norm_before", "accuracy_cost", max) > 0,
    "curvature and cost: Groups with a larger top eigenvalue before pruning lose more accuracy "
    "[Fig. 5.4, curvature; Fig. 5.13]": _related("top_eigenvalue_before", "accuracy_cost", max) > 0,
    "boundary and curvature: Groups nearer to the decision boundary have larger top eigenvalues "
    "[Fig. 5.5]": _related("distance", "top_eigenvalue") < 0,
    "accuracy and curvature: Groups of lower accuracy have larger top eigenvalues "
    "[Fig. 5.5, accuracy]": _related("accuracy", "top_eigenvalue") < 0,
    "gradient and curvature: Groups with larger gradient norms have larger top eigenvalues "
    "[Fig. 5.6]": _related("gradient_norm", "top_eigenvalue") > 0,
    "bound grows: The bound on every group's excess loss grows with the pruning rate [Cor. 5.1]": (
      ex.trend("bound", "rate") > 0
    )
    .in_each("group")
    .at(**GROUPS),
    "bound: Every group's excess loss is below its bound's first two terms [Thm. 5.1]": (
      BELOW >= 1.0
    ).at(**GROUPS),
    "loose: At the highest rate every group's bound is less than ten times its excess loss": (
      ex.mean("looseness") < 10
    )
    .in_each("group")
    .at(rate=max, **GROUPS),
  },
  figures=(
    ex.lines("accuracy: Accuracy of each group", "accuracy ~ rate, group"),
    ex.lines("gradients: Gradient norm of each group", "gradient_norm ~ rate, group"),
    ex.lines("curvature: Top eigenvalue of each group's Hessian", "top_eigenvalue ~ rate, group"),
    ex.lines("distance: Distance to the decision boundary", "distance ~ rate, group"),
    ex.lines("excess: Excess loss of each group before fine-tuning", "excess_loss ~ rate, group"),
    *(
      ex.points(told, f"{pair}, group", BEFORE, where=DENSE)
      for told, pair in (
        ("sizes: Group size and gradient norm", "gradient_norm ~ size"),
        ("errors: Accuracy and gradient norm", "gradient_norm ~ accuracy"),
        ("boundary: Curvature and distance to the boundary", "top_eigenvalue ~ distance"),
        ("factors: Curvature and gradient norm", "top_eigenvalue ~ gradient_norm"),
      )
    ),
  ),
  titles={
    "rate": "share of weights removed",
    "gradient_norm": "norm of the group's mean gradient",
    "top_eigenvalue": "largest eigenvalue",
    "distance": "mean distance to the boundary",
    "looseness": "bound / excess loss",
  },
  summaries=(
    ex.summary("Accuracy by group", "accuracy, accuracy_untuned ~ group, rate"),
    ex.summary(
      "Theorem 5.1: how loose the bound is",
      "excess_loss, bound, looseness ~ group, rate",
      GROUPS | {"rate": ex.but(0.0)},
    ),
    ex.summary("Before pruning", "gradient_norm, top_eigenvalue, distance ~ group", DENSE),
  ),
)
