"""SF-PATE: teachers vote on private groups, or fairly on classes."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any, Literal

import jax

from jaxfair import accounting, checks, pate, training
from jaxfair._fields import Count, NonNegative, Positive
from jaxfair.methods._base import people_per_teacher, plain_config
from jaxfair.methods._method import Plan, Population, Sizes, refuse_unfit
from jaxfair.methods._private_groups import (
  FEW,
  GROUPS,
  NOT_PROTECTED,
  LagrangianSettings,
  ProtectsGroups,
  fair_config,
)
from jaxfair.models import _networks
from jaxfair.pate import _sf_pate
from jaxfair.pate._answer_noise import give_secret
from jaxfair.pate._sf_release import Asked, ask
from jaxfair.privacy._exact_coins import BitSource
from jaxfair.types import Fit, Key, Model, Params


class SfPateSettings(LagrangianSettings):
  """Settings of SF-PATE.

  Attributes:
    num_teachers: K.
    queries: people the student learns from, drawn from the private people.
    proximity: lambda of lambda ||theta - theta*||^2.
    teacher_steps: of a teacher, on all of its part at once.
    teacher_rate: learning rate of teachers.
    teacher_round: steps of a fair teacher between two of its multipliers.
    teacher_network: a name in `models.NETWORKS`, or "same" for the student's.
  """

  num_teachers: Count = 150
  queries: Count = 200
  proximity: NonNegative = 0.01
  teacher_steps: Count = 100
  teacher_rate: Positive = 0.03
  teacher_round: Count = 5
  teacher_network: str = "same"

  def check(self) -> None:
    """Raises for a network that nobody knows."""
    super().check()
    checks.one_of("teacher_network", self.teacher_network, ("same", *_networks.NETWORKS))


class SfPateS(ProtectsGroups):
  """Teachers vote on groups; a fair student learns from noisy groups."""

  name = "sf_pate_s"
  settings: type[SfPateSettings] = SfPateSettings
  traceable = False
  reference = "Tran et al. 2023, section 5.1"
  asks: Literal["groups", "labels"] = "groups"
  teacher_trainer: Any = staticmethod(training.fit)

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """Calibrates the noise on votes for all queries."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    checks.integer(
      "queries",
      settings.queries,
      low=1,
      high=sizes.private,
      remedy="the student learns from some of the people",
    )
    part = people_per_teacher(settings, sizes)
    teacher, student = self._trainers(settings, sizes)
    config = pate.SfPateConfig(
      epsilon=budget.epsilon,
      delta=budget.delta,
      num_teachers=settings.num_teachers,
      queries=settings.queries,
      teacher=teacher,
      student=student,
      plain=plain_config(settings, settings.plain_steps, sizes.private),
    )
    [sigma] = config.sigmas
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      accounting.Repeated(pate.GnMax(sigma).answer, settings.queries),
      f"{settings.num_teachers} teachers with {part} people each are asked about "
      f"{settings.queries} people, with noise of {sigma:.3g} votes.",
    )

  def start(self, plan: Plan, data: Population, *, key: Key) -> Params:
    """theta*; None where labels are private, since it is fitted to them."""
    blind = self._hides_labels(plan.settings)
    return None if blind else super().start(plan, data, key=key)

  def votes(self, plan: Plan, data: Population, *, key: Key) -> Asked:
    """The teachers' votes that a student of this key learns from: not for release."""
    teacher, config, groups = self._teacher_model(plan), plan.config, plan.sizes.groups
    key, outputs = jax.random.split(key, 3)[0], self._outputs(plan)
    return ask(
      self.asks,
      teacher,
      plan.loss,
      data.private,
      config,
      groups,
      outputs,
      key,
      trainer=self.teacher_trainer,
    )

  def _trained(self, plan: Plan, data: Population, key: jax.Array, start: Params) -> Fit:
    return self._student(plan, data, key, plan.config, start=start).fit

  def _trained_together(
    self, plans: Sequence[Plan], data: Population, key: jax.Array, start: Params
  ) -> Fit:
    epsilons = tuple(plan.config.epsilon for plan in plans)
    config = dataclasses.replace(plans[0].config, epsilon=epsilons)
    return self._student(plans[0], data, key, config, start=start).fit

  def _release(
    self, plan: Plan, data: Population, key: jax.Array, bits: BitSource, work: pathlib.Path
  ) -> Params:
    # Votes get exact noise, and are logged.
    answers = work / "answers"
    give_secret(answers, bits)
    start = self.start(plan, data, key=key)
    return self._student(plan, data, key, plan.config, start=start, folder=answers).params

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    blind = self._hides_labels(settings)
    return GROUPS + (("their labels",) if blind else ()), (
      "teachers and their votes: they must not be published",
      "that the people were not refused, which is decided by looking at groups",
      *(("features, which are taken to be public",) if blind else ()),
      *(NOT_PROTECTED[1:] if blind else NOT_PROTECTED),
    )

  def _teacher_model(self, plan: Plan) -> Model:
    name = plan.settings.teacher_network
    name = plan.network.name if name == "same" else name
    return dataclasses.replace(plan.network, name=name, num_classes=self._outputs(plan)).model

  def _outputs(self, plan: Plan) -> int:
    return plan.sizes.groups

  def _trainers(self, settings: Any, sizes: Sizes) -> tuple[Any, Any]:
    teacher = training.FitConfig(
      learning_rate=settings.teacher_rate, steps=settings.teacher_steps, batch_size=None
    )
    student = fair_config(settings, sizes, settings.queries)
    return teacher, dataclasses.replace(student, proximity=2 * settings.proximity)

  def _hides_labels(self, settings: Any) -> bool:
    del settings
    return False

  def _student(
    self, plan: Plan, data: Population, key: jax.Array, config: pate.SfPateConfig, **options: Any
  ) -> _sf_pate.SfPate:
    return pate.fair_student(
      plan.model,
      plan.loss,
      data.private,
      config,
      num_groups=plan.sizes.groups,
      key=key,
      teacher_model=self._teacher_model(plan),
      **options,
    )


class SfPateT(SfPateS):
  """Fair teachers vote on labels; a plain student learns from noisy labels.

  Privacy:
    With `proximity=0` nothing else is computed from labels, and the votes
    protect them as well.
  """

  name = "sf_pate_t"
  reference = "Tran et al. 2023, section 5.2"
  asks = "labels"
  teacher_trainer = staticmethod(training.lagrangian)

  def _trainers(self, settings: Any, sizes: Sizes) -> tuple[Any, Any]:
    teacher = dataclasses.replace(
      fair_config(settings, sizes, FEW),
      learning_rate=settings.teacher_rate,
      rounds=max(1, settings.teacher_steps // settings.teacher_round),
      steps_per_round=settings.teacher_round,
    )
    steps = settings.rounds * settings.steps_per_round
    proximity = 2 * settings.proximity
    return teacher, plain_config(settings, steps, settings.queries, proximity=proximity)

  def _hides_labels(self, settings: Any) -> bool:
    return bool(settings.proximity == 0)

  def _outputs(self, plan: Plan) -> int:
    return plan.sizes.classes

  def _student(
    self, plan: Plan, data: Population, key: jax.Array, config: pate.SfPateConfig, **options: Any
  ) -> _sf_pate.SfPate:
    return pate.fair_teachers(
      plan.model,
      plan.loss,
      data.private,
      config,
      num_groups=plan.sizes.groups,
      num_classes=plan.sizes.classes,
      key=key,
      teacher_model=self._teacher_model(plan),
      **options,
    )
