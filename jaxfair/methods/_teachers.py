"""PATE: teachers vote, noisy answers label public people, a student learns.

Teachers see disjoint parts of the private people, so replacing one person
moves one vote of every query. What is released about the votes are labels of
public people; the student is computed from them alone.
"""

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, pate, training, tree
from jaxfair.data import partition
from jaxfair.fairness import CounterRule
from jaxfair.fairness._known_labels import PARITY, known_labels
from jaxfair.methods import _base
from jaxfair.methods._base import RECORD, PrivateMethod, people_per_teacher, plain_config
from jaxfair.methods._gradients import margin
from jaxfair.methods._method import PERSON, Plan, Population, Sizes, refuse_unfit
from jaxfair.methods._pate_settings import ConfidentSettings, FairSettings, TeacherSettings
from jaxfair.methods._recipe import voting_teachers
from jaxfair.methods._released import Released
from jaxfair.methods._releasing import PRIVATE
from jaxfair.pate import _attribute
from jaxfair.training import _regularizers
from jaxfair.types import Examples, Fit, Key, Labels, Params

UNKEPT = " The margin is for labels of queries, not for predictions, whose true labels are unknown."
ANSWERS, TEACHERS = "answers", "teachers"
NOT_PROTECTED = (
  "features of the public people, which are the queries",
  "teachers and their votes: they must not be published",
  *_base.NOT_PROTECTED,
)


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
  """The teachers' votes, to explain a study's result; never for release.

  Attributes:
    counts: [queries, C] votes.
    labels: [queries] noisy answers; NO_ANSWER where there is none.
  """

  counts: np.ndarray
  labels: np.ndarray


class Pate(PrivateMethod):
  """The noisy plurality of teachers' votes on every query (GNMax).

  A fit has three stages, `votes`, `labels` and `students`. A study that
  compares settings or methods takes them one by one: equal teachers vote once,
  and students of many labels are one program.
  """

  name = "pate"
  protects: Literal["record"] = "record"
  needs: frozenset[str] = frozenset({"public"})
  settings: type[TeacherSettings] = TeacherSettings
  traceable = False  # teachers get their parts and are trained from the host
  reference = "Papernot et al. 2018"

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """Calibrates the noise on votes for all queries."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    settings = voting_teachers(settings, sizes, budget)
    queries = settings.queries
    checks.integer("queries", queries, low=1, high=sizes.public, remedy="queries are public people")
    part = people_per_teacher(settings, sizes)
    rule, event = self._priced(settings, queries, budget)
    decay, abstention = settings.weight_decay, self._abstention(settings)
    unkept = isinstance(settings, FairSettings) and abstention is None
    config = Aggregation(
      queries=queries,
      teacher=plain_config(settings, settings.teacher_steps, part, weight_decay=decay),
      student=plain_config(settings, settings.student_steps, queries, weight_decay=decay),
      rule=rule,
      max_rho=total_rho(budget),
    )
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      event,
      f"{settings.num_teachers} teachers with {part} people each are asked about {queries} public "
      f"people; noise: {rule}.{UNKEPT if unkept else ''}",
      abstention=abstention,
    )

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Teachers, answers and student from one key; the trace is `NonPrivateVotes`."""
    votes = self.votes(plan, data, key=key)
    labels = self.labels(plan, data, votes, key=key)
    student = tree.take(self.students([plan], data, labels, key=key), 0)
    return Fit(student, NonPrivateVotes(votes, labels))

  def votes(
    self, plan: Plan, data: Population, *, key: Key, checkpoint: pathlib.Path | None = None
  ) -> np.ndarray:
    """[queries, C] votes; not for release."""
    config: Aggregation = plan.config
    keys, teachers = _keys(key), plan.settings.num_teachers
    parts = partition(data.private, teachers, key=keys["parts"])
    trained = pate.train_teachers(
      plan.model, plan.loss, parts, config.teacher, key=keys["teachers"], checkpoint=checkpoint
    )
    found = pate.predict_votes(plan.model, trained, _asked(plan, data).x)
    return np.asarray(pate.vote_counts(found, plan.sizes.classes, num_teachers=teachers))

  def labels(self, plan: Plan, data: Population, votes: np.ndarray, *, key: Key) -> np.ndarray:
    """[queries] labels that a student learns from, with noise from the key.

    Plans with equal noise get the same answer to the same question.
    """
    return self._kept(plan, data, self._noisy(plan, data, votes, key=_keys(key)["noise"]))

  def students(
    self, plans: Sequence[Plan], data: Population, labels: np.ndarray, *, key: Key
  ) -> Params:
    """Students of labels, [queries] or [plans, queries]; stacked, started alike.

    Computed from public people and released labels: free. Plans may be of
    several methods if their students learn in the same way; of several rows of
    labels one may be empty, and its student is then none to be used.
    """
    asked, config = _asked(plans[0], data), plans[0].config.student
    if labels.ndim == 2:
      nothing = (labels == pate.NO_ANSWER).all(axis=1)
      labels = np.where(nothing[:, None], 0, labels)
    config = dataclasses.replace(config, penalties=self._penalties(plans, asked))
    keys = jnp.broadcast_to(_keys(key)["student"], (len(plans),))
    model, loss = plans[0].model, plans[0].loss
    return pate.train_student(model, loss, asked.x, labels, config, keys=keys).params

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: Key | None = None
  ) -> Released:
    """As `Method` says; public people without labels that the notion reads cost nothing."""
    if data.public is not None:
      self._known(plan, data)
    return super().release(plan, data, folder=folder, key=key)

  def _known(self, plan: Plan, data: Population) -> Any:
    """[queries] true labels of the queries, if the settings' notion reads them; else None."""
    if "public_groups" not in self.needs:
      return None
    size, classes = plan.config.queries, plan.sizes.classes
    truth = _asked(plan, data).y
    return known_labels(truth, plan.settings.notion, size=size, num_classes=classes)

  def _release(self, plan: Plan, data: Population, key: jax.Array, work: pathlib.Path) -> Params:
    # Finished teachers and given answers are kept while it is under way, so a
    # release that is stopped goes on where it was.
    votes = self.votes(plan, data, key=key, checkpoint=work / PRIVATE / TEACHERS)
    labels = self._kept(plan, data, self._answers(plan, data, votes, work / ANSWERS, key))
    return tree.take(self.students([plan], data, labels, key=key), 0)

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if "public_groups" not in self.needs:
      return RECORD, NOT_PROTECTED
    read = "groups" if settings.notion == PARITY else "groups and labels"
    return RECORD, (f"{read} of the public people, which are the queries", *NOT_PROTECTED)

  def _priced(
    self, settings: Any, queries: int, budget: accounting.Budget
  ) -> tuple[Any, accounting.Event]:
    """The rule, and what all its answers cost."""
    del settings
    sigma = _attribute.vote_sigma(epsilon=budget.epsilon, delta=budget.delta, queries=queries)
    rule = pate.GnMax(sigma)
    return rule, accounting.Repeated(rule.answer, queries)

  def _abstention(self, settings: Any) -> CounterRule | None:
    """The margin that predictions are shown by, for methods that have one.

    Predictions come without true labels, so that demographic parity alone can be kept.
    """
    if "public_groups" not in self.needs or settings.notion != PARITY:
      return None
    return margin(settings)

  def _noisy(
    self, plan: Plan, data: Population, votes: np.ndarray, *, key: jax.Array
  ) -> np.ndarray:
    """[queries] answers, with noise from a key."""
    del data
    return np.asarray(pate.gnmax(votes, sigma=plan.config.rule.sigma, key=key))

  def _answers(
    self, plan: Plan, data: Population, votes: np.ndarray, folder: pathlib.Path, key: jax.Array
  ) -> np.ndarray:
    """[queries] answers, with noise from the operating system."""
    del key
    with pate.Answerer(
      folder, plan.config.rule, budget=plan.budget, data=data.name, unit=PERSON
    ) as answerer:
      found = answerer.answer(votes, first=0)
      answerer.finish()
    return found.labels.astype(np.int32)

  def _kept(self, plan: Plan, data: Population, labels: np.ndarray) -> np.ndarray:
    """The answers that a student learns from."""
    del plan, data
    return labels

  def _penalties(self, plans: Sequence[Plan], asked: Examples) -> tuple[_regularizers.Penalty, ...]:
    """What is added to the students' objectives."""
    del plans, asked
    return ()


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

  def _noisy(
    self, plan: Plan, data: Population, votes: np.ndarray, *, key: jax.Array
  ) -> np.ndarray:
    del data
    everyone = np.zeros(len(votes), np.int32)
    return fair_answers(plan, votes, everyone, 1, CounterRule(2.0, 0), "any", key)


def fair_answers(
  plan: Plan,
  counts: np.ndarray,
  groups: np.ndarray,
  num_groups: int,
  rule: CounterRule,
  choice: Literal["any", "allowed"],
  key: Key,
  truth: Labels | None = None,
) -> np.ndarray:
  """[queries] answers with noise from a key, until the budget is spent."""
  config: Aggregation = plan.config
  noise = config.rule
  assert isinstance(noise, pate.ConfidentGnMax)
  found = pate.fair_gnmax(
    counts,
    groups,
    num_groups=num_groups,
    threshold=noise.threshold,
    sigma_threshold=noise.sigma_threshold,
    sigma_answer=noise.sigma_answer,
    choice=choice,
    max_rho=config.max_rho,
    key=key,
    truth=truth,
    **vars(rule),
  )
  return np.asarray(found.labels)


def confident_rule(settings: Any, queries: int, max_rho: float) -> pate.ConfidentGnMax:
  """Noise at which the budget pays for all tests and for `answers` answers.

  queries / (2 (r s)^2) + answers / s^2 = rho, with r = test_ratio.
  """
  answers = min(settings.answers or queries, queries)
  cost = queries / (2 * settings.test_ratio**2) + answers
  # A little more: answers stop when float32 sums reach the budget.
  sigma = settings.sigma_answer or math.sqrt(cost / max_rho) * (1 + 1e-5)
  return pate.ConfidentGnMax(
    threshold=settings.threshold * settings.num_teachers,
    sigma_threshold=settings.test_ratio * sigma,
    sigma_answer=sigma,
  )


def total_rho(budget: accounting.Budget) -> float:
  """What a budget is worth in zCDP."""
  return accounting.zcdp_budget(epsilon=budget.epsilon, delta=budget.delta)


def _asked(plan: Plan, data: Population) -> Examples:
  """The public people that are asked about."""
  assert data.public is not None
  return data.public.take(np.arange(plan.config.queries))


def _keys(key: jax.Array) -> dict[str, jax.Array]:
  checks.one_key("key", key)
  names = ("parts", "teachers", "noise", "student")
  return {name: jax.random.fold_in(key, i) for i, name in enumerate(names)}
