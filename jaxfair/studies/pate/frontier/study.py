"""Students of Confident-GNMax over budgets, noise and thresholds.

The frontier of plain PATE: epsilon against the student's accuracy, its gap
between groups, and the share of the public queries that get a label.
"""

import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, fairness, models, pate
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.pate.ensembles import (
  Ensemble,
  EnsembleConfig,
  cells,
  ensembles,
  fit_config,
  load_set,
  model_of,
)
from jaxfair.studies.pate.frontier.budget import asked, spending
from jaxfair.studies.pate.frontier.findings import CLAIMS, chosen
from jaxfair.studies.pate.frontier.settings import Setting
from jaxfair.studies.protocol import Figure, Summary
from jaxfair.types import Examples, Model, Params

ALWAYS = -1e9  # votes: a threshold that is always reached


@dataclasses.dataclass(frozen=True)
class Config(EnsembleConfig):
  """Settings; every combination of epsilon, sigma and threshold is one.

  Attributes:
    epsilons: budgets of all labels of one student together.
    delta: in (0, 1).
    sigmas: of the noise on the answers, in votes.
    thresholds: of the test of consensus, as shares of the teachers; 0 is no
      test, and plain GNMax.
    sigma_threshold: of the noise on the test, in votes.
    penalty: lambda of lambda ||theta||^2 beside the mean of the losses.
  """

  epsilons: tuple[float, ...] = (1.0, 3.0, 10.0)
  delta: float = 1e-5
  sigmas: tuple[float, ...] = (20.0, 40.0)
  thresholds: tuple[float, ...] = (0.0, 0.75)
  sigma_threshold: float = 50.0
  penalty: float = 0.005

  def __post_init__(self) -> None:
    super().__post_init__()
    for name in ("epsilons", "sigmas", "sigma_threshold"):
      checks.positive(name, getattr(self, name))
    checks.number("thresholds", self.thresholds, low=0.0, high=1.0)
    checks.non_negative("penalty", self.penalty)
    checks.number(
      "delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True
    )


def grid(config: Config) -> list[Setting]:
  """All settings of an ensemble."""
  every = (config.epsilons, config.sigmas, config.thresholds)
  return [Setting(*values) for values in itertools.product(*every)]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All settings on every split of one data set and number of teachers."""
  people, note = load_set(config, cell["data"])
  context.say(note)
  model = model_of(config, people)
  tables = []
  made = ensembles(config, people, int(cell["teachers"]), context)
  for seed, ensemble in enumerate(made):
    labels = _labels(config, ensemble, int(cell["teachers"]))
    found = _students(config, model, ensemble, labels, people.num_groups)
    for i, setting in enumerate(grid(config)):
      row = {**cell, "method": setting.method, **setting._asdict()}
      values = {name: value[i].mean() for name, value in found.items()}
      tables.append(
        Table({key: [value] for key, value in (row | values).items()}).plus(
          seed=[seed]
        )
      )
  return Table.concat(tables)


def _labels(config: Config, ensemble: Ensemble, teachers: int) -> np.ndarray:
  """[S, draws, m] labels that the budgets pay for, NO_ANSWER elsewhere."""
  settings = grid(config)
  tested = np.array([s.threshold > 0 for s in settings])
  votes = np.array([s.threshold * teachers for s in settings])
  drawn = _draw(
    ensemble.counts,
    jnp.where(tested, votes, ALWAYS),
    jnp.array([s.sigma for s in settings], jnp.float32),
    config.sigma_threshold,
    jax.random.split(ensemble.key_noise, (len(settings), config.draws)),
  )
  labels = np.array(drawn)
  for i, setting in enumerate(settings):
    prices = spending(
      epsilon=setting.epsilon,
      delta=config.delta,
      sigma=setting.sigma,
      sigma_threshold=config.sigma_threshold if tested[i] else None,
    )
    paid = asked(labels[i] != pate.NO_ANSWER, prices)
    labels[i] = np.where(paid, labels[i], pate.NO_ANSWER)
  return labels


@jax.jit
def _draw(
  counts: Any, thresholds: Any, sigmas: Any, sigma_threshold: Any, keys: Any
) -> jax.Array:
  def one(threshold: Any, sigma: Any, key: jax.Array) -> jax.Array:
    return pate.confident_gnmax(
      counts, threshold=threshold, sigma_threshold=sigma_threshold,
      sigma_answer=sigma, key=key, continuous=True,
    )  # fmt: skip

  draws = jax.vmap(one, (None, None, 0))
  return jax.vmap(draws)(thresholds, sigmas, keys)


def _students(
  config: Config,
  model: Model,
  ensemble: Ensemble,
  labels: np.ndarray,
  num_groups: int,
) -> dict[str, np.ndarray]:
  """[S, draws] of each measure; NaN where a budget paid for no label."""
  shape = labels.shape[:2]
  answered = labels != pate.NO_ANSWER
  nothing = ~answered.any(axis=-1)
  # One student needs one label; what it becomes without any is not told.
  labels = np.where(nothing[..., None], 0, labels)
  settings = dataclasses.replace(
    fit_config(config, config.student_steps, labels.shape[-1]),
    weight_decay=2 * config.penalty,
  )
  fitted = pate.train_student(
    model,
    models.cross_entropy,
    ensemble.public.x,
    labels.reshape(-1, labels.shape[-1]),
    settings,
    keys=jnp.broadcast_to(ensemble.key, shape[0] * shape[1]),
  )
  found = _measured(model, fitted.params, ensemble.test, num_groups)
  measures = {
    name: np.where(nothing, np.nan, np.asarray(value, float).reshape(shape))
    for name, value in found.items()
  }
  return measures | {
    "coverage": answered.mean(axis=-1),
    "answered": answered.sum(axis=-1).astype(float),
  }


@functools.partial(jax.jit, static_argnames=("model", "num_groups"))
def _measured(
  model: Model, params: Params, test: Examples, num_groups: int
) -> dict[str, jax.Array]:
  """[k] accuracy, and largest demographic disparity of the predictions."""

  def one(own: Params) -> dict[str, jax.Array]:
    logits = model.apply(own, test.x)
    counts = fairness.prediction_counts(
      jnp.argmax(logits, -1), sensitive_features=test.group,
      num_groups=num_groups, num_classes=logits.shape[-1],
    )  # fmt: skip
    gap = jnp.nanmax(fairness.demographic_disparity(counts))
    right = 1 - jnp.mean(models.zero_one(logits, test.y))
    return {"accuracy": right, "gap": gap}

  return jax.lax.map(one, params, batch_size=8)


def _notes(config: Config) -> list[str]:
  return [
    "epsilon is the budget of all labels of a student at delta "
    f"{config.delta:g}, for one person replaced by another. Queries are "
    "answered in order until the next might exceed it, whatever the votes: it "
    "may be published, and it covers the student.",
    "gap is the largest demographic disparity of the student's predictions "
    "(a group's rate of a class minus that of everybody else). coverage is "
    f"the share of the {config.queries} public queries that got a label; the "
    "student itself answers everybody.",
    f"Each value is a mean over {config.draws} draws of noise; seeds are "
    f"{config.splits} splits of the people with teachers of their own. "
    "Measured on held-out people without noise: for those who hold the data.",
  ]


STUDY = protocol.Study(
  name="pate.frontier",
  summary="PATE over budgets, noise and consensus: a frontier to choose from",
  config=Config,
  cells=cells,
  run=run,
  derive=chosen,
  notes=_notes,
  summaries=(
    Summary(
      "What each setting gives",
      by=("data", "teachers", "epsilon", "sigma", "threshold"),
      values=("accuracy", "gap", "coverage", "answered"),
    ),
  ),
  claims=CLAIMS,
  figures=(
    Figure(
      "frontier",
      "Accuracy of the best student at each epsilon",
      x="epsilon",
      y="chosen_accuracy",
      y_title="accuracy",
      mark="line",
      color="teachers",
      facet="data",
      log_x=True,
      caption="Noise and threshold of each epsilon are chosen on the other "
      "seeds, so the choice does not flatter them.",
    ),
    Figure(
      "accuracy",
      "Accuracy of every setting",
      x="epsilon",
      y="accuracy",
      mark="line",
      color="sigma",
      facet="threshold",
      log_x=True,
    ),
    Figure(
      "gap",
      "Gap of every setting",
      x="epsilon",
      y="gap",
      mark="line",
      color="sigma",
      facet="threshold",
      log_x=True,
    ),
  ),
)
