"""Private training that reads groups: clip bounds by group (DPSGD-F), and rates held together.

Both count, in every step, how many of the batch are in each group and category. The noisy counts
are released with the noisy sum of gradients and set what the next step does.
"""

import dataclasses
import math
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.types import Array, Features, Model, Number, Params, PerExampleLoss, PyTree


class Categories(NamedTuple):
  """[n] category ids from 0 on, and the number of categories."""

  ids: jax.Array
  number: int


class GroupRule(Protocol):
  """What a private step does differently for different groups.

  Attributes:
    num_groups: G.
    count_noise: standard deviation of the noise on each count, in people.
    reads_outputs: whether `categories` reads the model's outputs, which costs a forward pass.
  """

  @property
  def num_groups(self) -> int:
    """See the class."""

  @property
  def count_noise(self) -> float:
    """See the class."""

  @property
  def reads_outputs(self) -> bool:
    """See the class."""

  def begin(self, num_classes: int) -> PyTree:
    """The state before the first step."""

  def categories(self, norms: jax.Array, outputs: jax.Array | None, l2_clip: Number) -> Categories:
    """People's categories, each computed from one person and the parameters."""

  def factors(self, state: PyTree) -> jax.Array | None:
    """[G] clip bounds of the groups over `l2_clip`; None leaves one bound for all."""

  def loss(self, loss: PerExampleLoss, state: PyTree) -> PerExampleLoss:
    """The loss of people whose y is `with_groups(y, group)`."""

  def update(self, state: PyTree, counts: jax.Array) -> PyTree:
    """The next state, from [G, categories] noisy counts."""


def count_people(
  group: jax.Array, categories: Categories, mask: jax.Array, num_groups: int
) -> jax.Array:
  """[groups, categories] numbers of people; one person moves one of them by one."""
  shape, group = (num_groups, categories.number), jnp.asarray(group, jnp.int32)
  cells = group * shape[1] + categories.ids
  inside = mask & (group >= 0) & (group < shape[0])
  counts = jax.ops.segment_sum(jnp.where(inside, 1.0, 0.0), cells, shape[0] * shape[1])
  return counts.reshape(shape)


def begin(rule: GroupRule | None, model: Model, params: Params, x: Features) -> PyTree:
  """The state before the first step; None without a rule."""
  if rule is None:
    return None
  one = jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype)
  return rule.begin(jax.eval_shape(model.apply, params, one).shape[-1])


def own_bounds(
  rule: GroupRule, state: PyTree, l2_clip: jax.Array, group: jax.Array
) -> jax.Array | None:
  """[n] the clip bound of each person's group; None for one bound."""
  factors = rule.factors(state)
  return None if factors is None else l2_clip * factors[group]


def with_groups(y: Array, group: Array, num_groups: int) -> Array:
  """Class and group in one id, y G + group, which a loss can take apart.

  In int32: of 8-bit class ids the products would wrap around and come apart as other classes.
  """
  return jnp.asarray(y, jnp.int32) * num_groups + jnp.asarray(group, jnp.int32)


class _NoisyCounts:
  """What counts of people in cells cost, released together with a noisy sum.

  One person is in one cell, so the counts have sensitivity 1; with noise of standard deviation s
  and a sum of noise multiplier z the two are one Gaussian mechanism of multiplier
  (z^-2 + s^-2)^(-1/2).
  """

  num_groups: int
  count_noise: float

  def check(self) -> None:
    """Raises for settings that make no counts."""
    checks.integer("num_groups", self.num_groups, low=2)
    checks.positive("count_noise", self.count_noise)

  def joint_multiplier(self, noise_multiplier: float) -> float:
    """The multiplier of sum and counts as one mechanism."""
    checks.positive(
      "noise_multiplier",
      noise_multiplier,
      remedy="without noise on the sum no event covers the training",
    )
    return float((noise_multiplier**-2 + self.count_noise**-2) ** -0.5)

  def sum_multiplier(self, joint: float) -> float:
    """The sum's own multiplier that makes the joint one come out as asked."""
    left = joint**-2 - self.count_noise**-2
    checks.require(
      left > 0,
      f"count_noise={self.count_noise:g} alone costs more than a noise multiplier of {joint:g} "
      f"allows; use more than {joint:.4g}",
    )
    return float(math.nextafter(left**-0.5, math.inf))


@dataclasses.dataclass(frozen=True)
class GroupClip(_NoisyCounts):
  """A clip bound for each group: wider where more gradients are beyond the common one (DPSGD-F).

  C_k = C (1 + (m_k / b_k) / (m / b))

  m_k of the b_k people of group k in a batch have gradients longer than C; m and b are the sums
  over groups. Groups whose gradients are long lose less to clipping than with one bound.

  Attributes:
    num_groups: G.
    count_noise: standard deviation of the noise on each of the 2 G counts, in people.
    largest: public limit on C_k / C.

  Privacy:
    A person is counted in one of 2 G cells and adds a gradient of norm C_k at most. The bounds of
    a step are functions of the noisy counts of the step before, and the noise on the sum is scaled
    to the largest of them. Given what was released before, one person of the batch therefore moves
    (sum / max_k C_k, counts) by at most (1, 1) in the two norms, and both have Gaussian noise: one
    Gaussian mechanism (see `joint_multiplier`), once for each Poisson sample. The paper takes the
    bounds from the counts of the same batch; those of the batch before cost the same and leave
    the step a single release.

  Reference:
    Xu, Du and Wu 2020, Removing Disparate Impact of Differentially Private Stochastic Gradient
    Descent on Model Accuracy, Algorithm 2.
  """

  num_groups: int
  count_noise: float = 10.0
  largest: float = 5.0
  reads_outputs = False

  def __post_init__(self) -> None:
    self.check()
    checks.number("largest", self.largest, low=1.0)

  def begin(self, num_classes: int) -> jax.Array:
    """One bound for all groups."""
    del num_classes
    return jnp.ones(self.num_groups)

  def categories(self, norms: jax.Array, outputs: jax.Array | None, l2_clip: Number) -> Categories:
    """0 for gradients within the common bound, 1 for those beyond it."""
    del outputs
    return Categories((norms > l2_clip).astype(jnp.int32), 2)

  def factors(self, state: jax.Array) -> jax.Array:
    """[G] bounds over the common one, from 1 to `largest`."""
    return state

  def loss(self, loss: PerExampleLoss, state: jax.Array) -> PerExampleLoss:
    """The loss as it is, without the group."""
    del state
    return lambda outputs, y: loss(outputs, y // self.num_groups)

  def update(self, state: jax.Array, counts: jax.Array) -> jax.Array:
    """Bounds from the shares of gradients beyond the common one; noise may not make them odd."""
    del state
    counts = jnp.maximum(counts, 0.0)
    people, beyond = jnp.sum(counts, axis=1), counts[:, 1]
    everybody, all_beyond = jnp.sum(people), jnp.sum(beyond)
    ratio = beyond * everybody / jnp.maximum(people * all_beyond, 1.0)
    return jnp.clip(1 + ratio, 1.0, self.largest)


class ParityState(NamedTuple):
  """Running noisy counts, and multipliers of the limits on rates, each [G, C]."""

  counts: jax.Array
  upper: jax.Array
  lower: jax.Array


@dataclasses.dataclass(frozen=True)
class GroupParity(_NoisyCounts):
  """Holds the groups' rates of predictions together, by multipliers that follow noisy counts.

  l_i(theta) + sum_k force[g_i, k] / share[g_i] p_k(x_i, theta)
  force = upper - lower + weight excess,  excess = away - clip(away, -max_gap / 2, max_gap / 2)
  upper <- max(0, upper + rate (away - max_gap / 2)),  lower by -away

  away[g, k] is the share of group g that is predicted to be in class k, from a running mean of
  noisy counts, minus the middle between the largest and the smallest share of the groups; p are
  the model's soft predictions. Every person's own term is part of the gradient that is clipped,
  so no public people are needed. The term with `weight` damps the multipliers, which otherwise
  swing around the limit.

  Attributes:
    num_groups: G.
    max_gap: the largest difference between two groups' rates that the multipliers allow.
    rate: how fast multipliers grow with the excess of a group's rate.
    weight: what the excess of this step adds to them.
    count_noise: standard deviation of the noise on each of the G C counts, in people.
    memory: weight of the counts so far in their running mean.
    smallest_share: public lower limit on a group's share of the people, by which terms are divided.

  Privacy:
    A person of the batch is counted in one of G C cells (their group and predicted class) and adds
    a clipped gradient. Multipliers and shares are functions of the noisy counts of the steps
    before, so that, given what was released, one person moves (sum / C, counts) by at most (1, 1)
    in the two norms, and both have Gaussian noise: one Gaussian mechanism (see
    `joint_multiplier`), once for each Poisson sample.

  Reference:
    Cotter, Jiang and Sridharan 2019 (Two-Player Games for Efficient Non-Convex Constrained
    Optimization) for multipliers that see decisions and gradients that see probabilities.
  """

  num_groups: int
  max_gap: float = 0.0
  rate: float = 0.1
  weight: float = 3.0
  count_noise: float = 20.0
  memory: float = 0.7
  smallest_share: float = 0.05
  reads_outputs = True

  def __post_init__(self) -> None:
    self.check()
    checks.number("max_gap", self.max_gap, low=0.0, high=1.0)
    checks.positive("rate", self.rate)
    checks.non_negative("weight", self.weight)
    checks.number("memory", self.memory, low=0.0, high=1.0, open_high=True)
    checks.number("smallest_share", self.smallest_share, low=0.0, high=1.0, open_low=True)

  def begin(self, num_classes: int) -> ParityState:
    """Without counts and multipliers."""
    zero = jnp.zeros((self.num_groups, num_classes))
    return ParityState(zero, zero, zero)

  def categories(self, norms: jax.Array, outputs: jax.Array | None, l2_clip: Number) -> Categories:
    """Predicted classes."""
    del norms, l2_clip
    assert outputs is not None
    return Categories(jnp.argmax(outputs, axis=-1), outputs.shape[-1])

  def factors(self, state: ParityState) -> None:
    """One bound for all."""
    del state

  def loss(self, loss: PerExampleLoss, state: ParityState) -> PerExampleLoss:
    """The loss and the terms of the person's group."""
    away, half = self._away(state.counts), 0.5 * self.max_gap
    excess = away - jnp.clip(away, -half, half)
    force = state.upper - state.lower + self.weight * excess
    weights = force / self._shares(state.counts)[:, None]

    def total(outputs: jax.Array, y: jax.Array) -> jax.Array:
      own = weights[y % self.num_groups]
      return loss(outputs, y // self.num_groups) + jnp.sum(own * jax.nn.softmax(outputs), axis=-1)

    return total

  def update(self, state: ParityState, counts: jax.Array) -> ParityState:
    """Counts, rates and multipliers after one more step."""
    counts = self.memory * state.counts + (1 - self.memory) * counts
    away, half = self._away(counts), 0.5 * self.max_gap
    upper = jnp.maximum(state.upper + self.rate * (away - half), 0.0)
    lower = jnp.maximum(state.lower + self.rate * (-away - half), 0.0)
    return ParityState(counts, upper, lower)

  def _away(self, counts: jax.Array) -> jax.Array:
    kept = jnp.maximum(counts, 0.0)
    rates = kept / jnp.maximum(jnp.sum(kept, axis=1, keepdims=True), 1e-6)
    return rates - 0.5 * (jnp.max(rates, axis=0) + jnp.min(rates, axis=0))

  def _shares(self, counts: jax.Array) -> jax.Array:
    people = jnp.sum(jnp.maximum(counts, 0.0), axis=1)
    return jnp.maximum(people / jnp.maximum(jnp.sum(people), 1e-6), self.smallest_share)
