"""What the SF-PATE studies share: people, splits, models, settings.

A repetition is a split of the people with teachers of its own. Training
people have public features and labels and a private group; test people
measure.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, data, fairness, models, pate, training
from jaxfair import experiments as ex
from jaxfair.experiments import Count, NonNegative, Positive
from jaxfair.fairness import constraints
from jaxfair.pate import _sf_pate
from jaxfair.types import Examples, Model, Params

LOSS = models.cross_entropy
GENERALIZED = "generalized demographic parity"


class Config(ex.Settings):
  """Settings of all studies of SF-PATE.

  Attributes:
    sets: data sets.
    notion: of fairness.
    tolerance: the violation that is asked for, of groups as they are known.
    model: of the students, and of all methods without teachers.
    hidden: widths of its dense layers.
    width: channels of a ResNet's first convolution.
    teacher_model: of the teachers; "same" is the students'.
    teachers: K.
    queries: people the students of SF-PATE learn from.
    proximity: lambda of lambda ||theta - theta*||^2.
    epsilons: for the group of one person.
    delta: the same; randomised response has none.
    train_people: the largest number of them.
    test_people: the largest number of them.
    teacher_steps: of a teacher, on all of its part at once.
    teacher_rate: learning rate of teachers.
    teacher_round: steps of a fair teacher between two of its multipliers.
    plain_steps: of theta*, in batches.
    rounds: of multipliers, in every fair training.
    steps_per_round: primal steps before each.
    batch_size: of theta* and of methods that train on everybody.
    learning_rate: of Adam.
    dual_rate: of multipliers.
    dual_people: the largest number of people that multipliers look at, drawn
      anew each time.
    l2_clip: of PF-LD.
    splits: repetitions; intervals are over them.
  """

  sets: ex.Sweep[ex.People] = (ex.People(),)
  notion: Literal[
    "demographic parity",
    "equalized odds",
    "equal opportunity",
    "accuracy parity",
    "generalized demographic parity",
  ] = "demographic parity"
  tolerance: NonNegative = 0.01
  model: Literal["logistic", "mlp", "resnet18", "resnet50"] = "mlp"
  hidden: tuple[Count, ...] = (32, 32)
  width: Count = 64
  teacher_model: Literal["logistic", "same"] = "logistic"
  teachers: Count = 150
  queries: Count = 500
  proximity: NonNegative = 0.01
  epsilons: ex.Sweep[Positive] = (0.5, 1.0, 2.0)
  delta: ex.Probability = 1e-5
  train_people: Count = 100_000
  test_people: Count = 100_000
  teacher_steps: Count = 100
  teacher_rate: Positive = 0.03
  teacher_round: Count = 5
  plain_steps: Count = 1000
  rounds: Count = 40
  steps_per_round: Count = 20
  batch_size: Count = 256
  learning_rate: Positive = 3e-3
  dual_rate: Positive = 1.0
  dual_people: Count = 100_000
  l2_clip: Positive = 1.0
  splits: Count = 20

  @property
  def sigmas(self) -> list[float]:
    """The noise on votes, for each epsilon."""
    told: Any = {"delta": self.delta, "queries": self.queries}
    return [pate.vote_sigma(epsilon=one, **told) for one in self.epsilons]

  def sizes(self, people: data.Dataset) -> tuple[int, int]:
    """Numbers of training and test people."""
    train = min(self.train_people, int(0.75 * people.size))
    remedy = "students learn from some of the training people"
    checks.integer("queries", self.queries, high=train, remedy=remedy)
    checks.integer("batch_size", self.batch_size, high=train)
    checks.require(
      train // self.teachers >= 10,
      f"teachers={self.teachers} leaves {train // self.teachers} people to each; use at most "
      f"{train // 10}",
    )
    return train, min(self.test_people, people.size - train)

  def network(self, outputs: int, *, teacher: bool = False) -> Model:
    """The model of students, or of teachers."""
    linear = teacher and self.teacher_model == "logistic"
    name = "logistic" if linear else self.model
    return models.network(name, outputs, hidden=self.hidden, width=self.width)

  def fit(self, steps: int, size: int, **options: Any) -> training.FitConfig:
    """A plain training on a part of this size."""
    batch = self.batch_size if self.batch_size < size else None
    rate = self.learning_rate
    return training.FitConfig(rate, steps=steps, batch_size=batch, **options)


@dataclasses.dataclass(frozen=True)
class Repetition:
  """One split, and theta*, the model that knows no groups.

  Attributes:
    config: settings.
    people: names and counts.
    train: people with private groups.
    test: people that measure.
    key: of everything else; folded by purpose.
    plain: theta*; None as long as it is not trained.
  """

  config: Config
  people: data.Dataset
  train: Examples
  test: Examples
  key: jax.Array
  plain: Params = None

  @property
  def model(self) -> Model:
    """Of students."""
    return self.config.network(self.people.num_classes)

  @property
  def notion(self) -> constraints.Notion:
    """Of fairness, for these groups and classes."""
    make = getattr(constraints, self.config.notion.replace(" ", "_"))
    found: constraints.Notion = make(self.people.num_groups, self.people.num_classes)
    return found

  def constrained(self, **changes: Any) -> dict[str, Any]:
    """The settings that all trainings with multipliers share."""
    names = ("learning_rate", "dual_rate", "tolerance", "rounds")
    own = {name: getattr(self.config, name) for name in names}
    own["steps_per_round"] = self.config.steps_per_round
    return own | {"constraint": self.notion} | changes

  def fair(self, size: int, **changes: Any) -> training.LagrangianConfig:
    """A fair training; few people are one batch."""
    config = self.config
    few = size <= max(1024, config.batch_size)
    return training.LagrangianConfig(
      batch_size=None if few else config.batch_size,
      dual_size=config.dual_people if config.dual_people < size else None,
      **self.constrained(**changes),
    )

  def plain_model(self) -> Params:
    """theta*."""
    steps = self.config.fit(self.config.plain_steps, self.train.size)
    key = jax.random.fold_in(self.key, 0)
    return _sf_pate.plain_model(self.model, LOSS, self.train, steps, key=key)

  def measure(self, stacked: Params) -> dict[str, np.ndarray]:
    """Accuracy and violation of [k] models on test people and true groups."""
    accuracy, violation = [], []
    for index in range(len(jax.tree.leaves(stacked)[0])):
      own = jax.tree.map(lambda leaf, i=index: leaf[i], stacked)
      scores = models.scores(self.model, own, self.test.x)  # probabilities
      right = jnp.mean(jnp.argmax(scores, axis=-1) == self.test.y)
      accuracy.append(float(right))
      violation.append(self._violation(scores))
    return {"accuracy": np.array(accuracy), "violation": np.array(violation)}

  def _violation(self, scores: jax.Array) -> float:
    if self.config.notion != GENERALIZED:
      return float(self.notion.largest(scores, self.test.y, self.test.group))
    return float(
      fairness.wasserstein_disparity(
        scores[:, 1] if scores.shape[1] == 2 else scores,
        sensitive_features=self.test.group,
        num_groups=self.people.num_groups,
        skip_empty=True,
      )
    )


def splits(
  config: Config, cell: ex.Cell, context: ex.Context, *, more: int = 0
) -> Iterator[Repetition]:
  """One split after the other, without theta*; some more if asked."""
  people = context.load_rows(config.sets, cell["data"])
  count = config.splits + more
  made = ex.splits(people, config.sizes(people), count, context)
  for (train, test), key in made:
    yield Repetition(config, people, train, test, key)


def study(name: str, summary: str, config: type, run: Any, **more: Any) -> ex.Study:
  """A study with one cell per data set, unless it says otherwise."""
  options = {"cells": ex.grid(data="sets"), "precheck": precheck, **more}
  return ex.Study(name, summary, config, run=run, **options)


def precheck(config: Config, *sets: data.Dataset) -> None:
  """Raises unless every set has people for all parts."""
  for people in sets:
    config.sizes(people)
