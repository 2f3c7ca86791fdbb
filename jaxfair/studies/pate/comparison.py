"""PATE: what noise in the teachers' votes does to the student of each group.

One ensemble for each number of teachers. Its students differ in their labels
only: the majority vote, noisy labels, noisy shares of the votes. All seeds of
a student (noise, start, batches) are one program.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, data, models, pate, training, tree
from jaxfair.experiments.measures import (
  EVERYONE,
  GroupMeasures,
  group_table,
  measure_groups,
  paired_costs,
)
from jaxfair.experiments.people import People, load_people
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import (
  Check,
  difference_above,
  mean_above,
  spread_above,
)
from jaxfair.studies.pate.epsilons import SUMMARY as EPSILONS
from jaxfair.studies.pate.epsilons import epsilon_table
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.types import Examples, Model, Params

MAJORITY, HARD, SOFT = "majority vote", "noisy labels", "noisy shares"


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of a comparison of students with and without noise.

  `weight_decay` is on the student: 2 lambda in the paper's words. `queries`
  people are taken to be public, and the scaler is fitted on them; who is
  neither public nor private is in the test part. `consensus` is the share of
  teachers that agree, guessed without looking at votes: the sanitised epsilon
  is planned for it.
  """

  data: People = dataclasses.field(default_factory=People)
  model: Literal["logistic", "mlp"] = "mlp"
  hidden: tuple[int, ...] = (64, 64)
  teachers: tuple[int, ...] = (20, 150)
  queries: int = 200
  sigma: float = 50.0
  delta: float = 1e-6
  consensus: float = 0.9
  weight_decay: float = 0.02
  teacher_steps: int = 200
  student_steps: int = 300
  batch_size: int = 32
  learning_rate: float = 1e-3
  seeds: int = 100
  private_fraction: float = 0.75

  def __post_init__(self) -> None:
    for name in ("queries", "teacher_steps", "student_steps", "seeds"):
      checks.integer(name, getattr(self, name), low=1)
    checks.integer("batch_size", self.batch_size, low=1, high=self.queries)
    for count in self.teachers:
      checks.integer("teachers", count, low=1)
    for name in ("sigma", "learning_rate"):
      checks.positive(name, getattr(self, name))
    checks.non_negative("weight_decay", self.weight_decay)
    checks.number("consensus", self.consensus, low=0.5, high=1.0)
    checks.number("private_fraction", self.private_fraction, low=0.1, high=0.95)
    checks.number(
      "delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True
    )

  @property
  def epsilon(self) -> float:
    """Of all labels of one student, at `delta`."""
    answers = accounting.Repeated(pate.GnMax(self.sigma).answer, self.queries)
    return accounting.composed_guarantee(
      [answers], delta=self.delta, relation=accounting.Relation.REPLACE_ONE
    ).epsilon


def cells(config: Config) -> list[protocol.Settings]:
  """One cell per number of teachers."""
  return [{"teachers": count} for count in config.teachers]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """Teachers, votes, and all students of one ensemble."""
  people, note = load_people(config.data)
  context.say(note)
  public, private, test = data.prepare(
    people, _sizes(config, people), key=context.shared_key
  ).parts
  keys = jax.random.split(context.key, 4)
  key_votes, key_labels, key_students, key_figure = keys
  model = _model(config, people)
  votes = _votes(config, cell, model, private, public, key=key_votes)
  counts = pate.vote_counts(votes, people.num_classes)
  settings = dataclasses.replace(
    _fit(config, config.student_steps, public.size),
    weight_decay=config.weight_decay,
  )
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
    tables.append(group_table(setting, measure(params), people.group_names))
  spent = epsilon_table(
    {"data": people.name, **cell},
    np.asarray(counts),
    sigma=config.sigma,
    delta=config.delta,
    consensus=config.consensus,
    key=key_figure,
  )
  return Table.concat([*tables, spent])


def costs(table: Table) -> Table:
  """What noise costs each student, against the same one without it."""
  return paired_costs(
    table, "labels", MAJORITY, pair=("teachers", "seed", "group")
  )


def _sizes(config: Config, people: data.Dataset) -> tuple[int, int, int]:
  private = round(config.private_fraction * people.size)
  rest = people.size - private - config.queries
  checks.require(
    rest > 0,
    f"queries={config.queries} leaves nobody of {people.size} people to test "
    "on; use fewer queries, or a smaller private_fraction",
  )
  return config.queries, private, rest


def _votes(
  config: Config,
  cell: protocol.Settings,
  model: Model,
  private: Examples,
  public: Examples,
  *,
  key: jax.Array,
) -> jax.Array:
  """[teachers, queries] predictions."""
  key_parts, key_teachers = jax.random.split(key)
  parts = data.partition(private, int(cell["teachers"]), key=key_parts)
  teachers = pate.train_teachers(
    model,
    models.cross_entropy,
    parts,
    _fit(config, config.teacher_steps, parts.y.shape[1]),
    key=key_teachers,
  )
  return pate.predict_votes(model, teachers, public.x)


def _labels(
  config: Config, counts: jax.Array, *, key: jax.Array
) -> dict[str, Any]:
  """Each student's labels: ids [seeds, n], or weights [seeds, n, C]."""
  key_ties, key_hard, key_soft = jax.random.split(key, 3)

  def hard(key: jax.Array) -> jax.Array:
    return pate.gnmax(counts, sigma=config.sigma, key=key)

  def soft(key: jax.Array) -> jax.Array:
    return pate.soft_labels(counts, sigma=config.sigma, key=key)

  return {
    MAJORITY: jnp.tile(pate.plurality(counts, key=key_ties), (config.seeds, 1)),
    HARD: jax.vmap(hard)(jax.random.split(key_hard, config.seeds)),
    SOFT: jax.vmap(soft)(jax.random.split(key_soft, config.seeds)),
  }


def _measurement(
  model: Model, majority: Params, test: Examples, people: data.Dataset
) -> Callable[[Params], GroupMeasures]:
  """What students do to each group, and how far noise moved them."""
  test = jax.tree.map(jnp.asarray, test)

  def one(pair: tuple[Params, Params]) -> GroupMeasures:
    params, before = pair
    measured = measure_groups(model.apply(params, test.x), test, people)
    moved = tree.norm(tree.subtract(params, before))  # ||theta~ - theta*||
    return measured._replace(gaps=measured.gaps | {"deviation": moved})

  return jax.jit(lambda params: jax.lax.map(one, (params, majority)))


def _model(config: Config, people: data.Dataset) -> Model:
  if config.model == "logistic":
    return models.logistic(people.num_classes)
  return models.mlp(config.hidden, people.num_classes)


def _fit(config: Config, steps: int, size: int) -> training.FitConfig:
  batch = config.batch_size if config.batch_size < size else None
  return training.FitConfig(
    learning_rate=config.learning_rate, steps=steps, batch_size=batch
  )


def _notes(config: Config) -> list[str]:
  return [
    f"The labels of {config.queries} public people cost epsilon "
    f"{accounting.round_up(config.epsilon)} at delta {config.delta:g}, for one "
    "person replaced by another: discrete Gaussian noise of sigma "
    f"{config.sigma:g} votes on every label, or on every share of the votes. "
    "It covers the student's parameters. Students of the majority vote are not "
    "private.",
    "Which epsilon may be told: the one for any votes, and the sanitised one. "
    "The one for these votes is computed from private votes and is a diagnosis "
    "for those who hold the data. Noisy shares have the first one only.",
    "Intervals are over noise, starts and batches of the students of one "
    "ensemble on one split. The figures on this page are measured on held-out "
    "people without noise: they are for those who hold the data.",
  ]


def _at(pick: Any, check: Check) -> Check:
  """The check on the ensemble with the fewest (min) or most (max) teachers."""
  return lambda table: check(table.where(teachers=pick(table["teachers"])))


_SOFT_GAIN = difference_above(
  "accuracy_cost",
  first={"labels": HARD, "group": EVERYONE},
  second={"labels": SOFT, "group": EVERYONE},
)


STUDY = protocol.Study(
  name="pate.comparison",
  summary="Students of noisy votes beside students of the majority vote",
  config=Config,
  cells=cells,
  run=run,
  derive=costs,
  notes=_notes,
  summaries=(
    Summary(
      "By group",
      by=("teachers", "labels", "group"),
      values=("accuracy", "accuracy_cost", "loss", "loss_cost"),
      where={"analysis": ""},
    ),
    Summary(
      "Gaps between groups, and how far noise moves the student",
      by=("teachers", "labels"),
      values=(
        "accuracy_parity_difference",
        "demographic_parity_difference",
        "deviation",
      ),
      where={"group": EVERYONE},
    ),
    EPSILONS,
  ),
  claims=(
    Claim(
      "noise costs accuracy",
      "Students of noisy labels are less accurate than those of the majority",
      mean_above("accuracy_cost", where={"labels": HARD, "group": EVERYONE}),
    ),
    Claim(
      "who pays",
      "Noise in the labels costs one group more accuracy than another",
      lambda table: spread_above(
        "accuracy_cost", between="group", without=EVERYONE
      )(table.where(labels=HARD)),
    ),
    Claim(
      "shares cost less with few teachers",
      "With the fewest teachers, noisy shares cost less than noisy labels",
      _at(min, _SOFT_GAIN),
    ),
    Claim(
      "shares cost less with many teachers",
      "With the most teachers, noisy shares cost less than noisy labels",
      _at(max, _SOFT_GAIN),
    ),
  ),
  figures=(
    Figure(
      "cost",
      "Who pays for noise in the votes",
      x="group",
      y="accuracy_cost",
      color="labels",
      facet="teachers",
      reference=0.0,
      y_title="accuracy lost to noise",
      caption="Accuracy of the majority's student minus that of the noisy "
      "one, same seed; above 0 the group pays.",
    ),
    Figure(
      "accuracy",
      "Accuracy by group",
      x="group",
      y="accuracy",
      color="labels",
      facet="teachers",
      caption="Share of correct predictions on held-out people.",
    ),
  ),
)
