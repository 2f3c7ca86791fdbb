"""What the FairPATE studies share: people, teachers that vote, the query phase.

A repetition is a split of the people with teachers of its own.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, data, models, pate, training
from jaxfair import experiments as ex
from jaxfair.data._pooling import pool_images
from jaxfair.experiments import Count, Positive
from jaxfair.fairness import CounterRule
from jaxfair.pate import FairAnswers
from jaxfair.types import Examples, Model

Choice: TypeAlias = Literal["any", "allowed"]
Whole = Annotated[int, ex.Within(0)]


class Ensemble(ex.Settings):
  """Settings of all studies of this package.

  Attributes:
    pool: images are averaged over squares with sides of this many pixels.
    model: of teachers and students, as are `hidden` and what follows
      `teacher_steps`.
    queries: people taken to be public; the scaler is fitted on them.
    private_people: dealt to the teachers; DP-SGD learns from them, too.
    sigma_threshold: sigma1 of the paper.
    sigma_answer: sigma2 of the paper.
    min_count: M, answers of a group before it can be refused.
    disparity: notion of the gap.
    guard: "table" keeps all disparities below the margin, "own" is the
      paper's rule.
    seeds: repetitions, each with its own split, teachers and noise.
  """

  data: ex.People = ex.People()
  pool: Count = 1
  model: Literal["logistic", "mlp", "convnet"] = "logistic"
  hidden: tuple[Count, ...] = (32,)
  teachers: Count = 100
  queries: Count = 1000
  private_people: Count = 20_000
  test_people: Count = 2000
  sigma_threshold: Positive = 40.0
  sigma_answer: Positive = 15.0
  min_count: Whole = 50
  disparity: Literal["rest", "pairwise", "overall"] = "rest"
  guard: Literal["table", "own"] = "table"
  delta: ex.Probability = 1e-5
  teacher_steps: Count = 100
  batch_size: Count = 32
  learning_rate: Positive = 0.01
  weight_decay: ex.NonNegative = 1e-3
  seeds: Count = 20

  def check(self) -> None:
    """Every teacher has people of its own, and batches come from the queries."""
    remedy = "every teacher learns from people of its own (private_people)"
    most = self.private_people
    checks.integer("teachers", self.teachers, high=most, remedy=remedy)
    checks.integer("batch_size", self.batch_size, high=self.queries)

  def check_threshold(self, name: str, value: Any) -> None:
    """Refuses a threshold that no vote can reach."""
    remedy = "no vote of so few teachers would reach it"
    most = self.teachers + self.sigma_threshold
    checks.number(name, value, high=most, remedy=remedy)

  @property
  def sizes(self) -> tuple[int, int, int]:
    """Numbers of public, private and test people."""
    return self.queries, self.private_people, self.test_people

  def rule(self, max_gap: Any) -> CounterRule:
    """The counter rule with this margin."""
    return CounterRule(max_gap, self.min_count, self.disparity, self.guard)

  def fit(self, steps: int, size: int, **more: Any) -> training.FitConfig:
    """The trainer's settings for a part of this size."""
    batch = self.batch_size if self.batch_size < size else None
    rate, decay = self.learning_rate, self.weight_decay
    return training.FitConfig(rate, decay, steps=steps, batch_size=batch, **more)


class OneThreshold(Ensemble):
  """Settings of the studies that train students, with one threshold T."""

  threshold: float = 50.0

  def check(self) -> None:
    """The threshold can be reached."""
    super().check()
    self.check_threshold("threshold", self.threshold)


class Repetition(NamedTuple):
  """One split of the people, and the votes of its teachers.

  `public` are the queries, `test` the people that measure, and `counts` the
  [n, C] votes on the queries, without rows before teachers are asked.
  """

  config: Ensemble
  people: data.Dataset
  model: Model
  public: Examples
  private: Examples
  test: Examples
  counts: np.ndarray

  def vote(self, *, key: jax.Array) -> "Repetition":
    """Deals the private people, trains the teachers and counts their votes."""
    key_parts, key_teachers = jax.random.split(key)
    teachers, classes = self.config.teachers, self.people.num_classes
    dealt = data.partition(self.private, teachers, key=key_parts)
    settings = self.config.fit(self.config.teacher_steps, dealt.y.shape[1])
    trained = pate.train_teachers(
      self.model, models.cross_entropy, dealt, settings, key=key_teachers
    )
    votes = pate.predict_votes(self.model, trained, self.public.x)
    counts = pate.vote_counts(votes, classes, num_teachers=teachers)
    return self._replace(counts=np.asarray(counts))

  def ask(self, *settings: Any, choice: Choice, key: jax.Array) -> FairAnswers:
    """The query phase with a threshold, a margin and, if there is one, a rho.

    All three may be mapped over.
    """
    asked = (self.people.num_groups, choice, self.counts, self.public.group)
    return _ask(self.config, *asked, *settings, key=key)


def study(name: str, summary: str, config: type, run: Any, **more: Any) -> ex.Study:
  """A study with one cell per repetition."""
  return ex.Study(name, summary, config, _cells, run, precheck=_check, **more)


def lines(
  x: str, color: str, facet: str, caption: str = "", **more: Any
) -> Callable[..., ex.Figure]:
  """Figures over one axis; the column is the figure's name if not given."""

  def figure(name: str, title: str, y: str = "", **own: Any) -> ex.Figure:
    told: dict[str, Any] = {"caption": caption, **more, **own}
    return ex.Figure(name, title, x, y or name, "line", color, facet, **told)

  return figure


def split(config: Ensemble, cell: ex.Cell, context: ex.Context) -> Repetition:
  """Splits the people; no teacher is asked."""
  people = context.load(config.data)
  x = pool_images(np.asarray(people.examples.x), config.pool)
  people = dataclasses.replace(people, examples=people.examples._replace(x=x))
  key = jax.random.fold_in(context.shared_key, int(cell["seed"]))
  parts = data.prepare(people, config.sizes, key=key).parts
  public, private, test = jax.tree.map(jnp.asarray, parts)
  model = models.network(config.model, people.num_classes, hidden=config.hidden)
  nobody = np.zeros((0, people.num_classes), int)
  return Repetition(config, people, model, public, private, test, nobody)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _ask(
  config: Ensemble,
  num_groups: int,
  choice: Choice,
  counts: Any,
  groups: Any,
  threshold: Any,
  max_gap: Any,
  max_rho: Any = math.inf,
  *,
  key: jax.Array,
) -> FairAnswers:
  return pate.fair_gnmax(
    counts,
    groups,
    num_groups=num_groups,
    threshold=threshold,
    sigma_threshold=config.sigma_threshold,
    sigma_answer=config.sigma_answer,
    max_gap=max_gap,
    min_count=config.min_count,
    disparity=config.disparity,
    guard=config.guard,
    choice=choice,
    max_rho=max_rho,
    key=key,
  )


def _cells(config: Ensemble) -> list[ex.Cell]:
  return [{"seed": seed} for seed in range(config.seeds)]


def _check(config: Ensemble, people: data.Dataset) -> None:
  needed, shape = sum(config.sizes), np.shape(people.examples.x)[1:]
  checks.require(
    needed <= people.size,
    f"queries, private_people and test_people add up to {needed}, but {people.name} has "
    f"{people.size} people; lower private_people",
  )
  checks.require(
    config.model != "convnet" or len(shape) == 3,
    f"model='convnet' needs images, but {people.name} has people of shape {shape}; use "
    "model = 'mlp'",
  )
