"""Students of Confident-GNMax over budgets, noise and thresholds.

The frontier of plain PATE: epsilon against the student's accuracy, its gap
between groups, and the share of the public queries that get a label.
"""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import experiments as ex
from jaxfair import fairness, models, pate
from jaxfair.experiments import Figure, Positive
from jaxfair.experiments._measures import beside_constant
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate.frontier import findings
from jaxfair.studies.pate.frontier.budget import asked, spending
from jaxfair.types import Examples, Model, Params

ALWAYS = -1e9  # votes: a threshold that is always reached


class Config(es.EnsembleConfig):
  """Settings; every combination of epsilon, sigma and threshold is one.

  Attributes:
    epsilons: budgets of all labels of one student together.
    delta: in (0, 1).
    sigmas: noise on the answers, in votes.
    thresholds: of the test of consensus, as shares of the teachers; 0 is no
      test, and plain GNMax.
    sigma_threshold: noise on the test, in votes.
    penalty: lambda of lambda ||theta||^2 beside the mean of the losses.
  """

  epsilons: ex.Sweep[Positive] = (1.0, 3.0, 10.0)
  delta: ex.Probability = 1e-5
  sigmas: ex.Sweep[Positive] = (20.0, 40.0)
  thresholds: ex.Sweep[ex.Share] = (0.0, 0.75)
  sigma_threshold: Positive = 50.0
  penalty: ex.NonNegative = 0.005

  @property
  def grid(self) -> list[tuple[float, float, float]]:
    """All combinations of epsilon, sigma and threshold."""
    return [*itertools.product(self.epsilons, self.sigmas, self.thresholds)]


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All settings on every split of one data set and number of teachers."""
  people, made = es.repetitions(config, cell, context)
  model = config.network(people)
  rows = []
  for seed, ensemble in enumerate(made):
    labels = _labels(config, ensemble, int(cell["teachers"]))
    found = _students(config, model, ensemble, labels, people.num_groups)
    for i, (epsilon, sigma, threshold) in enumerate(config.grid):
      method = findings.CONFIDENT if threshold > 0 else findings.PLAIN
      setting = {"method": method, "epsilon": epsilon, "sigma": sigma}
      means = {name: value[i].mean() for name, value in found.items()}
      own = {**cell, **setting, "threshold": threshold}
      rows.append(own | means | {"seed": seed})
  return ex.Table.from_rows(rows)


def _labels(config: Config, ensemble: es.Ensemble, teachers: int) -> np.ndarray:
  """[S, draws, m] labels that the budgets pay for, NO_ANSWER elsewhere."""
  _, sigmas, thresholds = np.array(config.grid).T
  drawn = _draw(
    ensemble.counts,
    jnp.where(thresholds > 0, thresholds * teachers, ALWAYS),
    jnp.array(sigmas, jnp.float32),
    config.sigma_threshold,
    jax.random.split(ensemble.key_noise, (len(sigmas), config.draws)),
  )
  labels = np.array(drawn)
  for i, (epsilon, sigma, threshold) in enumerate(config.grid):
    prices = spending(
      epsilon=epsilon,
      delta=config.delta,
      sigma=sigma,
      sigma_threshold=config.sigma_threshold if threshold > 0 else None,
    )
    paid = asked(labels[i] != pate.NO_ANSWER, prices)
    labels[i] = np.where(paid, labels[i], pate.NO_ANSWER)
  return labels


@jax.jit
def _draw(counts: Any, thresholds: Any, sigmas: Any, sigma_threshold: Any, keys: Any) -> jax.Array:
  def one(threshold: Any, sigma: Any, key: jax.Array) -> jax.Array:
    return pate.confident_gnmax(
      counts,
      threshold=threshold,
      sigma_threshold=sigma_threshold,
      sigma_answer=sigma,
      key=key,
      continuous=True,
    )

  draws = jax.vmap(one, (None, None, 0))
  return jax.vmap(draws)(thresholds, sigmas, keys)


def _students(
  config: Config, model: Model, ensemble: es.Ensemble, labels: np.ndarray, num_groups: int
) -> dict[str, np.ndarray]:
  """[S, draws] of each measure; NaN where a budget paid for no label."""
  shape, size = labels.shape[:2], labels.shape[2]
  answered = labels != pate.NO_ANSWER
  nothing = ~answered.any(axis=-1)
  # A student needs a label; what it becomes without any is not told.
  labels = np.where(nothing[..., None], 0, labels)
  decay = 2 * config.penalty
  fitted = pate.train_student(
    model,
    models.cross_entropy,
    ensemble.public.x,
    labels.reshape(-1, size),
    config.fit(config.student_steps, size, weight_decay=decay),
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
      jnp.argmax(logits, -1),
      sensitive_features=test.group,
      num_groups=num_groups,
      num_classes=logits.shape[-1],
    )
    gap = jnp.nanmax(fairness.demographic_disparity(counts))
    right = 1 - jnp.mean(models.zero_one(logits, test.y))
    constant = beside_constant(test.y, jnp.argmax(logits, -1), logits.shape[-1])
    return {"accuracy": right, "gap": gap} | constant

  return jax.lax.map(one, params, batch_size=8)


def _notes(config: Config) -> list[str]:
  return [
    f"epsilon is the budget of all labels of a student at delta {config.delta:g}, for one person "
    "replaced by another. Queries are answered in order until the next might exceed it, whatever "
    "the votes: it may be published, and it covers the student.",
    "gap is the largest demographic disparity of the student's predictions (a group's rate of a "
    "class minus that of everybody else). coverage is the share of the "
    f"{config.queries} public queries that got a label; the student itself answers everybody.",
    f"Each value is a mean over {config.draws} draws of noise; seeds are {config.splits} splits "
    "of the people with teachers of their own. Measured on held-out people without noise: for "
    "those who hold the data.",
  ]


def _every(name: str) -> Figure:
  title, color = f"{name.capitalize()} of every setting", "sigma"
  return Figure(name, title, "epsilon", name, "line", color, "threshold", log_x=True)


STUDY = es.study(
  "pate.frontier",
  "PATE over budgets, noise and consensus: a frontier to choose from",
  Config,
  run,
  derive=findings.chosen,
  notes=_notes,
  summaries=(
    ex.Summary(
      "What each setting gives",
      ("data", "teachers", "epsilon", "sigma", "threshold"),
      ("accuracy", "gap", "coverage", "answered"),
    ),
  ),
  claims=findings.CLAIMS,
  figures=(
    Figure(
      "frontier",
      "Accuracy of the best student at each epsilon",
      "epsilon",
      "chosen_accuracy",
      "line",
      "teachers",
      "data",
      y_title="accuracy",
      log_x=True,
      caption="Noise and threshold of each epsilon are chosen on the other seeds, so the choice "
      "does not flatter them.",
    ),
    _every("accuracy"),
    _every("gap"),
  ),
)
