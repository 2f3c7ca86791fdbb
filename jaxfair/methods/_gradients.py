"""DP-SGD and FairDP-SGD: noise on every step of the training."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import optax

from jaxfair import accounting, privacy, training
from jaxfair._fields import Count, NonNegative, Positive, Probability
from jaxfair.fairness import CounterRule
from jaxfair.fairness._counter import Guard
from jaxfair.fairness._known_labels import PARITY, NotionName
from jaxfair.methods._answer_plans import refuse_unplanned
from jaxfair.methods._base import NOT_PROTECTED, PrivateMethod
from jaxfair.methods._method import (
  NetworkSettings,
  Plan,
  Population,
  Sizes,
  refuse_margin,
  refuse_unfit,
)
from jaxfair.methods._recipe import noisy_descent
from jaxfair.methods._released import Released
from jaxfair.methods._releasing import release_training
from jaxfair.training import _optimizers
from jaxfair.types import Fit, Key

RECORD = ("a person's whole record, and that they took part",)


class DpSgdSettings(NetworkSettings):
  """Settings of DP-SGD; see `training.DpSgdConfig`.

  What is None is chosen from the number of people and the budget (docs/private_training.md).

  Attributes:
    optimizer: a name ("sgd", "momentum", "adam"), a function of the learning rate such as
      `optax.adamw`, or an optax object such as `optax.adamw(schedule)`.
    row_norm: radius of the ball that features are projected into, at training and at prediction;
      0 leaves them as they are.
    shards: number of blocks of people that devices can share; part of the price. None chooses one
      where a release is shared, and draws everybody at once elsewhere.
    bands: number of steps that share their noise.
  """

  learning_rate: Positive | None = None
  l2_clip: Positive = 1.0
  weight_decay: NonNegative = 0.0
  steps: Count | None = None
  batch_size: Count | None = None
  optimizer: _optimizers.OptimizerChoice | None = None
  schedule: _optimizers.ScheduleName = "constant"
  row_norm: NonNegative | None = None
  shards: Count | None = None
  bands: Count = 1


class FairDpSgdSettings(DpSgdSettings):
  """Settings of FairDP-SGD.

  Attributes:
    lam: weight of the disparity on public people.
    placement: "after" the noise, or "inside" the clip as the paper lists it.
    disparity: which difference between groups; see `fairness`.
    sample: public people drawn for each step; None uses all.
    max_gap: margin between groups that predictions are shown by; None shows
      all.
    min_count: people of a group before the margin is kept.
    notion: of fairness, in the penalty. All but demographic parity read the labels of the public
      people, and have no margin for predictions, whose true labels are not known.
    sharpness: multiplies the logits in the penalty: 1 compares probabilities, more compares
      smoothed decisions.
    plan_answers: whether the shares of classes among shown predictions are planned on public
      people, so that the margin lets more be shown; see docs/fairpate.md.
  """

  lam: NonNegative = 0.1
  placement: Literal["after", "inside"] = "after"
  disparity: Literal["rest", "pairwise", "overall"] = "rest"
  sample: Count | None = None
  max_gap: NonNegative | None = None
  min_count: Count = 50
  notion: NotionName = PARITY
  sharpness: Positive = 1.0
  plan_answers: bool = False

  def check(self) -> None:
    """Raises for a margin that cannot be kept."""
    super().check()
    refuse_margin(self)
    refuse_unplanned(self)


class DpSgd(PrivateMethod):
  """Clips each person's gradient and adds noise to every sum."""

  name = "dp_sgd"
  protects: Literal["record"] = "record"
  relation = accounting.Relation.ADD_OR_REMOVE_ONE
  needs: frozenset[str] = frozenset()
  scales: frozenset[str] = frozenset({"disk", "devices"})
  settings: type[DpSgdSettings] = DpSgdSettings
  traceable = True
  reference = "Abadi et al. 2016"

  def plan(self, settings: Any, sizes: Sizes, budget: accounting.Budget | None) -> Plan:
    """Calibrates the noise for all steps."""
    refuse_unfit(self, settings, sizes, budget)
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

  def _config(self, plan: Plan, data: Population, lam: Any = None) -> training.DpSgdConfig:
    del data, lam
    config: training.DpSgdConfig = plan.config
    return config

  def _abstention(self, settings: Any) -> CounterRule | None:
    del settings
    return None

  def _protection(self, settings: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return RECORD, super()._protection(settings)[1]


class DpSgdGlobalSettings(DpSgdSettings):
  """Settings of DPSGD-Global and DPSGD-Global-Adapt.

  Attributes:
    bound: Z, which gradients should not exceed.
    adapt: whether gradients beyond Z are shortened to it and Z follows their norms; otherwise they
      are left out, and Z stays.
    quantile: share of the gradients that Z should exceed, if it adapts.
    count_noise: standard deviation of the noise on the count behind Z, in people.
  """

  bound: Positive = 10.0
  adapt: bool = True
  quantile: Probability = 0.95
  count_noise: Positive = 20.0


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

  def _config(self, plan: Plan, data: Population, lam: Any = None) -> training.DpSgdConfig:
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
