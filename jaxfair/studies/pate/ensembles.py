"""What the PATE figures stand on: people are split, teachers learn and vote.

A repetition is a split of the people, with teachers of its own.
"""

import dataclasses
from collections.abc import Iterator
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, data, models, pate, training
from jaxfair.experiments.people import People, load_people, set_name
from jaxfair.studies import protocol
from jaxfair.types import Examples, Model


@dataclasses.dataclass(frozen=True)
class EnsembleConfig:
  """Settings that all figures share.

  Attributes:
    sets: whom to look at; each set has its own teachers.
    model: of teachers and students.
    hidden: widths of its layers.
    teachers: numbers of teachers, each an ensemble.
    queries: people taken to be public; the scaler is fitted on them.
    private_fraction: of the people, for the teachers.
    test_people: at most so many of the others measure the students.
    teacher_steps: of batches of `batch_size`, or of a whole smaller part.
    student_steps: likewise.
    batch_size: of teachers and students.
    learning_rate: of Adam.
    splits: repetitions; intervals are over them.
    draws: of noise, for each repetition and setting.
  """

  sets: tuple[People, ...] = (People(),)
  model: Literal["logistic", "mlp"] = "mlp"
  hidden: tuple[int, ...] = (64, 64)
  teachers: tuple[int, ...] = (150,)
  queries: int = 200
  private_fraction: float = 0.75
  test_people: int = 4000
  teacher_steps: int = 200
  student_steps: int = 300
  batch_size: int = 32
  learning_rate: float = 1e-3
  splits: int = 20
  draws: int = 100

  def __post_init__(self) -> None:
    names = [set_name(one) for one in self.sets]
    checks.require(
      0 < len(set(names)) == len(names),
      f"sets={names} must be one or more different data sets",
    )
    whole = ("queries", "test_people", "teacher_steps", "student_steps")
    for name in (*whole, "splits"):
      checks.integer(name, getattr(self, name), low=1)
    for count in self.teachers:
      checks.integer("teachers", count, low=1)
    for width in self.hidden:
      checks.integer("hidden", width, low=1)
    checks.integer("draws", self.draws, low=2)
    checks.integer("batch_size", self.batch_size, low=1, high=self.queries)
    checks.positive("learning_rate", self.learning_rate)
    checks.number("private_fraction", self.private_fraction, low=0.1, high=0.95)


@dataclasses.dataclass(frozen=True)
class PenaltyConfig(EnsembleConfig):
  """Settings of the figures at one sigma and several penalties.

  Attributes:
    penalties: lambdas of lambda ||theta||^2 beside the sum of the losses.
    sigma: of the noise on the votes.
  """

  penalties: tuple[float, ...] = (1.0, 100.0)
  sigma: float = 50.0

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.positive("penalties", self.penalties)
    checks.positive("sigma", self.sigma)


class Ensemble(NamedTuple):
  """One repetition: people, and what the teachers say of the public ones.

  Attributes:
    public: the queries, with their true labels.
    test: people that measure the students.
    counts: [m, C] votes.
    majority: [m] plurality labels.
    key: start and batches of all students of this repetition.
    key_noise: for the noise on their labels.
  """

  public: Examples
  test: Examples
  counts: np.ndarray
  majority: jax.Array
  key: jax.Array
  key_noise: jax.Array


def cells(config: EnsembleConfig) -> list[protocol.Settings]:
  """One cell per data set and number of teachers: each is trained once."""
  for one in config.sets:
    sizes(config, load_set(config, set_name(one))[0])
  return [
    {"data": set_name(one), "teachers": count}
    for one in config.sets
    for count in config.teachers
  ]


def load_set(config: EnsembleConfig, name: object) -> tuple[data.Dataset, str]:
  """The set of this name, row by row, and what the reader must be told.

  As in the papers a row is a person. Where one person has many rows, as in
  Parkinsons, whole people would leave a query set of one or two of them.
  """
  (wanted,) = (one for one in config.sets if set_name(one) == name)
  people, note = load_people(wanted)
  if people.unit is not None:
    note += (
      f"{people.name} has several rows of one person. Rows are split as in "
      "the papers, so epsilon protects a row, not a person, and people of the "
      "test part may be known from other rows."
    )
  return dataclasses.replace(people, unit=None), note


def sizes(config: EnsembleConfig, people: data.Dataset) -> tuple[int, int, int]:
  """Public, private and test people."""
  private = round(config.private_fraction * people.size)
  rest = people.size - private - config.queries
  checks.require(
    rest > 0,
    f"queries={config.queries} leaves nobody of {people.size} people to test "
    "on; use fewer queries, or a smaller private_fraction",
  )
  return config.queries, private, min(rest, config.test_people)


def model_of(config: EnsembleConfig, people: data.Dataset) -> Model:
  """Of teachers and students."""
  if config.model == "logistic":
    return models.logistic(people.num_classes)
  return models.mlp(config.hidden, people.num_classes)


def fit_config(
  config: EnsembleConfig, steps: int, size: int
) -> training.FitConfig:
  """How one model is trained on so many people."""
  batch = config.batch_size if config.batch_size < size else None
  return training.FitConfig(
    learning_rate=config.learning_rate, steps=steps, batch_size=batch
  )


def repetitions(
  config: EnsembleConfig, cell: protocol.Settings, context: protocol.Context
) -> tuple[data.Dataset, Iterator[tuple[int, Ensemble]]]:
  """The people of a cell, and seed by seed what their teachers say."""
  people, note = load_set(config, cell["data"])
  context.say(note)
  made = ensembles(config, people, int(cell["teachers"]), context)
  return people, enumerate(made)


def ensembles(
  config: EnsembleConfig,
  people: data.Dataset,
  teachers: int,
  context: protocol.Context,
) -> Iterator[Ensemble]:
  """One repetition after the other, all through the same programs.

  The splits are those of all other cells with this data set; teachers,
  students and noise have keys of their own.
  """
  model = model_of(config, people)
  for split in range(config.splits):
    parts = data.prepare(
      people, sizes(config, people),
      key=jax.random.fold_in(context.shared_key, split),
    ).parts  # fmt: skip
    public, private, test = (jax.tree.map(jnp.asarray, p) for p in parts)
    own = jax.random.fold_in(context.key, split)
    key_parts, key_teachers, key_ties, *keys = jax.random.split(own, 5)
    dealt = data.partition(private, teachers, key=key_parts)
    trained = pate.train_teachers(
      model, models.cross_entropy, dealt,
      fit_config(config, config.teacher_steps, dealt.y.shape[1]),
      key=key_teachers,
    )  # fmt: skip
    votes = pate.predict_votes(model, trained, public.x)
    counts = pate.vote_counts(votes, people.num_classes, num_teachers=teachers)
    majority = pate.plurality(counts, key=key_ties)
    yield Ensemble(public, test, np.asarray(counts), majority, *keys)
