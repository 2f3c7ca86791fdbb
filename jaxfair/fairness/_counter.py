"""The counter rule: answer only where that keeps the groups' shares close.

FairPATE's aggregator, the filter before training and abstention at inference all count
the answers to each group, m(z, k), and refuse an answer that would push a
disparity to the margin. The rule is a pure state update; a sequence is one `lax.scan`.
"""

import dataclasses
import functools
from typing import Literal, TypeAlias

import chex
import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.fairness._disparity import DISPARITY_KINDS, DisparityKind
from jaxfair.fairness._known_labels import NOTIONS, PARITY, NotionName
from jaxfair.types import Array, Number

Guard: TypeAlias = Literal["table", "own"]
GUARDS: tuple[Guard, ...] = ("table", "own")
REFUSED = -1

# Sums are of integers, exact up to MOST_ANSWERS: beside a group of millions
# float32 would lose the others. Two quotients in float32 and their difference
# are then off by less than this (four conversions, two divisions and three
# differences, by 2^-24 each at most), so a gap that is let through is below the
# margin in exact arithmetic too.
ROUNDING = 5e-7
MOST_ANSWERS = 2**31 - 1


@functools.partial(
  jax.tree_util.register_dataclass,
  data_fields=["max_gap", "min_count"],
  meta_fields=["disparity", "guard", "notion"],
)
@dataclasses.dataclass(frozen=True)
class CounterRule:
  """The rule that decides whether an answer keeps the disparity between groups within a margin.

  A group with fewer than `min_count` answers is in its cold start: it is
  always answered, and its rates are not judged. So is a group without another
  group to compare with. After that, answering group z with class k is refused if
  it would bring a disparity to `max_gap`:

  guard "own":   Gamma(z, k) itself, as in the paper. Other disparities may grow
                 past the margin meanwhile: with three groups or three classes
                 gamma does not bound them.
  guard "table": any disparity, unless a larger one exists already. Once
                 every group has left its cold start, the largest disparity
                 stays below the margin, or falls until it does: it never
                 grows beyond what the cold start left.

  With two groups and two classes both guards are the same rule, by "rest".

  Attributes:
    max_gap: gamma, 0 or above; may be traced and mapped over.
    min_count: M, answers of a group before it is judged; may be traced and mapped over.
    disparity: what Gamma is; see `demographic_disparity`. "pairwise" compares
      with the groups that have left their cold start.
    guard: see above.
    notion: notion of fairness. "demographic_parity" compares how often groups are given each class;
      "equalized_odds" does among the people of each true class; "equal_opportunity" compares how
      often they are given their own class (of two classes, class 1 alone); "accuracy_parity" how
      often anybody is. All but the first read true labels, and `min_count` is then per true class
      where those are distinguished.
  """

  max_gap: Number
  min_count: Number
  disparity: DisparityKind = "rest"
  guard: Guard = "table"
  notion: NotionName = PARITY

  def check(self) -> None:
    """Raises for impossible settings, before any work."""
    checks.non_negative("max_gap", self.max_gap)
    checks.non_negative("min_count", self.min_count)
    checks.one_of("disparity", self.disparity, DISPARITY_KINDS)
    checks.one_of("guard", self.guard, GUARDS)
    checks.one_of("notion", self.notion, tuple(NOTIONS))


def allowed_classes(counters: jax.Array, group: jax.Array, rule: CounterRule) -> jax.Array:
  """Which classes this group may be answered with next.

  Args:
    counters: [G, C, ...] answers so far. Axes behind the two are mapped over:
      seeds and settings lie side by side in memory, which a `vmap` in front
      would not give.
    group: [...] ids of the groups, or one for all.
    rule: the margin and how it is guarded.

  Returns:
    [C, ...] bools. They depend on the counters and the group alone, so they
    are known before anybody looks at a vote.
  """
  checks.require(
    rule.notion == PARITY,
    f"notion={rule.notion!r} reads true labels; use sequential_filter(..., truth=labels)",
  )
  chex.assert_shape(counters, (None, None, ...))
  sizes = jnp.sum(counters, axis=1)
  warm = sizes >= rule.min_count
  is_own = _is_group(counters, group)
  judge = _pairwise if rule.disparity == "pairwise" else _against_all
  fair, compared = judge(counters, sizes, warm, is_own, rule)
  return fair | ~(jnp.any(warm & is_own, axis=0) & compared)


def count(counters: jax.Array, group: jax.Array, label: jax.Array, given: jax.Array) -> jax.Array:
  """The counters after an answer, if it was given."""
  row = _is_group(counters, group) & given
  column = is_class(label, counters.shape[1])
  return counters + (row[:, None] & column).astype(counters.dtype)


def is_class(label: jax.Array, num_classes: int) -> jax.Array:
  """[C, ...] which class each label is; none for `REFUSED`."""
  return _places(num_classes, jnp.ndim(label)) == label


def _is_group(counters: jax.Array, group: Array | int) -> jax.Array:
  """[G, ...] which row is the group's; one id may serve all lanes."""
  lanes = counters.shape[2:]
  return _places(counters.shape[0], len(lanes)) == jnp.broadcast_to(group, lanes)


def _places(many: int, lanes: int) -> jax.Array:
  """0, 1, ... along a first axis, to be compared with ids."""
  return jnp.arange(many).reshape((many,) + (1,) * lanes)


def _own(rows: jax.Array, is_own: jax.Array) -> jax.Array:
  """The row of the group, as a sum: a look-up by lane is slow."""
  wide = is_own if rows.ndim == is_own.ndim else is_own[:, None]
  return jnp.sum(jnp.where(wide, rows, 0), axis=0)


def _against_all(
  table: jax.Array, sizes: jax.Array, warm: jax.Array, is_own: jax.Array, rule: CounterRule
) -> tuple[jax.Array, jax.Array]:
  """[C, ...] whether each class is fair by "rest" or "overall", and if judged.

  An answer (z, k) raises Gamma(z, k) and, by thinning out the other classes
  among those whom z' is compared with, Gamma(z', k') of the other groups and
  classes; every other disparity falls. By how much the latter rise does not
  depend on k, so one table serves all classes.
  """
  limit = rule.max_gap - ROUNDING
  by_class, total = jnp.sum(table, axis=0), jnp.sum(sizes, axis=0)
  own_row, own_size = _own(table, is_own), _own(sizes, is_own)
  up = (own_row + 1) / (own_size + 1)
  if rule.disparity == "rest":
    compared = total > own_size
    base = (by_class - own_row) / jnp.maximum(total - own_size, 1)
    reference, many = by_class - table, (total - sizes)[:, None]
  else:
    compared = total > 0
    base = (by_class + 1) / (total + 1)
    reference, many = by_class[None], total[None, None]
  if rule.guard == "own":
    return up - base < limit, compared
  rates = table / jnp.maximum(sizes, 1)[:, None]
  old = rates - reference / jnp.maximum(many, 1)
  new = rates - reference / (many + 1)
  worst = jnp.max(jnp.where(warm[:, None], old, -jnp.inf), axis=(0, 1))
  others = (warm & ~is_own)[:, None]
  broken = others & (new >= limit) & (new > worst)
  of_class = jnp.sum(broken, axis=0)
  elsewhere = jnp.sum(of_class, axis=0) - of_class
  return (up - base < limit) & (elsewhere == 0), compared


def _pairwise(
  table: jax.Array, sizes: jax.Array, warm: jax.Array, is_own: jax.Array, rule: CounterRule
) -> tuple[jax.Array, jax.Array]:
  """[C, ...] whether each class is fair between groups, and if judged.

  Only the rates of group z move, up for k and down for the others, so what
  counts of the other groups is the least and the largest rate of each class.
  Guard "own" looks at the sign that the answer raises. The paper's absolute
  value would refuse for good once two groups are a margin apart, even the
  answers that bring them together.
  """
  limit = rule.max_gap - ROUNDING
  others = (warm & (sizes > 0) & ~is_own)[:, None]
  rates = table / jnp.maximum(sizes, 1)[:, None]
  least = jnp.min(jnp.where(others, rates, jnp.inf), axis=0)
  most = jnp.max(jnp.where(others, rates, -jnp.inf), axis=0)
  own_row, own_size = _own(table, is_own), _own(sizes, is_own)
  up = (own_row + 1) / (own_size + 1)
  compared = jnp.any(others[:, 0], axis=0)
  if rule.guard == "own":
    return up - least < limit, compared

  def spread(rate: jax.Array) -> jax.Array:
    return jnp.maximum(most, rate) - jnp.minimum(least, rate)

  worst = jnp.max(spread(own_row / jnp.maximum(own_size, 1)), axis=0)

  def broken(new: jax.Array) -> jax.Array:
    return (new >= limit) & (new > worst)

  falls = broken(spread(own_row / (own_size + 1)))
  elsewhere = jnp.sum(falls, axis=0) - falls
  return ~broken(spread(up)) & (elsewhere == 0), compared
