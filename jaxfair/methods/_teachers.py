"""PATE: teachers vote, noisy answers label public people, a student learns.

Teachers see disjoint parts of the private people, so replacing one person
moves one vote of every query. What is released about the votes are labels of
public people; the student is computed from them alone.
"""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, pate, training, tree
from jaxfair.accounting import Budget
from jaxfair.accounting._sanitizing_plan import SanitizingPlan, sanitizing_event
from jaxfair.data import partition
from jaxfair.fairness import CounterRule
from jaxfair.fairness._known_labels import PARITY, known_labels
from jaxfair.methods import _base
from jaxfair.methods._base import RECORD, PrivateMethod, people_per_teacher, plain_config
from jaxfair.methods._gradients import margin
from jaxfair.methods._method import PERSON, Plan, Population, Sizes, refuse_unfit
from jaxfair.methods._pate_settings import ConfidentSettings, FairSettings, TeacherSettings
from jaxfair.methods._recipe import voting_teachers
from jaxfair.methods._releasing import PRIVATE
from jaxfair.methods._sanitized import labels_budget, plan_figure, write_epsilons
from jaxfair.methods._vote_epsilons import vote_epsilons
from jaxfair.methods._vote_rules import confident_rule, describe_rule, fair_answers, total_rho
from jaxfair.pate import _attribute
from jaxfair.pate._answer_noise import erase_secret, give_secret
from jaxfair.privacy._exact_coins import BitSource
from jaxfair.training import _regularizers
from jaxfair.types import Examples, Fit, Key, Params

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
    sanitizing: how the figure at the votes is drawn; None for none.
  """

  queries: int
  teacher: training.FitConfig
  student: training.FitConfig
  rule: pate.GnMax | pate.ConfidentGnMax
  max_rho: float
  sanitizing: SanitizingPlan | None = None


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
    given, aim = settings, settings.sanitized_epsilon
    settings = voting_teachers(
      settings, sizes, budget if aim is None else Budget(aim, budget.delta)
    )
    most = given.queries or (settings.queries if aim is None else sizes.public)
    checks.integer("queries", most, low=1, high=sizes.public, remedy="queries are public people")
    part = people_per_teacher(settings, sizes)
    sanitizing, told = None, ""
    if aim is not None:
      settings = dataclasses.replace(settings, queries=given.queries)
      labels = labels_budget(budget)
      most, sanitizing = plan_figure(
        settings, sizes, budget, lambda n: self._priced(settings, n, labels)[0], most=most
      )
      told = f" A figure at their votes is bought; {sanitizing.expected:.3g} is expected."
    settings = dataclasses.replace(settings, queries=most)
    rule, event = self._priced(settings, most, budget if sanitizing is None else labels)
    if sanitizing is not None:
      asked = [rule.answer] if rule.test is None else [rule.test, rule.answer]
      event = accounting.Composed(
        (*(accounting.Repeated(one, most) for one in asked), sanitizing_event(sanitizing))
      )
    decay, abstention = settings.weight_decay, self._abstention(settings)
    unkept = isinstance(settings, FairSettings) and abstention is None
    config = Aggregation(
      queries=most,
      teacher=plain_config(settings, settings.teacher_steps, part, weight_decay=decay),
      student=plain_config(settings, settings.student_steps, most, weight_decay=decay),
      rule=rule,
      max_rho=total_rho(budget),
      sanitizing=sanitizing,
    )
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      event,
      f"{settings.num_teachers} teachers with {part} people each are asked about {most} public "
      f"people; {describe_rule(rule)}.{told}{UNKEPT if unkept else ''}",
      abstention=abstention,
      row_norm=settings.row_norm or None,
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
    keys, teachers = named_keys(key), plan.settings.num_teachers
    parts = partition(plan.bounded(data).private, teachers, key=keys["parts"])
    trained = pate.train_teachers(
      plan.model, plan.loss, parts, config.teacher, key=keys["teachers"], checkpoint=checkpoint
    )
    found = pate.predict_votes(plan.model, trained, self._asked(plan, data).x)
    return np.asarray(pate.vote_counts(found, plan.sizes.classes, num_teachers=teachers))

  def labels(self, plan: Plan, data: Population, votes: np.ndarray, *, key: Key) -> np.ndarray:
    """[queries] labels that a student learns from, with noise from the key.

    Plans with equal noise get the same answer to the same question.
    """
    return self._kept(plan, data, self._noisy(plan, data, votes, key=named_keys(key)["noise"]))

  def students(
    self, plans: Sequence[Plan], data: Population, labels: np.ndarray, *, key: Key
  ) -> Params:
    """Students of labels, [queries] or [plans, queries]; stacked, started alike.

    Computed from public people and released labels: free. Plans may be of
    several methods if their students learn in the same way; of several rows of
    labels one may be empty, and its student is then none to be used.
    """
    asked, config = self._asked(plans[0], data), plans[0].config.student
    if labels.ndim == 2:
      nothing = (labels == pate.NO_ANSWER).all(axis=1)
      labels = np.where(nothing[:, None], 0, labels)
    config = dataclasses.replace(config, penalties=self._penalties(plans, asked))
    keys = jnp.broadcast_to(named_keys(key)["student"], (len(plans),))
    model, loss = plans[0].model, plans[0].loss
    return pate.train_student(model, loss, asked.x, labels, config, keys=keys).params

  def check_people(self, plan: Plan, data: Population) -> None:
    """Raises for public people without known labels, and for a figure that would not hold."""
    if data.public is not None:
      self._known(plan, data)
    checks.require(
      plan.config.sanitizing is None or data.bought is None,
      "sanitized_epsilon is about votes, and the features were scaled by what was bought from the "
      "private people, which it does not cover; scale by public people or by declared ranges",
    )

  def _known(self, plan: Plan, data: Population) -> Any:
    """[queries] true labels of the queries, if the settings' notion reads them; else None."""
    if "public_groups" not in self.needs:
      return None
    truth, classes = self._asked(plan, data).y, plan.sizes.classes
    return known_labels(truth, plan.settings.notion, size=len(truth), num_classes=classes)

  def _release(
    self, plan: Plan, data: Population, key: jax.Array, bits: BitSource, work: pathlib.Path
  ) -> Params:
    # Finished teachers and given answers are kept while it is under way, so a
    # release that is stopped goes on where it was.
    give_secret(work / ANSWERS, bits)
    votes = self.votes(plan, data, key=key, checkpoint=work / PRIVATE / TEACHERS)
    labels = self._kept(plan, data, self._answers(plan, data, votes, work / ANSWERS, key))
    erase_secret(work / ANSWERS)  # also where noise followed from the key, and nobody needed it
    # The key and the votes are those of a run that was stopped, and so is the figure.
    asked = self._counted(votes, labels, work / ANSWERS)
    write_epsilons(vote_epsilons(plan, asked, key=named_keys(key)["figure"]), work)
    return tree.take(self.students([plan], data, labels, key=key), 0)

  def _rehearse(self, plan: Plan, data: Population, key: jax.Array, work: pathlib.Path) -> Params:
    fitted = self.fit(plan, data, key=key)
    write_epsilons(vote_epsilons(plan, fitted.trace.counts, key=named_keys(key)["figure"]), work)
    return fitted.params

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

  def _asked(self, plan: Plan, data: Population) -> Examples:
    """The public people that are voted on: the queries."""
    public = plan.bounded(data).public
    assert public is not None
    return public.take(np.arange(plan.config.queries))

  def _counted(self, votes: np.ndarray, labels: np.ndarray, folder: pathlib.Path) -> np.ndarray:
    """The votes on those who were asked about in a release."""
    del labels, folder
    return votes

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
    found = fair_answers(plan, votes, everyone, 1, CounterRule(2.0, 0), "any", key)
    return np.asarray(found.labels)


def named_keys(key: jax.Array) -> dict[str, jax.Array]:
  """The keys of the stages of a fit, from its one key."""
  checks.one_key("key", key)
  names = ("parts", "teachers", "noise", "student", "figure")
  return {name: jax.random.fold_in(key, i) for i, name in enumerate(names)}
