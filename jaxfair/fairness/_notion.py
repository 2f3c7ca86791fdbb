"""A fairness notion: a statistic of each person, compared between groups.

  gap_{s,a} = E[h | stratum s, group a] - E[h | stratum s]

`fairness.constraints` makes the usual ones.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness._groups import divide, group_counts, group_sums
from jaxfair.types import Array, Groups, Labels, PerPerson, Scores

Sides = Literal["absolute", "both"]


class Violations(NamedTuple):
  """How far limits are exceeded; what a Lagrangian is made of.

  Attributes:
    value: [m] differentiable, in the objective.
    measured: [m] what the multipliers follow; `value` itself, or the same of
      hard decisions, which have no gradient.
    people: [m] people behind each; 0 where there is nobody and the value is 0.
  """

  value: jax.Array
  measured: jax.Array
  people: jax.Array


class Gaps(NamedTuple):
  """Differences of each group from everybody.

  Attributes:
    gap: [S, G, d] with a sign; 0 where there is nobody.
    people: [S, G] people.
  """

  gap: jax.Array
  people: jax.Array


@dataclasses.dataclass(frozen=True)
class Notion:
  """A fairness notion; make one with the functions of `constraints`.

  Attributes:
    name: in tables.
    num_groups: G.
    num_strata: S; people of one stratum are compared with each other.
    statistic: h, `(scores, y) -> [n, d]`, differentiable.
    decision: the same of hard decisions, for `measured`.
    stratum: `y -> [n]` stratum ids; an id outside 0..S-1 takes no part.
    bound: B, the largest possible |h|.
    sides: "both" has gap and -gap, each with a multiplier of its own, so
      that a multiplier shrinks when a gap changes its sign; "absolute" has
      one violation |gap| for each group, as the paper does.
    unmix: rows of a [G, G] matrix that turns sums by reported group into
      sums by group (`corrected`); None if groups are what they say.
  """

  name: str
  num_groups: int
  num_strata: int
  statistic: Callable[[Any, Any], jax.Array]
  decision: Callable[[Any, Any], jax.Array]
  stratum: Callable[[Any], jax.Array]
  bound: float = 1.0
  sides: Sides = "both"
  unmix: tuple[tuple[float, ...], ...] | None = None

  def __post_init__(self) -> None:
    checks.integer("num_groups", self.num_groups, low=1)
    checks.one_of("sides", self.sides, ("absolute", "both"))

  def __call__(
    self, scores: Scores, y: Labels, group: Groups, weights: PerPerson | None = None
  ) -> Violations:
    """Violations on these people.

    Args:
      scores: [n, C] logits.
      y: [n] class ids.
      group: [n] group ids; one outside 0..G-1 belongs to no group.
      weights: [n] weights, e.g. 0 for rows that take no part; None: 1 each.

    Returns:
      m = S G d violations with "absolute" sides, twice as many with both.
    """
    soft = self.soft(scores, y, group, weights)
    return soft._replace(measured=self.hard(scores, y, group, weights).measured)

  def soft(
    self, scores: Scores, y: Labels, group: Groups, weights: PerPerson | None = None
  ) -> Violations:
    """Differentiable violations alone, for those who need no decisions."""
    gaps = self.gaps(self.statistic(scores, y), y, group, weights)
    return self._sided(gaps)

  def hard(
    self, scores: Scores, y: Labels, group: Groups, weights: PerPerson | None = None
  ) -> Violations:
    """Violations of hard decisions alone, for those who take no gradient."""
    gaps = self.gaps(self.decision(scores, y), y, group, weights)
    return self._sided(jax.lax.stop_gradient(gaps))

  def gaps(self, values: Array, y: Labels, group: Groups, weights: PerPerson | None = None) -> Gaps:
    """Differences of the values' means, group by group in every stratum."""
    stratum, group = self.stratum(y), jnp.asarray(group)
    total = self.num_strata * self.num_groups
    known = (stratum >= 0) & (stratum < self.num_strata)
    known &= (group >= 0) & (group < self.num_groups)
    cell = jnp.where(known, stratum * self.num_groups + group, total)
    shape = (self.num_strata, self.num_groups)
    sums = group_sums(values, cell, total, weights).reshape(*shape, -1)
    count = group_counts(cell, total, weights).reshape(shape)
    if self.unmix is not None:
      unmix = np.array(self.unmix, np.float32)
      sums = jnp.einsum("ab,sbd->sad", unmix, sums, precision="highest")
      count = jnp.einsum("ab,sb->sa", unmix, count, precision="highest")
    present = count > 0
    everybody = divide(jnp.sum(sums, axis=1), jnp.sum(count, axis=1)[:, None])
    mean = divide(sums, jnp.where(present, count, 0)[..., None])
    gap = jnp.where(present[..., None], mean - everybody[:, None], 0.0)
    return Gaps(gap, jnp.where(present, count, 0))

  def largest(self, scores: Scores, y: Labels, group: Groups) -> jax.Array:
    """The largest |gap| of hard decisions: the alpha the model has here."""
    gaps = self.gaps(self.decision(scores, y), y, group)
    return jnp.max(jnp.abs(gaps.gap))

  def _sided(self, gaps: Gaps) -> Violations:
    people = jnp.broadcast_to(gaps.people[..., None], gaps.gap.shape).ravel()
    flat = gaps.gap.ravel()
    if self.sides == "absolute":
      value = jnp.abs(flat)
    else:
      value = jnp.concatenate([flat, -flat])
      people = jnp.tile(people, 2)
    return Violations(value, value, people)
