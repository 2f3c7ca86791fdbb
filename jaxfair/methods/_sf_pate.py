"""SF-PATE: teachers vote on private groups, or fairly on classes."""

import dataclasses
import pathlib
from typing import Any

import jax

from jaxfair import accounting, checks, pate, training
from jaxfair._fields import Count, NonNegative, Positive
from jaxfair.data._splitting import MIN_PART
from jaxfair.methods._method import Plan, Population, Sizes, refuse_unfit
from jaxfair.methods._private_groups import (
  GROUPS,
  NOT_PROTECTED,
  FairSettings,
  ProtectsGroups,
  fair_config,
  plain_config,
)
from jaxfair.methods._released import Released
from jaxfair.methods._releasing import release_once
from jaxfair.types import Fit, Params


class SfPateSettings(FairSettings):
  """Settings of SF-PATE.

  Attributes:
    num_teachers: K.
    queries: people the student learns from, drawn from the private people.
    proximity: lambda of lambda ||theta - theta*||^2.
    teacher_steps: of a teacher, on all of its part at once.
    teacher_rate: learning rate of teachers.
  """

  num_teachers: Count = 150
  queries: Count = 200
  proximity: NonNegative = 0.01
  teacher_steps: Count = 100
  teacher_rate: Positive = 0.03


class SfPateS(ProtectsGroups):
  """Teachers vote on groups; a fair student learns from noisy groups."""

  name = "sf_pate_s"
  settings: type[SfPateSettings] = SfPateSettings
  traceable = False
  reference = "Tran et al. 2023, section 5.1"

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
    part = sizes.private // settings.num_teachers
    checks.require(
      part >= MIN_PART,
      f"num_teachers={settings.num_teachers} leaves {part} people to each; "
      f"use at most {sizes.private // MIN_PART}",
    )
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
    answer = pate.GnMax(config.sigma).answer
    blind = self._hides_labels(settings)
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      accounting.Repeated(answer, settings.queries),
      f"{settings.num_teachers} teachers with {part} people each are asked "
      f"about {settings.queries} people, with noise of {config.sigma:.3g} "
      "votes.",
      protected=GROUPS + (("their labels",) if blind else ()),
      not_protected=(
        "teachers and their votes: they must not leave the house",
        "that the people were not refused, which is decided by looking at groups",
        *(("features, which are taken to be public",) if blind else ()),
        *(NOT_PROTECTED[1:] if blind else NOT_PROTECTED),
      ),
    )

  def fit(self, plan: Plan, data: Population, *, key: jax.Array) -> Fit:
    """Teachers, votes and student from one key."""
    return self._computed(plan, data, key, None)

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: jax.Array | None = None
  ) -> Released:
    """Votes get exact noise from the operating system, and are logged."""

    def compute(own: jax.Array, work: pathlib.Path) -> Params:
      return self._computed(plan, data, own, work / "answers").params

    return release_once(self, plan, data, folder=folder, key=key, compute=compute)

  def _trainers(self, settings: Any, sizes: Sizes) -> tuple[Any, Any]:
    teacher = training.FitConfig(
      learning_rate=settings.teacher_rate, steps=settings.teacher_steps, batch_size=None
    )
    student = fair_config(settings, sizes, settings.queries)
    return teacher, dataclasses.replace(student, proximity=2 * settings.proximity)

  def _hides_labels(self, settings: Any) -> bool:
    del settings
    return False

  def _computed(
    self, plan: Plan, data: Population, key: jax.Array, folder: pathlib.Path | None
  ) -> Fit:
    outputs = dataclasses.replace(plan.network, num_classes=plan.sizes.groups)
    return pate.fair_student(
      plan.model,
      plan.loss,
      data.private,
      plan.config,
      num_groups=plan.sizes.groups,
      key=key,
      teacher_model=outputs.model,
      folder=folder,
    ).fit


class SfPateT(SfPateS):
  """Fair teachers vote on labels; a plain student learns from noisy labels.

  Privacy:
    With `proximity=0` nothing else is computed from labels, and the votes
    protect them as well.
  """

  name = "sf_pate_t"
  reference = "Tran et al. 2023, section 5.2"

  def _trainers(self, settings: Any, sizes: Sizes) -> tuple[Any, Any]:
    part = sizes.private // settings.num_teachers
    rounds = min(settings.rounds, settings.teacher_steps)
    teacher = dataclasses.replace(
      fair_config(settings, sizes, part),
      learning_rate=settings.teacher_rate,
      rounds=rounds,
      steps_per_round=max(1, settings.teacher_steps // rounds),
      batch_size=None,
    )
    steps = settings.rounds * settings.steps_per_round
    student = plain_config(settings, steps, settings.queries)
    return teacher, dataclasses.replace(student, proximity=2 * settings.proximity)

  def _hides_labels(self, settings: Any) -> bool:
    return bool(settings.proximity == 0)

  def _computed(
    self, plan: Plan, data: Population, key: jax.Array, folder: pathlib.Path | None
  ) -> Fit:
    return pate.fair_teachers(
      plan.model,
      plan.loss,
      data.private,
      plan.config,
      num_groups=plan.sizes.groups,
      num_classes=plan.sizes.classes,
      key=key,
      folder=folder,
    ).fit
