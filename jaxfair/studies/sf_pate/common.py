"""What the SF-PATE figures share: people, splits, models, settings.

A repetition is a split of the people with teachers of its own. Training
people have public features and labels and a private group; test people
measure.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, data, fairness, models, pate, training
from jaxfair.experiments.people import People, load_people, set_name
from jaxfair.fairness import constraints
from jaxfair.pate import sf_pate
from jaxfair.studies import protocol
from jaxfair.types import Examples, Model, Params

PARITY = "demographic parity"
ODDS = "equalized odds"
OPPORTUNITY = "equal opportunity"
ACCURACY = "accuracy parity"
GENERALIZED = "generalized demographic parity"
_NOTIONS: dict[str, Callable[..., constraints.Notion]] = {
  PARITY: constraints.demographic_parity,
  ODDS: constraints.equalized_odds,
  OPPORTUNITY: constraints.equal_opportunity,
  ACCURACY: constraints.accuracy_parity,
  GENERALIZED: constraints.generalized_demographic_parity,
}


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings that all figures share.

  Attributes:
    sets: whom to look at.
    notion: of fairness.
    tolerance: the violation that is asked for, of groups as they are known.
    model: of the students, and of all methods without teachers.
    hidden: widths of its layers; of "resnet" the first is its width.
    depth: of "resnet".
    teacher_model: of the teachers; "same" is the students'.
    teachers: K.
    queries: people the students of SF-PATE learn from.
    proximity: lambda of lambda ||theta - theta*||^2.
    epsilons: for the group of one person.
    delta: likewise; randomised response has none.
    train_people: at most so many.
    test_people: at most so many.
    teacher_steps: of a teacher, on all of its part at once.
    teacher_rate: learning rate of teachers.
    teacher_round: steps of a fair teacher between two of its multipliers.
    plain_steps: of theta*, in batches.
    rounds: of multipliers, in every fair training.
    steps_per_round: primal steps before each.
    batch_size: of theta* and of those who train on everybody.
    learning_rate: of Adam.
    dual_rate: of multipliers.
    dual_people: they look at so many people at most, drawn anew each time.
    l2_clip: of PF-LD.
    splits: repetitions; intervals are over them.
  """

  sets: tuple[People, ...] = (People(),)
  notion: Literal[
    "demographic parity", "equalized odds", "equal opportunity",
    "accuracy parity", "generalized demographic parity",
  ] = "demographic parity"  # fmt: skip
  tolerance: float = 0.01
  model: Literal["logistic", "mlp", "resnet"] = "mlp"
  hidden: tuple[int, ...] = (32, 32)
  depth: Literal[18, 50] = 18
  teacher_model: Literal["logistic", "same"] = "logistic"
  teachers: int = 150
  queries: int = 500
  proximity: float = 0.01
  epsilons: tuple[float, ...] = (0.5, 1.0, 2.0)
  delta: float = 1e-5
  train_people: int = 100_000
  test_people: int = 100_000
  teacher_steps: int = 100
  teacher_rate: float = 0.03
  teacher_round: int = 5
  plain_steps: int = 1000
  rounds: int = 40
  steps_per_round: int = 20
  batch_size: int = 256
  learning_rate: float = 3e-3
  dual_rate: float = 1.0
  dual_people: int = 100_000
  l2_clip: float = 1.0
  splits: int = 20

  def __post_init__(self) -> None:
    names = [set_name(one) for one in self.sets]
    checks.require(
      0 < len(set(names)) == len(names),
      f"sets={names} must be one or more different data sets",
    )
    for name in (
      "teachers", "queries", "train_people", "test_people", "teacher_steps",
      "teacher_round", "plain_steps", "rounds", "steps_per_round",
      "batch_size", "dual_people", "splits",
    ):  # fmt: skip
      checks.integer(name, getattr(self, name), low=1)
    for width in self.hidden:
      checks.integer("hidden", width, low=1)
    for name in (
      "epsilons", "learning_rate", "teacher_rate", "dual_rate", "l2_clip",
    ):  # fmt: skip
      checks.positive(name, getattr(self, name))
    checks.require(
      0 < len(set(self.epsilons)) == len(self.epsilons),
      f"epsilons={list(self.epsilons)} must be one or more different numbers",
    )
    checks.non_negative("tolerance", self.tolerance)
    checks.non_negative("proximity", self.proximity)
    checks.number(
      "delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True
    )


class Repetition(NamedTuple):
  """One split, and theta*, the model that knows no groups.

  Attributes:
    train: people with private groups.
    test: people that measure.
    plain: theta*.
    key: of everything else; folded by purpose.
  """

  train: Examples
  test: Examples
  plain: Params
  key: jax.Array


def load_set(config: Config, name: object) -> tuple[data.Dataset, str]:
  """The set of this name, row by row, and what the reader must be told."""
  (wanted,) = (one for one in config.sets if set_name(one) == name)
  people, note = load_people(wanted)
  if people.unit is not None:
    note += (
      f"{people.name} has several rows of one person. Rows are split as in "
      "the papers, so epsilon protects the group of a row."
    )
  return dataclasses.replace(people, unit=None), note


def sizes(config: Config, people: data.Dataset) -> tuple[int, int]:
  """Training and test people."""
  train = min(config.train_people, int(0.75 * people.size))
  test = min(config.test_people, people.size - train)
  checks.integer(
    "queries", config.queries, low=1, high=train,
    remedy="students learn from some of the training people",
  )  # fmt: skip
  checks.integer("batch_size", config.batch_size, low=1, high=train)
  checks.require(
    train // config.teachers >= 10,
    f"teachers={config.teachers} leaves {train // config.teachers} people to "
    f"each; use at most {train // 10}",
  )
  return train, test


def model_of(config: Config, people: data.Dataset) -> Model:
  """Of students."""
  classes = people.num_classes
  if config.model == "logistic":
    return models.logistic(classes)
  if config.model == "resnet":
    return models.resnet(config.depth, classes, width=config.hidden[0])
  return models.mlp(config.hidden, classes)


def teacher_of(config: Config, people: data.Dataset, outputs: int) -> Model:
  """Of teachers: linear, or the students' with so many outputs."""
  if config.teacher_model == "logistic":
    return models.logistic(outputs)
  # A data set's number of classes is what its names say.
  named = dataclasses.replace(
    people, class_names=tuple(map(str, range(outputs)))
  )
  return model_of(config, named)


def notion_of(config: Config, people: data.Dataset) -> constraints.Notion:
  """The notion for these groups and classes."""
  return _NOTIONS[config.notion](people.num_groups, people.num_classes)


def fair(
  config: Config, notion: constraints.Notion, size: int
) -> training.LagrangianConfig:
  """A fair training on so many people; on all at once if they are few."""
  few = size <= max(1024, config.batch_size)
  return training.LagrangianConfig(
    learning_rate=config.learning_rate,
    dual_rate=config.dual_rate,
    tolerance=config.tolerance,
    constraint=notion,
    rounds=config.rounds,
    steps_per_round=config.steps_per_round,
    batch_size=None if few else config.batch_size,
    dual_size=config.dual_people if config.dual_people < size else None,
  )


def plain(config: Config, steps: int, size: int) -> training.FitConfig:
  """A plain training."""
  batch = config.batch_size if config.batch_size < size else None
  return training.FitConfig(
    learning_rate=config.learning_rate, steps=steps, batch_size=batch
  )


def splits(
  config: Config, people: data.Dataset, context: protocol.Context
) -> Iterator[Repetition]:
  """One split after the other, without theta*."""
  for split in range(config.splits):
    parts = data.prepare(
      people, sizes(config, people),
      key=jax.random.fold_in(context.shared_key, split),
    ).parts  # fmt: skip
    train, test = (jax.tree.map(jnp.asarray, part) for part in parts)
    own = jax.random.fold_in(context.key, split)
    yield Repetition(train, test, None, own)


def repetitions(
  config: Config, people: data.Dataset, context: protocol.Context
) -> Iterator[Repetition]:
  """One split after the other, all through the same programs."""
  for split in splits(config, people, context):
    yield with_plain(config, people, split)


def with_plain(
  config: Config, people: data.Dataset, split: Repetition
) -> Repetition:
  """The split with theta*."""
  best = sf_pate.plain_model(
    model_of(config, people), models.cross_entropy, split.train,
    plain(config, config.plain_steps, split.train.size),
    key=jax.random.fold_in(split.key, 0),
  )  # fmt: skip
  return split._replace(plain=best)


def sigmas(config: Config) -> list[float]:
  """The noise on votes, for each epsilon."""
  return [
    pate.vote_sigma(epsilon=e, delta=config.delta, queries=config.queries)
    for e in config.epsilons
  ]


def measure(
  config: Config, people: data.Dataset, model: Model, stacked: Params,
  test: Examples,
) -> dict[str, np.ndarray]:  # fmt: skip
  """Accuracy and violation of [k] models on test people and true groups."""
  notion = notion_of(config, people)
  rows: dict[str, list[float]] = {"accuracy": [], "violation": []}
  for index in range(len(jax.tree.leaves(stacked)[0])):
    own = jax.tree.map(lambda leaf, i=index: leaf[i], stacked)
    scores = models.scores(model, own, test.x)  # probabilities
    right = jnp.mean(jnp.argmax(scores, axis=-1) == test.y)
    rows["accuracy"].append(float(right))
    rows["violation"].append(_violation(config, notion, scores, test))
  return {name: np.array(values) for name, values in rows.items()}


def _violation(
  config: Config, notion: constraints.Notion, scores: jax.Array, test: Examples
) -> float:
  if config.notion != GENERALIZED:
    return float(notion.largest(scores, test.y, test.group))
  shown = scores[:, 1] if scores.shape[1] == 2 else scores
  return float(
    fairness.wasserstein_disparity(
      shown, sensitive_features=test.group, num_groups=notion.num_groups,
      skip_empty=True,
    )
  )  # fmt: skip
