"""Settings of the FairPATE studies, and what a repetition stands on."""

import dataclasses
import functools
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, data, models, pate, training
from jaxfair.experiments.people import People, load_people
from jaxfair.fairness import CounterRule
from jaxfair.studies import protocol
from jaxfair.types import Examples, Model

Method: TypeAlias = Literal[
  "pate",
  "fairpate",
  "fairpate_allowed",
  "fairpate_calibrated",
  "pate_s_pre",
  "pate_s_in",
  "dp_sgd",
  "fair_dp_sgd",
  "fair_dp_sgd_inside",
]
WITH_LAM = (
  "fairpate_calibrated",
  "pate_s_in",
  "fair_dp_sgd",
  "fair_dp_sgd_inside",
)
WITHOUT_MARGIN = ("pate", "dp_sgd")  # of the labels; nor do they abstain
# Trained without the margin, by which they only abstain.
MARGIN_AFTERWARDS = ("pate_s_in", "fair_dp_sgd", "fair_dp_sgd_inside")
ANSWERS_ALL = (*WITHOUT_MARGIN, "fairpate_calibrated")
Floats: TypeAlias = tuple[float, ...] | float


@dataclasses.dataclass(frozen=True)
class Ensemble:
  """What all studies of this package set.

  Attributes:
    data: whom to look at.
    pool: images are averaged over squares of so many pixels.
    model: of teachers and students.
    hidden: widths of its dense layers; a convnet, for images, has two
      convolutions before them.
    teachers: how many.
    queries: people taken to be public; the scaler is fitted on them.
    private_people: dealt to the teachers; also what DP-SGD learns from.
    test_people: measure the students.
    sigma_threshold: sigma1 of the paper.
    sigma_answer: sigma2 of the paper.
    min_count: M, answers of a group before it can be refused.
    disparity: notion of the gap.
    guard: "table" keeps all disparities below the margin, "own" is the
      paper's rule.
    delta: of every epsilon.
    teacher_steps: of batches of `batch_size`.
    batch_size: of teachers and students.
    learning_rate: of Adam.
    weight_decay: of teachers and students.
    seeds: repetitions, each with its own split, teachers and noise.
  """

  data: People = dataclasses.field(default_factory=People)
  pool: int = 1
  model: Literal["logistic", "mlp", "convnet"] = "logistic"
  hidden: tuple[int, ...] = (32,)
  teachers: int = 100
  queries: int = 1000
  private_people: int = 20_000
  test_people: int = 2000
  sigma_threshold: float = 40.0
  sigma_answer: float = 15.0
  min_count: int = 50
  disparity: Literal["rest", "pairwise", "overall"] = "rest"
  guard: Literal["table", "own"] = "table"
  delta: float = 1e-5
  teacher_steps: int = 100
  batch_size: int = 32
  learning_rate: float = 0.01
  weight_decay: float = 1e-3
  seeds: int = 20

  def __post_init__(self) -> None:
    for name in ("pool", "teachers", "queries", "private_people"):
      checks.integer(name, getattr(self, name), low=1)
    for name in ("test_people", "teacher_steps", "seeds"):
      checks.integer(name, getattr(self, name), low=1)
    checks.integer(
      "teachers", self.teachers, high=self.private_people,
      remedy="every teacher learns from people of its own (private_people)",
    )  # fmt: skip
    checks.integer("batch_size", self.batch_size, low=1, high=self.queries)
    checks.integer("min_count", self.min_count, low=0)
    for name in ("sigma_threshold", "sigma_answer", "learning_rate"):
      checks.positive(name, getattr(self, name))
    checks.non_negative("weight_decay", self.weight_decay)
    checks.number(
      "delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True
    )

  def rule(self, max_gap: Any) -> CounterRule:
    """The counter rule with this margin."""
    return CounterRule(max_gap, self.min_count, self.disparity, self.guard)

  def check_threshold(self, name: str, value: Any) -> None:
    """Refuses a threshold that no vote can reach."""
    checks.number(
      name, value, high=self.teachers + self.sigma_threshold,
      remedy="no vote of so few teachers would reach it",
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class OneThreshold(Ensemble):
  """Studies of whole trainings.

  Attributes:
    threshold: T, in votes.
  """

  threshold: float = 50.0

  def __post_init__(self) -> None:
    super().__post_init__()
    self.check_threshold("threshold", self.threshold)


class Repetition(NamedTuple):
  """One split of the people, and what its teachers say.

  Attributes:
    people: the whole set; names and counts are there.
    model: of teachers and students.
    public: the queries.
    private: whom the teachers learnt from.
    test: who measures.
    counts: [n, C] votes on the queries; none before teachers are asked.
  """

  people: data.Dataset
  model: Model
  public: Examples
  private: Examples
  test: Examples
  counts: np.ndarray


def several(values: Any) -> tuple[Any, ...]:
  """The values of a setting that may be one or many."""
  return values if isinstance(values, tuple) else (values,)


def cells(config: Ensemble) -> list[protocol.Settings]:
  """One cell per repetition."""
  people, _ = load_people(config.data)
  needed = config.queries + config.private_people + config.test_people
  checks.require(
    needed <= people.size,
    f"queries, private_people and test_people add up to {needed}, but "
    f"{people.name} has {people.size} people; lower private_people",
  )
  shape = np.shape(people.examples.x)[1:]
  checks.require(
    config.model != "convnet" or len(shape) == 3,
    f"model='convnet' needs images, but {people.name} has people of shape "
    f"{shape}; use model = 'mlp'",
  )
  return [{"seed": seed} for seed in range(config.seeds)]


def repetition(
  config: Ensemble, cell: protocol.Settings, context: protocol.Context
) -> Repetition:
  """Splits the people, trains the teachers, lets them vote."""
  return with_votes(config, without_votes(config, cell, context), context)


def with_votes(
  config: Ensemble, own: Repetition, context: protocol.Context
) -> Repetition:
  """The repetition, once its teachers were trained and asked."""
  key = jax.random.fold_in(context.key, 0)
  return own._replace(counts=votes_of(config, own, key=key))


def without_votes(
  config: Ensemble, cell: protocol.Settings, context: protocol.Context
) -> Repetition:
  """Splits the people; no teacher is asked."""
  people, note = load_people(config.data)
  context.say(note)
  if config.pool > 1:
    people = _pooled(config.data, config.pool)
  key = jax.random.fold_in(context.shared_key, int(cell["seed"]))
  sizes = (config.queries, config.private_people, config.test_people)
  parts = data.prepare(people, sizes, key=key).parts
  public, private, test = jax.tree.map(jnp.asarray, parts)
  nobody = np.zeros((0, people.num_classes), int)
  return Repetition(
    people, model_of(config, people), public, private, test, nobody
  )


def votes_of(
  config: Ensemble, own: Repetition, *, key: jax.Array
) -> np.ndarray:
  """Deals the private people, trains the teachers, counts [n, C] votes."""
  key_parts, key_teachers = jax.random.split(key)
  dealt = data.partition(own.private, config.teachers, key=key_parts)
  size = dealt.y.shape[1]
  trained = pate.train_teachers(
    own.model, models.cross_entropy, dealt,
    fit_config(config, config.teacher_steps, size), key=key_teachers,
  )  # fmt: skip
  votes = pate.predict_votes(own.model, trained, own.public.x)
  counts = pate.vote_counts(
    votes, own.people.num_classes, num_teachers=config.teachers
  )
  return np.asarray(counts)


def model_of(config: Ensemble, people: data.Dataset) -> Model:
  """Of teachers and students."""
  if config.model == "logistic":
    return models.logistic(people.num_classes)
  if config.model == "convnet":
    return models.convnet(people.num_classes, hidden=config.hidden)
  return models.mlp(config.hidden, people.num_classes)


def fit_config(config: Ensemble, steps: int, size: int) -> training.FitConfig:
  """How one model is trained on so many people."""
  return training.FitConfig(
    learning_rate=config.learning_rate,
    weight_decay=config.weight_decay,
    steps=steps,
    batch_size=config.batch_size if config.batch_size < size else None,
  )


@functools.lru_cache(maxsize=1)  # every repetition of a run asks for them
def _pooled(whom: People, pool: int) -> data.Dataset:
  """The set with its images averaged over squares."""
  people, _ = load_people(whom)
  x = np.asarray(people.examples.x)
  checks.require(
    x.ndim == 4 and x.shape[1] % pool == 0 and x.shape[2] % pool == 0,
    f"pool={pool} needs images whose sides it divides, but {people.name} has "
    f"people of shape {x.shape[1:]}; use pool = 1",
  )
  n, h, w, c = x.shape
  blocks = x.reshape(n, h // pool, pool, w // pool, pool, c)
  small = blocks.mean(axis=(2, 4), dtype=np.float32)
  return dataclasses.replace(people, examples=people.examples._replace(x=small))
