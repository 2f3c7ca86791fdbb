"""PATE: the bound on a student's deviation beside what noise really does.

Softmax regression solved to optimality, so that the bound's assumptions hold.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import analysis, checks, models, training, tree
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check, mean_above
from jaxfair.studies.pate.ensembles import (
  Ensemble,
  PenaltyConfig,
  cells,
  repetitions,
)
from jaxfair.studies.pate.students import hard_labels, majority_weights
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.types import Examples, Params

KINDS = ("measured", "bound", "bound in the papers")


@dataclasses.dataclass(frozen=True)
class Config(PenaltyConfig):
  """Settings; `student_steps` are steps of gradient descent on all queries.

  Attributes:
    model: must be linear.
    penalties: lambdas of lambda ||theta||^2 beside the mean of the losses, as
      in Corollary 1; beside their sum lambda is `queries` times as large.
    tolerance: largest share of the deviation that the solver may be off.
  """

  penalties: tuple[float, ...] = (20.0, 100.0)
  tolerance: float = 1e-3

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.one_of("model", self.model, ("logistic",))
    checks.positive("tolerance", self.tolerance)


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """Measured deviations and their bounds, on every split."""
  people, made = repetitions(config, cell, context)
  tables = []
  for seed, ensemble in made:
    flips = analysis.flip_probability(ensemble.counts, sigma=config.sigma)
    x = np.asarray(ensemble.public.x, np.float64).reshape(config.queries, -1)
    norms = np.sqrt((x**2).sum(axis=1) + 1)  # the intercept is penalised, too
    moved = _deviations(config, ensemble, people.num_classes)
    for penalty, found in zip(config.penalties, moved, strict=True):
      limit = analysis.model_deviation_bound(
        flips, norms, penalty=penalty, softmax=True
      )
      values = (found.mean(), limit.first, limit.first_in_paper)
      squares = (np.mean(found**2), limit.second, np.nan)
      tables.append(
        Table.from_arrays(
          {**cell, "penalty": penalty, "seed": seed},
          {"kind": KINDS},
          {
            "deviation": values,
            "second_moment": squares,
            "slack": np.log10(np.array(values) / values[0]),
            "second_slack": np.log10(np.array(squares) / squares[0]),
          },
        )
      )
  return Table.concat(tables)


def _deviations(
  config: Config, ensemble: Ensemble, num_classes: int
) -> np.ndarray:
  """[penalties, draws] distances of optimal students, to the tolerance."""
  clean = majority_weights(ensemble)
  noisy = hard_labels(
    ensemble, [config.sigma], config.draws, key=ensemble.key_noise
  )[0]
  labels = jnp.concatenate([clean[None], noisy])
  shape = (len(config.penalties), len(labels))
  penalties = np.repeat(config.penalties, shape[1])
  x = np.asarray(ensemble.public.x, np.float64).reshape(config.queries, -1)
  steepest = np.linalg.norm(np.c_[x, np.ones(len(x))], 2) ** 2 / len(x)
  targets = jnp.tile(labels, (shape[0], 1, 1))
  fitted = training.fit_many(
    models.logistic(num_classes),
    models.soft_cross_entropy,
    Examples(ensemble.public.x, targets, ensemble.public.group),
    training.FitConfig(
      # 1 / smoothness: softmax turns a gradient by at most half the input.
      learning_rate=1 / (2 * penalties + steepest / 2),
      weight_decay=2 * penalties,
      steps=config.student_steps,
      batch_size=None,
      optimizer=optax.sgd,
    ),
    keys=jnp.broadcast_to(ensemble.key, penalties.shape),
    stacked=Examples(False, True, False),
  )
  moved = np.asarray(_distances(fitted.params, shape), np.float64)
  # 2 lambda-strongly convex: the gradient before the last step tells how far
  # off the optimum is.
  slope = np.asarray(fitted.trace.grad_norm)[:, -1]
  off = (slope / (2 * penalties)).reshape(shape).max(axis=1)
  checks.require(
    bool((2 * off <= config.tolerance * moved.mean(axis=1)).all()),
    f"student_steps={config.student_steps} leave students up to {off.max():.2g}"
    " from their optimum; use more steps or a larger tolerance",
  )
  return moved


def _distances(params: Params, shape: tuple[int, int]) -> jax.Array:
  rows = jax.tree.map(lambda a: a.reshape(*shape, *a.shape[1:]), params)
  first = jax.tree.map(lambda a: a[:, :1], rows)
  rest = jax.tree.map(lambda a: a[:, 1:], rows)
  return jax.vmap(jax.vmap(tree.norm))(tree.subtract(rest, first))


def _notes(config: Config) -> list[str]:
  return [
    "Softmax regression on the public people, solved to optimality by "
    "gradient descent on all of them; its gradient certifies the distances to "
    f"{config.tolerance:g} of their mean. Expectations are means over "
    f"{config.draws} draws of noise of sigma {config.sigma:g}; intervals are "
    f"over {config.splits} splits with their own teachers.",
    "slack is log10(bound / measured): 0 where a bound is reached.",
    "penalty is lambda beside the mean of the losses, as in Corollary 1. "
    f"Beside their sum, as in equation (1), it would be {config.queries} times "
    "as large. The bound is half of the printed one, since lambda ||theta||^2 "
    "is 2 lambda-strongly convex; both carry sqrt(2) for one set of "
    "parameters per class.",
  ]


def _least(value: str, kind: str) -> Check:
  """The least slack of all settings, log10(bound / measured), is above 0."""

  def check(table: Table) -> protocol.Finding:
    if "kind" not in table:
      return protocol.Finding("", why="the table has no column kind")
    own = [
      {"seed": seed, value: rows[value].min()}
      for (seed,), rows in table.where(kind=kind).split("seed")
    ]
    columns = {name: [row[name] for row in own] for name in ("seed", value)}
    found = mean_above(value)(Table(columns))
    statistic = "least log10(bound / measured) of all settings"
    return dataclasses.replace(found, statistic=statistic)

  return check


STUDY = protocol.Study(
  name="pate.bound",
  summary="PATE: the bound on a student's deviation against simulation",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  summaries=(
    Summary(
      "How loose the bounds are: log10(bound / measured)",
      by=("data", "teachers", "penalty"),
      values=("slack", "second_slack"),
      where={"kind": KINDS[1]},
    ),
  ),
  claims=(
    Claim(
      "bound in the papers",
      "The deviation is below the bound that the papers print",
      _least("slack", "bound in the papers"),
      "Corollary 1, Fig. 14; thesis 4.8, 4.9",
    ),
    Claim(
      "bound",
      "The deviation is below half of it",
      _least("slack", "bound"),
    ),
    Claim(
      "second moment",
      "The second moment is below the corrected bound",
      _least("second_slack", "bound"),
    ),
  ),
  figures=(
    Figure(
      "bound",
      "Deviation, and what bounds it",
      x="data",
      y="deviation",
      color="kind",
      facet="setting",
      log_y=True,
      y_title="E ||d||",
    ),
  ),
  derive=lambda table: _named(table),
)


def _named(table: Table) -> Table:
  """Adds what a panel of the figure is called."""
  if "penalty" not in table:
    return table
  pairs = zip(table["teachers"], table["penalty"], strict=True)
  return table.plus(setting=[f"k {k:g}, penalty {p:g}" for k, p in pairs])
