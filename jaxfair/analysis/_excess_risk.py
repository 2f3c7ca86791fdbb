"""Excess risk: what private training adds to the loss of every group."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxfair import checks, models, tree
from jaxfair.analysis._by_group import ByGroup, mean_by_group
from jaxfair.analysis._curvature import check_people
from jaxfair.fairness._intervals import Interval, seed_interval
from jaxfair.types import Examples, Model, Number, Params, PerExampleLoss


class RiskIntervals(NamedTuple):
  """Excess risks of one loss, with intervals over private trainings.

  Attributes:
    group: [G] interval of R_a.
    population: interval of R.
    gap: [G] interval of xi_a = |R_a - R|, from the paired differences.
    per_training: the excess of each training: [S, G] and [S].
  """

  group: Interval
  population: Interval
  gap: Interval
  per_training: ByGroup


class NonPrivateExcessRisk(NamedTuple):
  """Excess risks in loss and in errors. Not for release.

  Attributes:
    loss: of the loss that was trained with.
    zero_one: of the 0/1 loss: errors added; None for real targets.
  """

  loss: RiskIntervals
  zero_one: RiskIntervals | None


def excess_risk(
  model: Model,
  loss: PerExampleLoss,
  private: Params,
  optimum: Params,
  examples: Examples,
  *,
  num_groups: int,
  level: float = 0.95,
) -> NonPrivateExcessRisk:
  """What privacy costs each group, with intervals over private trainings.

  R_a = E[L(theta~; D_a)] - L(theta*; D_a),  xi_a = |R_a - R|

  Args:
    model: the model of all these parameters.
    loss: `(logits, y) -> [n]` losses.
    private: S private trainings' parameters, stacked along a leading axis, as
      `training.fit_many` returns them.
    optimum: the non-private parameters; or S of them, stacked along a leading axis, to
      compare training by training.
    examples: the people whose loss is measured.
    num_groups: static number of groups G.
    level: coverage of the intervals.

  Returns:
    Estimates with Student's t intervals over the S trainings. The gap's
    interval is that of the paired difference R_a - R, folded at 0. All of them are
    differentiable by `private`, `optimum` and the features; inside a program they are
    JAX arrays.

  Assumptions:
    The trainings are independent given the optimum. Optimum and people are
    taken as given: their own randomness is in the interval only if `optimum`
    is stacked.

  Reference:
    Thesis chapter 3, (3.1) and (3.2).
  """
  check_people(examples, num_groups)
  if not _stacked_alike(private, optimum):
    optimum = tree.stack([optimum])
  integers = jnp.issubdtype(jnp.result_type(examples.y), jnp.integer)
  losses = (loss, models.zero_one) if integers else (loss,)
  with_noise, without = (
    _risks(model, losses, stacked, examples, num_groups) for stacked in (private, optimum)
  )
  parts = [
    _intervals(tree.subtract(*pair), level) for pair in zip(with_noise, without, strict=True)
  ]
  return NonPrivateExcessRisk(parts[0], parts[1] if integers else None)


def predicted_excess(trace: ByGroup, *, sigma: Number) -> ByGroup:
  """The excess risk that noise on the optimum causes, to second order.

  R_a = sigma^2 / 2 Tr(H_a)

  Args:
    trace: trace of the groups' Hessians at the optimum, from `hessian_trace`.
    sigma: standard deviation of the noise on every parameter; for output
      perturbation `fit.trace.sigma`, which holds the sensitivity already.

  Reference:
    Thesis chapter 3, Theorem 3.1, for means instead of sums over the group.
    The groups' own gradients at the optimum drop out in expectation.
  """
  checks.non_negative("sigma", sigma)
  return tree.scale(0.5 * sigma * sigma, trace)


def _stacked_alike(private: Params, optimum: Params) -> bool:
  """Whether there is one optimum per training; refuses trees that differ."""
  trees: list[Any] = [jax.tree.structure(p) for p in (private, optimum)]
  checks.require(
    trees[0] == trees[1], "private and optimum have different trees; pass parameters of one model"
  )
  pairs = zip(jax.tree.leaves(private), jax.tree.leaves(optimum), strict=True)
  shapes = [(np.shape(p), np.shape(o)) for p, o in pairs]
  alike = all(p == o for p, o in shapes)
  one_axis = len({p[:1] for p, _ in shapes}) == 1 and shapes[0][0][:1] > (0,)
  checks.require(
    one_axis and (alike or all(p[1:] == o for p, o in shapes)),
    "private needs one leading axis of trainings in every leaf, over the "
    "shapes of optimum; training.fit_many(...).params has it",
  )
  return alike


@functools.partial(jax.jit, static_argnames=("model", "losses", "num_groups"))
def _risks(
  model: Model,
  losses: tuple[PerExampleLoss, ...],
  stacked: Params,
  examples: Examples,
  num_groups: int,
) -> list[ByGroup]:
  """For every loss, [S, G] and [S] mean losses of the trainings."""
  examples = jax.tree.map(jnp.asarray, examples)

  def one(params: Params) -> list[ByGroup]:
    logits = model.apply(params, examples.x)
    return [mean_by_group(loss(logits, examples.y), examples.group, num_groups) for loss in losses]

  return jax.lax.map(one, stacked, batch_size=8)


def _intervals(excess: ByGroup, level: float) -> RiskIntervals:
  interval = _traced_interval
  if checks.concrete(excess):
    excess = jax.tree.map(lambda v: np.asarray(v, np.float64), excess)
    interval = seed_interval
  apart = excess.group - excess.population[:, None]
  return RiskIntervals(
    interval(excess.group, level=level),
    interval(excess.population, level=level),
    _folded(interval(apart, level=level)),
    excess,
  )


def _traced_interval(values: jax.Array, *, level: float) -> Interval:
  """`fairness.seed_interval` within a program, where a value is NaN for all seeds or for none."""
  seeds = values.shape[0]
  mean = jnp.mean(values, axis=0)
  half = jnp.full_like(mean, jnp.nan)
  if seeds > 1:
    quantile = special.stdtrit(seeds - 1, (1 + level) / 2)
    variance = jnp.sum((values - mean) ** 2, axis=0) / (seeds - 1)
    # The root of 0 has no slope: where all seeds agree the interval is a point that stays one.
    known = jnp.where(variance > 0, variance, 1.0)
    half = jnp.where(variance > 0, quantile * jnp.sqrt(known / seeds), 0.0 * variance)
  return Interval(mean, mean - half, mean + half, level, jnp.zeros(mean.shape, jnp.int32))


def _folded(signed: Interval) -> Interval:
  """The interval of |d| from that of d: it covers whenever that one does."""
  xp: Any = np if checks.concrete(signed.estimate) else jnp
  low, high = xp.abs(signed.low), xp.abs(signed.high)
  within = (signed.low <= 0) & (signed.high >= 0)
  return signed._replace(
    estimate=xp.abs(signed.estimate),
    low=xp.where(within, 0.0, xp.minimum(low, high)),
    high=xp.maximum(low, high),
  )
