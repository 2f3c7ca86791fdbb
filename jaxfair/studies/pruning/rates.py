"""Who pays for a smaller network, and why (figures 5.1-5.6, 5.10-5.13)."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import checks, pruning
from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.protocol import Figure, Summary
from jaxfair.studies.pruning import common
from jaxfair.studies.pruning.rates_claims import CLAIMS
from jaxfair.types import Examples


@dataclasses.dataclass(frozen=True)
class Config(common.PruningConfig):
  """Settings.

  Attributes:
    rates: shares of the weights that go.
    tune: how a pruned network is fine-tuned.
    scope: see `pruning.magnitude_masks`.
    unit: likewise.
    curvature_steps: of Lanczos.
    max_curved: curvature is that of so many training people.
  """

  rates: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)
  tune: common.Stage = dataclasses.field(
    default_factory=lambda: common.Stage(rounds=5)
  )
  scope: pruning.masks.Scope = "global"
  unit: pruning.masks.Unit = "weight"
  curvature_steps: int = 12
  max_curved: int | None = 500

  def __post_init__(self) -> None:
    super().__post_init__()
    pruning.masks.check_rates(self.rates)
    checks.require(
      0.0 not in self.rates, "rates: leave out 0, it is always looked at"
    )
    checks.integer("curvature_steps", self.curvature_steps, low=1)


class Found(NamedTuple):
  """Impacts on training and test people, fine-tuned and before that."""

  tuned: pruning.NonPrivateImpact
  cut: pruning.NonPrivateImpact
  tested: pruning.NonPrivateImpact
  cut_tested: pruning.NonPrivateImpact


def cells(config: Config) -> list[dict[str, Any]]:
  """One cell: all rates start from the same networks."""
  common.check_people(config.data)
  return [{"data": config.data.name, "network": config.network.kind}]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """Trains, prunes, fine-tunes and looks, for all seeds and rates."""
  sample = common.draw(config, context.shared_key)
  model, num_groups = sample.model, sample.num_groups

  def one(own: Any, everybody: Examples) -> Any:
    key, train_rows, test_rows = own
    train, test = everybody.take(train_rows), everybody.take(test_rows)
    keys = jax.random.split(key, 2)
    settings = pruning.FairPruneConfig(
      rates=config.rates, fair="never", train=config.train.config(),
      tune=config.tune.config(), scope=config.scope, unit=config.unit,
    )  # fmt: skip
    fit = pruning.fair_prune(
      model, common.LOSS, train, settings, num_groups=num_groups, key=keys[0]
    )
    cut = jax.tree.map(lambda leaf, keep: leaf * keep, fit.dense, fit.masks)
    look = functools.partial(
      pruning.compare, model, common.LOSS, fit.dense, num_groups=num_groups,
      rates=config.rates,
    )  # fmt: skip
    return Found(
      tuned=look(
        fit.params, train, key=keys[1], steps=config.curvature_steps,
        max_curved=config.max_curved,
      ),
      cut=look(cut, train, gradients=False),
      tested=look(fit.params, test, gradients=False),
      cut_tested=look(cut, test, gradients=False),
    )  # fmt: skip

  keys = jax.random.split(context.key, config.seeds)
  found = common.for_each_seed(one, (keys, *sample.rows), sample)
  return _table(config, cell, sample, found)


def _table(
  config: Config, cell: protocol.Settings, sample: common.Sample, found: Found
) -> Table:
  tuned, cut, tested, cut_tested = found
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
  names = sample.dataset.group_names
  table = common.group_rows(dict(cell), axes, names, values)
  sizes = {**sample.dataset.group_sizes, EVERYONE: sample.dataset.size}
  return table.plus(
    size=[float(sizes[name]) for name in table["group"]],
    bound_holds=(table["excess_loss"] <= table["bound"] + 1e-6).astype(float),
  )


def _with_start(found: Any, name: str) -> Any:
  """Before, then after, along the axis of rates."""
  before, after = getattr(found.before, name), getattr(found.after, name)
  return jax.tree.map(
    lambda one, many: np.concatenate([one[:, None], many], axis=1),
    before,
    after,
  )


def _zero_first(value: Any) -> Any:
  return jax.tree.map(
    lambda v: np.concatenate([np.zeros_like(v[:, :1]), v], axis=1), value
  )


def _bound(before: Any, moved: Any) -> Any:
  """The two terms of Theorem 5.1 at every rate."""

  def one(norm: np.ndarray, top: np.ndarray) -> np.ndarray:
    far = moved.reshape(*moved.shape, *(1,) * (norm.ndim - 1))
    return norm[:, None] * far + 0.5 * top[:, None] * far**2

  return jax.tree.map(one, before.gradient_norm, before.top_eigenvalue)


def _derive(table: Table) -> Table:
  """Adds what each row's network was like before pruning."""
  if "rate" not in table:
    return table
  names = ("seed", "group")
  start = table.where(rate=0.0)
  places = {
    key: i
    for i, key in enumerate(
      zip(*(start[n].tolist() for n in names), strict=True)
    )
  }
  order = [
    places[key] for key in zip(*(table[n].tolist() for n in names), strict=True)
  ]
  return table.plus(
    **{
      f"{column}_before": start[column][order]
      for column in ("accuracy", "gradient_norm", "top_eigenvalue")
    }
  )


def _notes(config: Config) -> list[str]:
  return [
    *common.notes(config),
    "The thesis reports normalised metrics; these are not.",
    "Excess loss and its bound are those of one-shot pruning before the "
    "fine-tuning; accuracy is that after it.",
    f"Distance to the boundary is the largest probability minus the second. "
    f"Curvature: {config.curvature_steps} Lanczos steps on at most "
    f"{config.max_curved or 'all'} people.",
  ]


def _over_rates(name: str, title: str, column: str, words: str) -> Figure:
  return Figure(
    name, title, x="rate", y=column, color="group", mark="line",
    x_title="share of weights removed", y_title=words,
  )  # fmt: skip


def _before(name: str, title: str, x: str, y: str) -> Figure:
  return Figure(
    name, title, x=x, y=y, color="group", mark="point", where={"rate": 0.0},
    caption="Before pruning; one point per seed.",
  )  # fmt: skip


STUDY = protocol.Study(
  name="pruning.rates",
  summary="Who pays for a smaller network, and why?",
  config=Config,
  cells=cells,
  run=run,
  derive=_derive,
  notes=_notes,
  claims=CLAIMS,
  figures=(
    _over_rates("accuracy", "Accuracy of each group", "accuracy", "accuracy"),
    _over_rates(
      "gradients", "Gradient norm of each group", "gradient_norm",
      "norm of the group's mean gradient",
    ),
    _over_rates(
      "curvature", "Top eigenvalue of each group's Hessian", "top_eigenvalue",
      "largest eigenvalue",
    ),
    _over_rates(
      "distance", "Distance to the decision boundary", "distance",
      "mean distance to the boundary",
    ),
    _over_rates(
      "excess", "Excess loss of each group before fine-tuning", "excess_loss",
      "excess loss",
    ),
    _before("sizes", "Group size and gradient norm", "size", "gradient_norm"),
    _before(
      "errors", "Accuracy and gradient norm", "accuracy", "gradient_norm"
    ),
    _before(
      "boundary", "Curvature and distance to the boundary", "distance",
      "top_eigenvalue",
    ),
    _before(
      "factors", "Curvature and gradient norm", "gradient_norm",
      "top_eigenvalue",
    ),
  ),
  summaries=(
    Summary(
      "Accuracy by group", by=("group", "rate"),
      values=("accuracy", "accuracy_untuned", "excess_loss", "bound"),
    ),
    Summary(
      "Before pruning", by=("group",),
      values=("gradient_norm", "top_eigenvalue", "distance"),
      where={"rate": 0.0},
    ),
  ),
)  # fmt: skip
