"""Fair models from private groups: randomized response and PF-LD.

Neighbors differ in the group of one person. Features and labels are taken to
be public, so a model that is fitted without groups costs nothing; both methods
start from it, as those in `sf_pate` do.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, pate, privacy, training, tree
from jaxfair._fields import Count, NonNegative, OneOf, Positive
from jaxfair.accounting import _randomized_response
from jaxfair.fairness import _known_labels, constraints
from jaxfair.methods._base import FIGURES, TUNING, PrivateMethod, batch_or_all, plain_config
from jaxfair.methods._method import NetworkSettings, Plan, Population, Sizes, refuse_unfit
from jaxfair.pate._sf_pate import plain_model
from jaxfair.types import Array, Examples, Fit, Key, Params

NOTIONS: dict[str, Callable[..., constraints.Notion]] = {
  **_known_labels.NOTIONS,
  "generalized_demographic_parity": constraints.generalized_demographic_parity,
}
FEW = 1024  # people that one step of fair training can take together
GROUPS = ("which group each one of the people belongs to",)
NOT_PROTECTED = (
  "features and labels, which are taken to be public",
  "that a person is among the people",
  "a group that anybody can guess from the features",
  FIGURES,
  TUNING,
)


class LagrangianSettings(NetworkSettings):
  """Settings of fair training, and of the model without groups before it.

  Attributes:
    notion: notion of fairness.
    tolerance: the violation that is allowed.
    learning_rate: learning rate of Adam.
    dual_rate: of the multipliers.
    rounds: steps of the multipliers.
    steps_per_round: primal steps before each of them.
    plain_steps: of the model without groups.
    batch_size: everybody, where there are no more.
    dual_people: the largest number of people that multipliers look at, drawn
      anew each time.
  """

  notion: Annotated[str, OneOf(tuple(NOTIONS))] = "demographic_parity"
  tolerance: NonNegative = 0.01
  learning_rate: Positive = 0.003
  dual_rate: Positive = 1.0
  rounds: Count = 40
  steps_per_round: Count = 20
  plain_steps: Count = 1000
  batch_size: Count = 256
  dual_people: Count = 100_000


class RandomizedSettings(LagrangianSettings):
  """Settings of randomized groups.

  Attributes:
    corrected: takes the known noise out of the groups' means.
  """

  corrected: bool = False


class PrivateLagrangianSettings(LagrangianSettings):
  """Settings of PF-LD.

  Attributes:
    l2_clip: bound on the gradient of one person's statistic.
  """

  l2_clip: Positive = 1.0


class ProtectsGroups(PrivateMethod):
  """Shared parts of the methods that protect groups: all of them start from theta*."""

  protects: Literal["group"] = "group"
  relation = accounting.Relation.ATTRIBUTE
  needs: frozenset[str] = frozenset({"groups"})

  def start(self, plan: Plan, data: Population, *, key: Key) -> Params:
    """theta*, the model without groups, which costs nothing."""
    config = plain_config(plan.settings, plan.settings.plain_steps, plan.sizes.private)
    return plain_model(plan.model, plan.loss, data.private, config, key=_keys(key)["plain"])

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Trains theta*, and the fair model with noise from the key."""
    return self._trained(plan, data, key, self.start(plan, data, key=key))

  def fit_many(
    self, plans: Sequence[Plan], data: Population, *, key: Key, start: Params | None = None
  ) -> Fit:
    """Fits plans that differ in their budgets; theta* is trained once, or passed in."""
    if start is None:
      start = self.start(plans[0], data, key=key)
    return self._trained_together(plans, data, key, start)

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    del settings
    return GROUPS, NOT_PROTECTED

  def _trained(self, plan: Plan, data: Population, key: jax.Array, start: Params) -> Fit:
    raise NotImplementedError

  def _trained_together(
    self, plans: Sequence[Plan], data: Population, key: jax.Array, start: Params
  ) -> Fit:
    return tree.stack([self._trained(plan, data, key, start) for plan in plans])


class RandomizedGroups(ProtectsGroups):
  """Everybody's group by randomized response, then fair training (M)."""

  name = "randomized_groups"
  settings = RandomizedSettings
  traceable = False
  reference = "Mozannar, Ohannessian and Srebro 2020"

  def plan(
    self, settings: RandomizedSettings, sizes: Sizes, budget: accounting.Budget | None
  ) -> Plan:
    """Epsilon alone: randomized response needs no delta."""
    refuse_unfit(self, settings, sizes, budget)
    assert budget is not None
    config = fair_config(settings, sizes, sizes.private)
    if settings.corrected:
      matrix = privacy.response_matrix(epsilon=budget.epsilon, num_categories=sizes.groups)
      notion = constraints.corrected(_notion(settings, sizes), matrix)
      config = dataclasses.replace(config, constraint=notion)
    keep = _randomized_response.randomized_response_keep(
      epsilon=budget.epsilon, categories=sizes.groups
    )
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      accounting.RandomizedResponse(budget.epsilon, sizes.groups),
      f"Each of {sizes.private} people reports the true group with probability {keep:.3g}.",
    )

  def _trained(self, plan: Plan, data: Population, key: jax.Array, start: Params) -> Fit:
    keys = _keys(key)
    people = _reported(plan, data, keys["noise"])
    return training.lagrangian(
      plan.model, plan.loss, people, plan.config, key=keys["train"], initial=start
    )

  def _trained_together(
    self, plans: Sequence[Plan], data: Population, key: jax.Array, start: Params
  ) -> Fit:
    if plans[0].settings.corrected:  # the correction is part of the program
      return super()._trained_together(plans, data, key, start)
    keys = _keys(key)
    noise = jax.random.split(keys["noise"], len(plans))
    groups = [_reported(plan, data, own).group for plan, own in zip(plans, noise, strict=True)]
    return fair_students(plans[0], data, np.stack(groups), key=keys["train"], start=start)


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

  def _trained(self, plan: Plan, data: Population, key: jax.Array, start: Params) -> Fit:
    return training.private_lagrangian(
      plan.model, plan.loss, data.private, plan.config, key=_keys(key)["train"], initial=start
    )

  def _trained_together(
    self, plans: Sequence[Plan], data: Population, key: jax.Array, start: Params
  ) -> Fit:
    names = ("noise_multiplier", "dual_noise", "count_noise")
    noises: Any = {
      name: np.array([getattr(plan.config, name) for plan in plans], np.float32) for name in names
    }
    return training.fit_many(
      plans[0].model,
      plans[0].loss,
      data.private,
      dataclasses.replace(plans[0].config, **noises),
      keys=jax.random.split(_keys(key)["train"], len(plans)),
      trainer=training.private_lagrangian,
      initial=tree.repeat(start, len(plans)),
    )


def fair_students(plan: Plan, data: Population, groups: Array, *, key: Key, start: Params) -> Fit:
  """One fair training on everybody for each row of groups [k, n], all started alike."""
  return training.fit_many(
    plan.model,
    plan.loss,
    data.private._replace(group=groups),
    plan.config,
    stacked=Examples(False, False, True),
    trainer=training.lagrangian,
    keys=jnp.broadcast_to(key, (len(groups),)),
    initial=tree.repeat(start, len(groups)),
  )


def _reported(plan: Plan, data: Population, key: jax.Array) -> Examples:
  assert plan.budget is not None
  return pate.randomized_groups(
    data.private, epsilon=plan.budget.epsilon, num_groups=plan.sizes.groups, key=key
  ).examples


def _notion(settings: Any, sizes: Sizes) -> constraints.Notion:
  return NOTIONS[settings.notion](sizes.groups, sizes.classes)


def fair_config(settings: Any, sizes: Sizes, size: int) -> training.LagrangianConfig:
  """The settings of a fair training on `size` people; `FEW` of them are one batch."""
  return training.LagrangianConfig(
    learning_rate=settings.learning_rate,
    dual_rate=settings.dual_rate,
    tolerance=settings.tolerance,
    constraint=_notion(settings, sizes),
    rounds=settings.rounds,
    steps_per_round=settings.steps_per_round,
    batch_size=None if size <= FEW else batch_or_all(settings.batch_size, size),
    dual_size=batch_or_all(settings.dual_people, size),
  )


def _keys(key: jax.Array) -> dict[str, jax.Array]:
  checks.key("key", key)
  names = ("plain", "noise", "train")
  return {name: jax.random.fold_in(key, i) for i, name in enumerate(names)}
