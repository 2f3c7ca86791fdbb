"""PATE: what epsilon, noise and consensus test buy, as one frontier.

Students of Confident-GNMax over budgets, noise and thresholds: epsilon against
the student's accuracy, its gap between groups, and the share of the public
queries that get a label.
"""

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, accounting, fairness, models, pate
from jaxfair import experiments as ex
from jaxfair.experiments import Positive, Table, _study
from jaxfair.experiments._config import plain
from jaxfair.experiments._measures import beside_constant
from jaxfair.fairness import _confusion
from jaxfair.studies.pate import ensembles as es
from jaxfair.types import Examples, Model, Params

PLAIN, CONFIDENT = pate.GnMax.name, pate.ConfidentGnMax.name
# Votes: a threshold that is always reached, and noise that tells nothing.
ALWAYS, NOTHING = -1e9, 1e7


class Config(es.EnsembleConfig):
  """Settings; every combination of epsilon, sigma and threshold is one."""

  epsilons: ex.Sweep[Positive] = (1.0, 3.0, 10.0)  # budgets of all labels of one student together
  delta: ex.Probability = 1e-5
  sigmas: ex.Sweep[Positive] = (20.0, 40.0)  # noise on the answers, in votes
  thresholds: ex.Sweep[_fields.Share] = (0.0, 0.75)  # of consensus, as shares; 0 is plain GNMax
  sigma_threshold: Positive = 50.0  # noise on the test, in votes
  penalty: ex.NonNegative = 0.005  # lambda of lambda ||theta||^2 beside the mean of the losses

  @property
  def grid(self) -> list[tuple[float, float, float]]:
    """All combinations of epsilon, sigma and threshold."""
    return [*itertools.product(self.epsilons, self.sigmas, self.thresholds)]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All settings on every split of one data set and number of teachers."""
  people, made = es.repetitions(config, cell, context)
  model = config.network(people)
  rows = []
  for seed, ensemble in enumerate(made):
    labels = _labels(config, ensemble, int(cell["teachers"]))
    found = _students(config, model, ensemble, labels, people.num_groups)
    for i, (epsilon, sigma, threshold) in enumerate(config.grid):
      setting = {"method": CONFIDENT if threshold > 0 else PLAIN, "epsilon": epsilon}
      means = {name: value[i].mean() for name, value in found.items()}
      rows.append(
        {**cell, **setting, "sigma": sigma, "threshold": threshold, **means, "seed": seed}
      )
  return ex.Table.from_rows(rows)


def _labels(config: Config, ensemble: es.Ensemble, teachers: int) -> np.ndarray:
  """[S, draws, m] labels that the budgets pay for, NO_ANSWER elsewhere."""
  epsilons, sigmas, thresholds = np.array(config.grid).T
  rhos = [accounting.zcdp_budget(epsilon=epsilon, delta=config.delta) for epsilon in epsilons]
  tested = thresholds > 0
  settings = (
    np.where(tested, thresholds * teachers, ALWAYS),
    np.where(tested, config.sigma_threshold, NOTHING),
    sigmas,
    rhos,
  )
  keys = jax.random.split(ensemble.key_noise, (len(sigmas), config.draws))
  return np.array(_draw(ensemble.counts, np.array(settings, np.float32).T, keys))


@jax.jit
def _draw(counts: Any, settings: jax.Array, keys: jax.Array) -> jax.Array:
  def one(setting: jax.Array, key: jax.Array) -> jax.Array:
    threshold, sigma_threshold, sigma_answer, max_rho = setting
    return pate.fair_gnmax(
      counts,
      jnp.zeros(len(counts), jnp.int32),
      num_groups=1,  # nobody to be compared with: every answer is fair
      threshold=threshold,
      sigma_threshold=sigma_threshold,
      sigma_answer=sigma_answer,
      max_gap=1.0,
      min_count=0,
      max_rho=max_rho,
      key=key,
      continuous=True,
    ).labels

  return jax.vmap(jax.vmap(one, (None, 0)))(settings, keys)


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
    counts = _confusion.prediction_counts(
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


def chosen(table: Table) -> Table:
  """Adds the accuracy of each budget's best setting, chosen on other seeds.

  Chosen on the seed that measures it, the best of many is too good. One row
  of each data set, ensemble, epsilon and seed has the value; NaN elsewhere.
  """
  value = np.full(len(table), np.nan)
  placed = table.plus(place=np.arange(len(table)), setting="{sigma} {threshold}")
  for _, rows in placed.split("data", "teachers", "epsilon"):
    matrix = rows.pivot("setting", "seed", "accuracy")
    if matrix.shape[1] < 2 or np.isnan(matrix).all():
      continue
    # A seed without a label counts against a setting, whatever the others do.
    known = np.nan_to_num(matrix, nan=-matrix.shape[1])
    best = (known.sum(axis=1, keepdims=True) - known).argmax(axis=0)
    first = rows.pivot("setting", "seed", "place")[0].astype(int)
    value[first] = matrix[best, np.arange(matrix.shape[1])]
  return table.plus(chosen_accuracy=value)


TEST_GAIN = ex.difference("accuracy", {"method": CONFIDENT}, {"method": PLAIN})

CLAIMS = {
  "epsilon buys accuracy: Students of larger budgets are more accurate": (
    ex.trend("accuracy", "epsilon") > 0
  ).in_each("data"),
  "the test pays: At the same budgets and noise, students of queries on which teachers agree are "
  "more accurate than those of all queries in turn": (TEST_GAIN > 0).in_each("data"),
  "epsilon widens the gap: Students of larger budgets have wider gaps between groups": (
    ex.trend("gap", "epsilon") > 0
  ).in_each("data"),
}


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


def _release(config: Config, at: Mapping[str, Any]) -> dict[str, Any] | None:
  """The `[release]` table of a point; None where the budget pays for no answer.

  The weight decay is that of the student, and teachers get the same.
  """
  epsilon, sigma, threshold = (float(at[name]) for name in ("epsilon", "sigma", "threshold"))
  own = {one.name: one for one in config.sets}
  rho = accounting.zcdp_budget(epsilon=epsilon, delta=config.delta)
  queries = config.queries if threshold else min(config.queries, int(rho * sigma**2))
  if not queries:
    return None
  same = ("hidden", "teacher_steps", "student_steps", "batch_size", "learning_rate")
  settings = {name: value for name, value in plain(config).items() if name in same}
  settings |= {"network": config.model, "queries": queries, "weight_decay": 2 * config.penalty}
  settings |= {"num_teachers": int(at["teachers"])}
  if threshold:
    ratio = config.sigma_threshold / sigma
    settings |= {"threshold": threshold, "test_ratio": ratio, "sigma_answer": sigma}
  return {
    "method": "confident_pate" if threshold else "pate",
    "epsilon": epsilon,
    "delta": config.delta,
    "settings": settings,
    "data": plain(own.get(str(at.get("data")), config.sets[0])),
    "public": config.queries,
    "test": config.test_people,
  }


STUDY = es.study(
  "pate.frontier",
  "PATE over budgets, noise and consensus: a frontier to choose from",
  Config,
  run,
  derive=chosen,
  notes=_notes,
  release=_release,
  summaries=(
    ex.summary(
      "What each setting gives",
      "accuracy, gap, coverage, answered ~ data, teachers, epsilon, sigma, threshold",
    ),
  ),
  claims=CLAIMS,
  figures=(
    ex.lines(
      "frontier: Accuracy of the best student at each epsilon",
      "chosen_accuracy ~ epsilon, teachers | data",
      "Noise and threshold of each epsilon are chosen on the other seeds, so the choice does not "
      "flatter them.",
      y_title="accuracy",
      log="x",
    ),
    *(
      ex.lines(
        f"{y}: {y.capitalize()} of every setting", f"{y} ~ epsilon, sigma | threshold", log="x"
      )
      for y in ("accuracy", "gap")
    ),
  ),
)
