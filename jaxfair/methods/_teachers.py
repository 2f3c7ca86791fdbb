"""PATE: teachers vote, noisy answers label public people, a student learns.

Teachers see disjoint parts of the private people, so replacing one person
moves one vote of every query. What is released about the votes are labels of
public people; the student is computed from them alone.
"""

import math
import pathlib
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxfair import accounting, checks, models, pate, training
from jaxfair.data import partition
from jaxfair.data._splitting import MIN_PART
from jaxfair.fairness import CounterRule
from jaxfair.methods._baselines import batch_or_all
from jaxfair.methods._gradients import FIGURES, TUNING
from jaxfair.methods._method import (
  PERSON,
  SCALING,
  Plan,
  Population,
  Sizes,
  network_of,
  refuse_unfit,
)
from jaxfair.methods._pate_settings import ConfidentSettings, TeacherSettings
from jaxfair.methods._recipe import voting_teachers
from jaxfair.methods._released import Released
from jaxfair.methods._releasing import PRIVATE, release_once
from jaxfair.pate import Protection
from jaxfair.types import Fit, Params

ANSWERS, TEACHERS = "answers", "teachers"
RECORD = ("a person's whole record",)
NOT_PROTECTED = (
  "features of the public people, which are the queries",
  "the number of people, which is taken to be public",
  "teachers and their votes: they must not leave the house",
  SCALING,
  FIGURES,
  TUNING,
)
WITH_GROUPS = ("groups of the public people, which are the queries", *NOT_PROTECTED)


class Aggregation(NamedTuple):
  """How votes are answered, calibrated; `config` of these plans.

  Attributes:
    queries: public people that are asked about.
    teacher: settings of a teacher.
    student: settings of the student.
    rule: noise of the answers, and of the test if there is one.
    max_rho: where a rule with a test stops, in zCDP.
  """

  queries: int
  teacher: training.FitConfig
  student: training.FitConfig
  rule: pate.GnMax | pate.ConfidentGnMax
  max_rho: float


class NonPrivateVotes(NamedTuple):
  """What teachers said, to explain a study's result; never for release.

  Attributes:
    counts: [queries, C] votes.
    labels: [queries] noisy answers; NO_ANSWER where there is none.
  """

  counts: np.ndarray
  labels: np.ndarray


class Pate:
  """The noisy plurality of teachers' votes on every query (GNMax)."""

  name = "pate"
  protects: Literal["record"] = "record"
  relation = accounting.Relation.REPLACE_ONE
  needs: frozenset[str] = frozenset({"public"})
  settings: type[TeacherSettings] = TeacherSettings
  traceable = False  # teachers are dealt and trained from the host
  reference = "Papernot et al. 2018"

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """Calibrates the noise on votes for all queries."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    settings = voting_teachers(settings, sizes, budget)
    queries = settings.queries
    checks.integer("queries", queries, low=1, high=sizes.public, remedy="queries are public people")
    part = sizes.private // settings.num_teachers
    checks.require(
      part >= MIN_PART,
      f"num_teachers={settings.num_teachers} leaves {part} people to each; "
      f"use at most {sizes.private // MIN_PART}",
    )
    rule, event = self._priced(settings, queries, budget)
    spent = accounting.composed_guarantee(
      [event], delta=budget.delta, relation=self.relation, unit=PERSON
    )
    with_groups = "public_groups" in self.needs
    config = Aggregation(
      queries=queries,
      teacher=_trainer(settings, settings.teacher_steps, part),
      student=_trainer(settings, settings.student_steps, queries),
      rule=rule,
      max_rho=total_rho(budget),
    )
    return Plan(
      method=self.name,
      settings=settings,
      sizes=sizes,
      budget=budget,
      network=network_of(settings, sizes),
      loss=models.cross_entropy,
      config=config,
      event=event,
      guarantee=Protection(spent, RECORD, WITH_GROUPS if with_groups else NOT_PROTECTED),
      abstention=self._abstention(settings),
      says=(
        f"{settings.num_teachers} teachers with {part} people each are asked "
        f"about {queries} public people; noise: {rule}.",
        f"The labels, and the student with them, cost {spent}.",
      ),
    )

  def fit(self, plan: Plan, data: Population, *, key: jax.Array) -> Fit:
    """Teachers, answers and student from one key; the trace is `NonPrivateVotes`."""
    keys = _keys(key)
    counts = self._votes(plan, data, keys, None)
    labels = self._labels(plan, data, counts, key=keys["noise"])
    return Fit(self._student(plan, data, labels, keys), NonPrivateVotes(counts, labels))

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: jax.Array | None = None
  ) -> Released:
    """Answers with exact noise from the operating system.

    Finished teachers and given answers are kept while it is under way, so a
    release that is stopped goes on where it was.
    """

    def compute(own: jax.Array, work: pathlib.Path) -> Params:
      keys = _keys(own)
      counts = self._votes(plan, data, keys, work / PRIVATE / TEACHERS)
      labels = self._answers(plan, data, counts, work / ANSWERS, keys)
      return self._student(plan, data, labels, keys)

    return release_once(self, plan, data, folder=folder, key=key, compute=compute)

  def _priced(
    self, settings: Any, queries: int, budget: accounting.Budget
  ) -> tuple[Any, accounting.Event]:
    """The rule, and what all its answers cost."""
    del settings
    sigma = pate.vote_sigma(epsilon=budget.epsilon, delta=budget.delta, queries=queries)
    rule = pate.GnMax(sigma)
    return rule, accounting.Repeated(rule.answer, queries)

  def _abstention(self, settings: Any) -> CounterRule | None:
    del settings
    return None

  def _votes(
    self, plan: Plan, data: Population, keys: dict[str, jax.Array], checkpoint: pathlib.Path | None
  ) -> np.ndarray:
    """[queries, C] votes; not for release."""
    config: Aggregation = plan.config
    parts = partition(data.private, plan.settings.num_teachers, key=keys["parts"])
    trained = pate.train_teachers(
      plan.model, plan.loss, parts, config.teacher, key=keys["teachers"], checkpoint=checkpoint
    )
    assert data.public is not None
    asked = data.public.x[: config.queries]
    votes = pate.predict_votes(plan.model, trained, asked)
    counts = pate.vote_counts(votes, plan.sizes.classes, num_teachers=plan.settings.num_teachers)
    return np.asarray(counts)

  def _labels(
    self, plan: Plan, data: Population, counts: np.ndarray, *, key: jax.Array
  ) -> np.ndarray:
    """[queries] answers, with noise from a key."""
    del data
    found = pate.gnmax(counts, sigma=plan.config.rule.sigma, key=key)
    return np.asarray(found)

  def _answers(
    self,
    plan: Plan,
    data: Population,
    counts: np.ndarray,
    folder: pathlib.Path,
    keys: dict[str, jax.Array],
  ) -> np.ndarray:
    """[queries] answers, with noise from the operating system."""
    del keys
    with pate.Answerer(
      folder, plan.config.rule, budget=plan.budget, data=data.name, unit=PERSON
    ) as answerer:
      found = answerer.answer(counts, first=0)
      answerer.finish()
    return found.labels.astype(np.int32)

  def _student(
    self, plan: Plan, data: Population, labels: np.ndarray, keys: dict[str, jax.Array]
  ) -> Params:
    """Computed from public people and released labels: free."""
    assert data.public is not None
    config: Aggregation = plan.config
    asked = data.public.take(np.arange(config.queries))
    labels, student = self._taught(plan, asked, labels)
    fitted = pate.train_student(
      plan.model, plan.loss, asked.x, labels, student, keys=keys["student"][None]
    )
    return jax.tree.map(lambda leaf: leaf[0], fitted.params)

  def _taught(
    self, plan: Plan, asked: Any, labels: np.ndarray
  ) -> tuple[np.ndarray, training.FitConfig]:
    """What the student learns from, and how."""
    del asked
    student: training.FitConfig = plan.config.student
    return labels, student


class ConfidentPate(Pate):
  """Answers where the teachers agree (Confident-GNMax).

  Privacy:
    How many queries are answered depends on the votes, so the whole budget is
    charged: it is a privacy filter, at which the answers stop.
  """

  name = "confident_pate"
  settings: type[TeacherSettings] = ConfidentSettings

  def _priced(
    self, settings: Any, queries: int, budget: accounting.Budget
  ) -> tuple[Any, accounting.Event]:
    rule = confident_rule(settings, queries, total_rho(budget))
    return rule, accounting.ApproxDp(*budget)

  def _labels(
    self, plan: Plan, data: Population, counts: np.ndarray, *, key: jax.Array
  ) -> np.ndarray:
    del data
    everyone = np.zeros(len(counts), np.int32)
    return np.asarray(
      fair_answers(plan, counts, everyone, 1, CounterRule(2.0, 0), "any", key).labels
    )


def fair_answers(
  plan: Plan,
  counts: np.ndarray,
  groups: np.ndarray,
  num_groups: int,
  rule: CounterRule,
  choice: Literal["any", "allowed"],
  key: jax.Array,
) -> pate.FairAnswers:
  """Answers with noise from a key, until the budget is spent."""
  config: Aggregation = plan.config
  noise = config.rule
  assert isinstance(noise, pate.ConfidentGnMax)
  return pate.fair_gnmax(
    counts,
    groups,
    num_groups=num_groups,
    threshold=noise.threshold,
    sigma_threshold=noise.sigma_threshold,
    sigma_answer=noise.sigma_answer,
    max_gap=rule.max_gap,
    min_count=rule.min_count,
    disparity=rule.disparity,
    guard=rule.guard,
    choice=choice,
    max_rho=config.max_rho,
    key=key,
  )


def confident_rule(settings: Any, queries: int, max_rho: float) -> pate.ConfidentGnMax:
  """Noise at which the budget pays for all tests and for `answers` answers.

  queries / (2 (r s)^2) + answers / s^2 = rho, with r = test_ratio.
  """
  answers = min(settings.answers or queries, queries)
  cost = queries / (2 * settings.test_ratio**2) + answers
  # A little more: answers stop when float32 sums reach the budget.
  sigma = math.sqrt(cost / max_rho) * (1 + 1e-5)
  return pate.ConfidentGnMax(
    threshold=settings.threshold * settings.num_teachers,
    sigma_threshold=settings.test_ratio * sigma,
    sigma_answer=sigma,
  )


def total_rho(budget: accounting.Budget) -> float:
  """What a budget is worth in zCDP."""
  return accounting.zcdp_budget(epsilon=budget.epsilon, delta=budget.delta)


def _trainer(settings: Any, steps: int, size: int) -> training.FitConfig:
  return training.FitConfig(
    learning_rate=settings.learning_rate,
    weight_decay=settings.weight_decay,
    steps=steps,
    batch_size=batch_or_all(settings.batch_size, size),
  )


def _keys(key: jax.Array) -> dict[str, jax.Array]:
  checks.one_key("key", key)
  names = ("parts", "teachers", "noise", "student")
  return {name: jax.random.fold_in(key, i) for i, name in enumerate(names)}
