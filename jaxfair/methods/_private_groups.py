"""Fair models from private groups: randomised response and PF-LD.

Neighbors differ in the group of one person. Features and labels are taken to
be public, so a model that is fitted without groups costs nothing; both methods
start from it, as those in `sf_pate` do.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any, Literal

import jax

from jaxfair import accounting, checks, models, pate, privacy, training
from jaxfair._fields import Count, NonNegative, Positive
from jaxfair.fairness import constraints
from jaxfair.methods._baselines import batch_or_all
from jaxfair.methods._gradients import FIGURES, TUNING
from jaxfair.methods._method import (
  NetworkSettings,
  Plan,
  Population,
  Sizes,
  network_of,
  refuse_unfit,
)
from jaxfair.methods._released import Released
from jaxfair.methods._releasing import release_once
from jaxfair.pate import Protection
from jaxfair.pate._sf_pate import plain_model
from jaxfair.types import Fit, Params

NOTIONS: dict[str, Callable[..., constraints.Notion]] = {
  "demographic_parity": constraints.demographic_parity,
  "equalized_odds": constraints.equalized_odds,
  "equal_opportunity": constraints.equal_opportunity,
  "accuracy_parity": constraints.accuracy_parity,
}
GROUPS = ("which group each one of the people belongs to",)
NOT_PROTECTED = (
  "features and labels, which are taken to be public",
  "that a person is among the people",
  "a group that anybody can guess from the features",
  FIGURES,
  TUNING,
)


class FairSettings(NetworkSettings):
  """Settings of fair training, and of the model without groups before it.

  Attributes:
    notion: of fairness.
    tolerance: the violation that is allowed.
    learning_rate: of Adam.
    dual_rate: of the multipliers.
    rounds: steps of the multipliers.
    steps_per_round: primal steps before each of them.
    plain_steps: of the model without groups.
    batch_size: everybody, where there are no more.
  """

  notion: Literal[
    "demographic_parity", "equalized_odds", "equal_opportunity", "accuracy_parity"
  ] = "demographic_parity"
  tolerance: NonNegative = 0.01
  learning_rate: Positive = 0.003
  dual_rate: Positive = 1.0
  rounds: Count = 40
  steps_per_round: Count = 20
  plain_steps: Count = 1000
  batch_size: Count = 256


class RandomizedSettings(FairSettings):
  """Settings of randomised groups.

  Attributes:
    corrected: takes the known noise out of the groups' means.
  """

  corrected: bool = False


class PrivateLagrangianSettings(FairSettings):
  """Settings of PF-LD.

  Attributes:
    l2_clip: bound on the gradient of one person's statistic.
  """

  l2_clip: Positive = 1.0


class ProtectsGroups:
  """What methods that protect groups share."""

  name = ""
  protects: Literal["group"] = "group"
  relation = accounting.Relation.ATTRIBUTE
  needs: frozenset[str] = frozenset({"groups"})

  def _planned(
    self,
    settings: Any,
    sizes: Sizes,
    budget: accounting.Budget,
    config: Any,
    event: accounting.Event,
    says: str,
    *,
    protected: tuple[str, ...] = GROUPS,
    not_protected: tuple[str, ...] = NOT_PROTECTED,
  ) -> Plan:
    spent = accounting.composed_guarantee([event], delta=budget.delta, relation=self.relation)
    return Plan(
      method=self.name,
      settings=settings,
      sizes=sizes,
      budget=budget,
      network=network_of(settings, sizes),
      loss=models.cross_entropy,
      config=config,
      event=event,
      guarantee=Protection(spent, protected, not_protected),
      says=(says, f"The model costs {spent}."),
    )

  def fit(self, plan: Plan, data: Population, *, key: jax.Array) -> Fit:
    """Trains with noise from the key."""
    raise NotImplementedError

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: jax.Array | None = None
  ) -> Released:
    """Trains with noise from a key that the operating system drew."""

    def compute(own: jax.Array, work: pathlib.Path) -> Params:
      del work
      return self.fit(plan, data, key=own).params

    return release_once(
      self,  # type: ignore[arg-type]
      plan,
      data,
      folder=folder,
      key=key,
      compute=compute,
    )


class RandomizedGroups(ProtectsGroups):
  """Everybody's group by randomised response, then fair training (M)."""

  name = "randomised_groups"
  settings = RandomizedSettings
  traceable = False
  reference = "Mozannar, Ohannessian and Srebro 2020"

  def plan(
    self, settings: RandomizedSettings, sizes: Sizes, budget: accounting.Budget | None
  ) -> Plan:
    """Epsilon alone: randomised response needs no delta."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    config = fair_config(settings, sizes, sizes.private)
    if settings.corrected:
      matrix = privacy.response_matrix(epsilon=budget.epsilon, num_categories=sizes.groups)
      notion = constraints.corrected(_notion(settings, sizes), matrix)
      config = dataclasses.replace(config, constraint=notion)
    keep = accounting.randomised_response_keep(epsilon=budget.epsilon, categories=sizes.groups)
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      accounting.RandomisedResponse(budget.epsilon, sizes.groups),
      f"Each of {sizes.private} people reports the true group with probability {keep:.3g}.",
    )

  def fit(self, plan: Plan, data: Population, *, key: jax.Array) -> Fit:
    """Reports and training from one key."""
    keys = _keys(key)
    assert plan.budget is not None
    reported = pate.randomised_groups(
      data.private, epsilon=plan.budget.epsilon, num_groups=plan.sizes.groups, key=keys["noise"]
    )
    return training.lagrangian(
      plan.model,
      plan.loss,
      reported.examples,
      plan.config,
      key=keys["train"],
      initial=_start(plan, data, keys["plain"]),
    )


class PrivateLagrangian(ProtectsGroups):
  """Fair training with noise on every use of the groups (PF-LD)."""

  name = "private_lagrangian"
  settings = PrivateLagrangianSettings
  traceable = True
  reference = "Tran, Fioretto and Van Hentenryck 2021"

  def plan(
    self, settings: PrivateLagrangianSettings, sizes: Sizes, budget: accounting.Budget | None
  ) -> Plan:
    """Calibrates the noise of primal steps, dual steps and group sizes."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    config = training.PrivateLagrangianConfig(
      learning_rate=settings.learning_rate,
      dual_rate=settings.dual_rate,
      tolerance=settings.tolerance,
      l2_clip=settings.l2_clip,
      constraint=_notion(settings, sizes),
      rounds=settings.rounds,
      steps_per_round=settings.steps_per_round,
      batch_size=min(settings.batch_size, sizes.private),
    ).calibrated(sizes.private, epsilon=budget.epsilon, delta=budget.delta)
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      config.event(sizes.private),
      f"{settings.rounds} rounds of {settings.steps_per_round} steps, with "
      f"noise of {float(config.noise_multiplier):.3g} times what one group "
      "can move.",
    )

  def fit(self, plan: Plan, data: Population, *, key: jax.Array) -> Fit:
    """Trains with noise from the key."""
    keys = _keys(key)
    return training.private_lagrangian(
      plan.model,
      plan.loss,
      data.private,
      plan.config,
      key=keys["train"],
      initial=_start(plan, data, keys["plain"]),
    )


def _notion(settings: Any, sizes: Sizes) -> constraints.Notion:
  return NOTIONS[settings.notion](sizes.groups, sizes.classes)


def fair_config(settings: Any, sizes: Sizes, size: int) -> training.LagrangianConfig:
  """The settings of a fair training on `size` people."""
  return training.LagrangianConfig(
    learning_rate=settings.learning_rate,
    dual_rate=settings.dual_rate,
    tolerance=settings.tolerance,
    constraint=_notion(settings, sizes),
    rounds=settings.rounds,
    steps_per_round=settings.steps_per_round,
    batch_size=batch_or_all(settings.batch_size, size),
  )


def plain_config(settings: Any, steps: int, size: int) -> training.FitConfig:
  """The settings of a training without groups on `size` people."""
  return training.FitConfig(
    learning_rate=settings.learning_rate,
    steps=steps,
    batch_size=batch_or_all(settings.batch_size, size),
  )


def _start(plan: Plan, data: Population, key: jax.Array) -> Params:
  """theta*, the model without groups; free."""
  config = plain_config(plan.settings, plan.settings.plain_steps, plan.sizes.private)
  return plain_model(plan.model, plan.loss, data.private, config, key=key)


def _keys(key: jax.Array) -> dict[str, jax.Array]:
  checks.key("key", key)
  names = ("plain", "noise", "train")
  return {name: jax.random.fold_in(key, i) for i, name in enumerate(names)}
