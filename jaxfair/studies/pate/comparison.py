"""PATE: what noise in the teachers' votes does to the student of each group.

One ensemble for each number of teachers. Its students differ in their labels
only: the majority vote, noisy labels, noisy shares of the votes. All seeds of
a student (noise, start, batches) are one program.
"""

from collections.abc import Callable
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, accounting, data, models, pate, tree
from jaxfair import experiments as ex
from jaxfair.accounting import _guarantee
from jaxfair.experiments import Count, Positive, _study
from jaxfair.experiments._measures import EVERYONE, GroupMeasures, paired_costs
from jaxfair.pate import _aggregation
from jaxfair.studies.pate.ensembles import VotingConfig
from jaxfair.types import Examples, Model, Params

MAJORITY, HARD, SOFT = "majority vote", "noisy labels", "noisy shares"
# Analyzes of what the labels cost.
ANY, THESE = "any votes", "these votes"
SANITIZED, TOGETHER = "these votes, sanitized", "any votes, sanitized included"
MAY_BE_PUBLISHED = {
  ANY: "yes, if no sanitized figure is drawn",
  THESE: "no: a diagnosis, computed from private votes",
  SANITIZED: "yes, once; its own price is the next line",
  TOGETHER: "yes: labels and sanitized figure together",
}


class Config(VotingConfig):
  """Settings of a comparison of students with and without noise.

  Who is neither public nor private is in the test part.
  """

  data: ex.People = ex.People()
  teachers: ex.Sweep[Count] = (20, 150)
  sigma: Positive = 50.0
  delta: ex.Probability = 1e-6
  # Share of teachers that agree, guessed without looking at votes to plan the sanitized epsilon.
  consensus: Annotated[float, _fields.Within(0.5, 1.0)] = 0.9
  weight_decay: ex.NonNegative = 0.02  # on the student: 2 lambda in the paper's words
  seeds: Count = 100

  @property
  def epsilon(self) -> float:
    """Of all labels of one student, at `delta`, whatever the votes."""
    events = accounting.pate_events(sigma=self.sigma, num_queries=self.queries)
    return accounting.composed_guarantee(
      events, delta=self.delta, relation=accounting.Relation.REPLACE_ONE
    ).epsilon


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """Teachers, votes, and all students of one ensemble."""
  people = context.load(config.data)
  public, private, test = data.prepare(people, config.sizes(people), key=context.shared_key).parts
  key_votes, key_labels, key_students, key_figure = jax.random.split(context.key, 4)
  model = config.network(people)
  counts = config.count_votes(
    people, private, public.x, int(cell["teachers"]), keys=jax.random.split(key_votes)
  )
  settings = config.fit(config.student_steps, public.size, weight_decay=config.weight_decay)
  keys = jax.random.split(key_students, config.seeds)
  students = {
    name: pate.train_student(
      model, models.cross_entropy, public.x, labels, settings, keys=keys
    ).params
    for name, labels in _labels(config, counts, key=key_labels).items()
  }
  measure = _measurement(model, students[MAJORITY], test, people)
  tables = []
  for name, params in students.items():
    epsilon = np.inf if name == MAJORITY else config.epsilon
    setting = {"data": people.name, **cell, "labels": name, "epsilon": epsilon}
    tables.append(ex.group_table(setting, measure(params), people.group_names))
  spent = epsilons(config, np.asarray(counts), key=key_figure)
  rows = [
    {**cell, "analysis": name, "published": MAY_BE_PUBLISHED[name], "label_epsilon": epsilon}
    for name, epsilon in spent.items()
  ]
  told = ex.Table.from_rows({"data": people.name, **row} for row in rows)
  return ex.Table.concat([*tables, told])


def epsilons(config: Config, counts: np.ndarray, *, key: jax.Array) -> dict[str, float]:
  """What GNMax labels of all queries cost with discrete noise, by every analysis.

  Privacy:
    The figure of `THESE` is a function of private votes, and says so in the table.
  """
  noise: Any = {"sigma": config.sigma, "delta": config.delta}
  own = accounting.pate_diagnosis(counts, discrete=True, **noise)
  plan = accounting.plan_sanitizing(
    num_queries=len(counts),
    num_teachers=int(counts[0].sum()),
    num_classes=counts.shape[1],
    consensus=config.consensus,
    **noise,
  )
  any_votes = _guarantee.round_up(config.epsilon)
  # Without a plan no figure is drawn: what holds for any votes is published.
  shown = together = any_votes
  if plan is not None:
    figure = accounting.sanitized_epsilon(counts, plan=plan, key=key, discrete=True, **noise)
    shown, together = figure.epsilon, _guarantee.round_up(figure.guarantee.epsilon)
  these = _guarantee.round_up(own.not_for_release)
  return {ANY: any_votes, THESE: these, SANITIZED: shown, TOGETHER: together}


def _labels(config: Config, counts: jax.Array, *, key: jax.Array) -> dict[str, Any]:
  """Each student's labels: ids [seeds, n], or weights [seeds, n, C]."""
  key_ties, key_hard, key_soft = jax.random.split(key, 3)

  def noisy(rule: Callable[..., jax.Array], key: jax.Array) -> jax.Array:
    draw = jax.vmap(lambda own: rule(counts, sigma=config.sigma, key=own))
    return draw(jax.random.split(key, config.seeds))

  majority = _aggregation.plurality(counts, key=key_ties)
  return {
    MAJORITY: jnp.tile(majority, (config.seeds, 1)),
    HARD: noisy(pate.gnmax, key_hard),
    SOFT: noisy(pate.soft_labels, key_soft),
  }


def _measurement(
  model: Model, majority: Params, test: Examples, people: data.Dataset
) -> Callable[[Params], GroupMeasures]:
  """What students do to each group, and how far noise moved them."""
  test = jax.tree.map(jnp.asarray, test)

  def one(pair: tuple[Params, Params]) -> GroupMeasures:
    params, before = pair
    measured = ex.measure_groups(model.apply(params, test.x), test, people)
    moved = tree.norm(tree.subtract(params, before))  # ||theta~ - theta*||
    return measured._replace(gaps=measured.gaps | {"deviation": moved})

  return jax.jit(lambda params: jax.lax.map(one, (params, majority)))


def _notes(config: Config) -> list[str]:
  return [
    f"The labels of {config.queries} public people cost epsilon "
    f"{_guarantee.round_up(config.epsilon)} at delta {config.delta:g}, for one person replaced "
    f"by another: discrete Gaussian noise of sigma {config.sigma:g} votes on every label, or on "
    "every share of the votes. It covers the student's parameters. Students of the majority "
    "vote are not private.",
    "Which epsilon may be told: the one for any votes, and the sanitized one. The one for these "
    "votes is computed from private votes and is a diagnosis for those who hold the data. Noisy "
    "shares have the first one only.",
    "Intervals are over noise, starts and batches of the students of one ensemble on one split. "
    "The figures on this page are measured on held-out people without noise: they are for those "
    "who hold the data.",
  ]


NOISY = {"labels": HARD, "group": EVERYONE}
SOFT_GAIN = ex.difference("accuracy_cost", {"labels": HARD}, {"labels": SOFT}).at(group=EVERYONE)

STUDY = ex.Study(
  name="pate.comparison",
  summary="Students of noisy votes beside students of the majority vote",
  config=Config,
  cells=ex.grid(teachers="teachers"),
  run=run,
  precheck=lambda config, people: config.sizes(people),
  derive=lambda table: paired_costs(table, "labels", MAJORITY, pair=("teachers", "seed", "group")),
  notes=_notes,
  plain={"labels": MAJORITY},
  summaries=(
    ex.summary(
      "By group",
      "accuracy, accuracy_cost, loss, loss_cost ~ teachers, labels, group",
      {"analysis": ""},
    ),
    ex.summary(
      "Gaps between groups, and how far noise moves the student",
      "accuracy_parity_difference, demographic_parity_difference, deviation ~ teachers, labels",
      {"group": EVERYONE},
    ),
    ex.summary(
      "Epsilon of the labels, by every analysis, and whether it may be published",
      "label_epsilon ~ teachers, analysis, published",
      {"analysis": tuple(MAY_BE_PUBLISHED)},
    ),
  ),
  claims={
    "noise costs accuracy: Students of noisy labels are less accurate than those of the majority": (
      ex.mean("accuracy_cost") > 0
    ).at(**NOISY),
    "who pays: Noise in the labels costs one group more accuracy than another": (
      ex.spread("accuracy_cost", "group") > 0
    ).at(labels=HARD, group=ex.but(EVERYONE, "")),
    "shares cost less with few teachers: With the fewest teachers, noisy shares cost less than "
    "noisy labels": (SOFT_GAIN > 0).at(teachers=min),
    "shares cost less with many teachers: With the most teachers, noisy shares cost less than "
    "noisy labels": (SOFT_GAIN > 0).at(teachers=max),
  },
  figures=(
    ex.bars(
      "cost: Who pays for noise in the votes",
      "accuracy_cost ~ group, labels | teachers",
      "Accuracy of the majority's student minus that of the noisy one, same seed; above 0 the "
      "group pays.",
      zero=True,
      y_title="accuracy lost to noise",
    ),
    ex.bars(
      "accuracy: Accuracy by group",
      "accuracy ~ group, labels | teachers",
      "Share of correct predictions on held-out people.",
    ),
  ),
)
