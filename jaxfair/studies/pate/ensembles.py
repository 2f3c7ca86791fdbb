"""What the PATE studies share: people are split, teachers learn and vote.

A repetition is a split of the people with teachers of its own.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

import jax
import numpy as np

from jaxfair import _fields, checks, data, models, pate, training
from jaxfair import experiments as ex
from jaxfair.experiments import Count, Positive, _study
from jaxfair.pate import _aggregation
from jaxfair.types import Examples, Model


class VotingConfig(ex.Settings):
  """How teachers and students learn."""

  model: Literal["logistic", "mlp"] = "mlp"  # of teachers and students
  hidden: tuple[Count, ...] = (64, 64)
  teachers: ex.Sweep[Count] = (150,)  # numbers of teachers; each is an ensemble
  queries: Count = 200  # people taken to be public; the scaler is fitted on them
  private_fraction: Annotated[float, _fields.Within(0.1, 0.95)] = (
    0.75  # who the teachers learn from
  )
  teacher_steps: Count = 200
  student_steps: Count = 300
  batch_size: Count = 32  # of teachers and students; smaller parts are one batch
  learning_rate: Positive = 1e-3

  def check(self) -> None:
    """Batches are drawn from the queries."""
    checks.integer("batch_size", self.batch_size, low=1, high=self.queries)

  def network(self, people: data.Dataset) -> Model:
    """The model for these classes."""
    return models.network(self.model, people.num_classes, hidden=self.hidden)

  def sizes(self, people: data.Dataset) -> tuple[int, int, int]:
    """Numbers of public, private and test people."""
    private = round(self.private_fraction * people.size)
    rest = people.size - private - self.queries
    checks.require(
      rest > 0,
      f"queries={self.queries} leaves nobody of {people.size} people to test on; use fewer "
      "queries, or a smaller private_fraction",
    )
    return self.queries, private, rest

  def fit(self, steps: int, size: int, **options: Any) -> training.FitConfig:
    """The trainer's settings for a part of this size."""
    batch = self.batch_size if self.batch_size < size else None
    rate = self.learning_rate
    return training.FitConfig(rate, steps=steps, batch_size=batch, **options)

  def count_votes(
    self, people: data.Dataset, private: Examples, x: Any, teachers: int, *, keys: Any
  ) -> jax.Array:
    """[queries, classes] votes on x; one key deals the people, one trains."""
    model = self.network(people)
    parts = data.partition(private, teachers, key=keys[0])
    settings = self.fit(self.teacher_steps, parts.y.shape[1])
    trained = pate.train_teachers(model, models.cross_entropy, parts, settings, key=keys[1])
    votes = pate.predict_votes(model, trained, x)
    return pate.vote_counts(votes, people.num_classes, num_teachers=teachers)


class EnsembleConfig(VotingConfig):
  """Settings of the studies that repeat splits."""

  sets: ex.Sweep[ex.People] = (ex.People(),)  # each has its own teachers
  test_people: Count = 4000  # the largest number of people that measure the students
  splits: Count = 20  # repetitions; intervals are over them
  draws: Annotated[int, _fields.Within(2)] = 100  # of noise, for each repetition and setting

  def sizes(self, people: data.Dataset) -> tuple[int, int, int]:
    """Numbers of public, private and test people."""
    public, private, rest = super().sizes(people)
    return public, private, min(rest, self.test_people)


class PenaltyConfig(EnsembleConfig):
  """Settings of the studies with one sigma and several penalties."""

  penalties: ex.Sweep[Positive] = (1.0, 100.0)  # lambda ||theta||^2 beside the sum of losses
  sigma: Positive = 50.0  # of the noise on the votes


class Ensemble(NamedTuple):
  """One repetition: people, and how the teachers label the public ones."""

  public: Examples  # the queries, with their true labels
  test: Examples  # people that measure the students
  counts: np.ndarray  # [m, C] votes
  majority: jax.Array  # [m] plurality labels
  key: jax.Array  # start and batches of all students of this repetition
  key_noise: jax.Array  # for the noise on their labels


def study(name: str, summary: str, config: type, run: Any, **more: Any) -> ex.Study:
  """A study with one cell per data set and number of teachers."""
  cells = ex.grid(data="sets", teachers="teachers")
  return ex.Study(name, summary, config, cells, run, precheck=_check, **more)


def _check(config: EnsembleConfig, *sets: data.Dataset) -> None:
  for people in sets:
    config.sizes(people)


def repetitions(
  config: EnsembleConfig, cell: _study.Cell, context: _study.Context
) -> tuple[data.Dataset, Iterator[Ensemble]]:
  """The people of a cell, and its ensembles one after the other."""
  people = context.load_rows(config.sets, cell["data"])
  return people, _ensembles(config, people, int(cell["teachers"]), context)


def _ensembles(
  config: EnsembleConfig, people: data.Dataset, teachers: int, context: _study.Context
) -> Iterator[Ensemble]:
  made = ex.splits(people, config.sizes(people), config.splits, context)
  for (public, private, test), own in made:
    *dealing, key_ties, key, key_noise = jax.random.split(own, 5)
    counts = config.count_votes(people, private, public.x, teachers, keys=dealing)
    majority = _aggregation.plurality(counts, key=key_ties)
    yield Ensemble(public, test, np.asarray(counts), majority, key, key_noise)
