"""DP-SGD and FairDP-SGD: noise on every step of the training."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import optax

from jaxfair import accounting, privacy, training
from jaxfair.fairness import CounterRule
from jaxfair.fairness._counter import Guard
from jaxfair.fairness._known_labels import PARITY
from jaxfair.methods._base import NOT_PROTECTED, PrivateMethod
from jaxfair.methods._gradient_settings import (
  DpSgdGlobalSettings,
  DpSgdSettings,
  FairDpSgdSettings,
  RecipeSettings,
)
from jaxfair.methods._method import Plan, Population, Sizes, refuse_unfit
from jaxfair.methods._recipe import noisy_descent
from jaxfair.methods._released import Released
from jaxfair.methods._releasing import release_training
from jaxfair.training import _optimizers
from jaxfair.types import Fit, Key, Number

RECORD = ("a person's whole record, and that they took part",)


class DpSgd(PrivateMethod):
  """Clips each person's gradient and adds noise to every sum."""

  name = "dp_sgd"
  protects: Literal["record"] = "record"
  relation = accounting.Relation.ADD_OR_REMOVE_ONE
  needs: frozenset[str] = frozenset()
  scales: frozenset[str] = frozenset({"disk", "devices"})
  settings: type[DpSgdSettings] = RecipeSettings
  traceable = True
  reference = "Abadi et al. 2016"

  def plan(self, settings: DpSgdSettings, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """Calibrates the noise for all steps."""
    refuse_unfit(self, settings, sizes, budget)
    settings.check_shape(sizes.shape)
    assert budget is not None
    settings = noisy_descent(settings, sizes, budget)
    config = training.calibrate(
      self._draft(settings, sizes.groups), sizes.private, epsilon=budget.epsilon, delta=budget.delta
    )
    return self._planned(
      settings,
      sizes,
      budget,
      config,
      config.event(sizes.private),
      f"{settings.steps} steps on about {settings.batch_size} of {sizes.private} people each, "
      f"with noise of {float(config.noise_multiplier):.3g} times the clip bound.",
      abstention=self._abstention(settings),
      row_norm=settings.row_norm or None,
    )

  def _draft(self, settings: Any, groups: int) -> training.DpSgdConfig:
    """The trainer's settings before its noise is calibrated."""
    del groups
    optimizer = _optimizers.chosen_optimizer(
      settings.optimizer, settings.schedule, steps=settings.steps
    )
    return training.DpSgdConfig(
      learning_rate=settings.learning_rate,
      l2_clip=settings.l2_clip,
      weight_decay=settings.weight_decay,
      steps=settings.steps,
      batch_size=settings.batch_size,
      shards=settings.shards,
      bands=settings.bands,
      optimizer=optimizer,
      **settings.recipe(),
    )

  def fit(self, plan: Plan, data: Population, *, key: Key) -> Fit:
    """Trains with noise from the key."""
    people = plan.bounded(data)
    config = self._config(plan, people)
    return training.dp_sgd(plan.model, plan.loss, people.private, config, key=key)

  def fit_many(self, plans: Sequence[Plan], data: Population, *, key: Key) -> Fit:
    """Trains plans that differ in budget and weight as one program, on the same batches."""
    noise = jnp.array([plan.config.noise_multiplier for plan in plans])
    weights = jnp.asarray([getattr(plan.settings, "lam", 0.0) for plan in plans], jnp.float32)
    people = plans[0].bounded(data)
    config = self._config(plans[0], people, weights)
    return training.fit_many(
      plans[0].model,
      plans[0].loss,
      people.private,
      dataclasses.replace(config, noise_multiplier=noise),
      keys=jnp.broadcast_to(key, (len(plans),)),
      trainer=training.dp_sgd,
    )

  def release(
    self, plan: Plan, data: Population, *, folder: str | pathlib.Path, key: Key | None = None
  ) -> Released:
    """Trains for release; continues from its last checkpoint if stopped."""
    people = plan.bounded(data)
    return release_training(plan, people, self._config(plan, people), folder=folder, key=key)

  def _config(
    self, plan: Plan, data: Population, lam: Number | None = None
  ) -> training.DpSgdConfig:
    del data, lam
    config: training.DpSgdConfig = plan.config
    return config

  def _abstention(self, settings: Any) -> CounterRule | None:
    del settings
    return None

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return RECORD, super()._protection(settings)[1]


class DpSgdGlobal(DpSgd):
  """DP-SGD that scales all gradients alike, so that clipping does not turn the sum.

  sum_i g_i C / max(Z, ||g_i||), or without those beyond Z

  That is C / Z times the sum of gradients clipped to Z (or dropped beyond it): the trainer clips to
  Z, adds noise in proportion to Z, and the factor C / Z is part of the learning rate. The groups
  whose gradients are long, and which clipping to C would shorten most, lose nothing to the others
  while Z exceeds their gradients; they pay in noise.

  Privacy:
    One person moves the sum by Z at most, and the noise is scaled to Z. A Z that adapts is computed
    from a count with noise of its own, which is charged together with the sum
    (`privacy.QuantileClip`); that is its own rule for Z and not the paper's. Multiplying by C / Z
    is computed from what was released.
  """

  name = "dp_sgd_global"
  settings: type[DpSgdSettings] = DpSgdGlobalSettings
  reference = "Bu, Wang, Long and Su 2021; Esipova et al. 2023"

  def _draft(self, settings: Any, groups: int) -> training.DpSgdConfig:
    config, share = super()._draft(settings, groups), settings.l2_clip / settings.bound
    optimizer, adaptive = config.optimizer, None
    if isinstance(optimizer, optax.GradientTransformation):  # its rate cannot be multiplied
      optimizer = optax.chain(optax.scale(share), optimizer)
    if settings.adapt:
      adaptive = privacy.QuantileClip(settings.quantile, count_noise=settings.count_noise)
    return dataclasses.replace(
      config,
      learning_rate=config.learning_rate * share,
      weight_decay=config.weight_decay / share,
      l2_clip=settings.bound,
      rule="clip" if settings.adapt else "drop",
      adaptive=adaptive,
      rescale=settings.adapt,
      optimizer=optimizer,
    )


class FairDpSgd(DpSgd):
  """DP-SGD with a penalty on the disparity among public people.

  Privacy:
    The penalty reads parameters and public people, so the guarantee is that
    of DP-SGD in both placements.
  """

  name = "fair_dp_sgd"
  needs: frozenset[str] = frozenset({"public", "public_groups"})
  settings: type[DpSgdSettings] = FairDpSgdSettings
  reference = "Learning to Walk Impartially on the Pareto Frontier, Alg. 6"

  def _config(
    self, plan: Plan, data: Population, lam: Number | None = None
  ) -> training.DpSgdConfig:
    settings, public = plan.settings, data.public
    assert public is not None
    penalty = training.parity_penalty(
      plan.model,
      public.x,
      public.group,
      num_groups=plan.sizes.groups,
      lam=settings.lam if lam is None else lam,
      placement=settings.placement,
      disparity=settings.disparity,
      sample=settings.sample,
      notion=settings.notion,
      labels=public.y,
      sharpness=settings.sharpness,
    )
    config: training.DpSgdConfig = plan.config
    return dataclasses.replace(config, penalties=(penalty,))

  def _abstention(self, settings: Any) -> CounterRule | None:
    return margin(settings)

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    read = "features and groups" if settings.notion == PARITY else "features, groups and labels"
    return RECORD, (f"{read} of the public people", *NOT_PROTECTED)


def margin(settings: Any) -> CounterRule | None:
  """The rule that answers are given by, if settings ask for one."""
  if settings.max_gap is None:
    return None
  guard: Guard = getattr(settings, "guard", "table")
  return CounterRule(
    settings.max_gap, settings.min_count, settings.disparity, guard, settings.notion
  )
