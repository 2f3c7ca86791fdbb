"""FairPATE's query phase over thousands of settings, as one program."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.fairness._counter import CounterRule, Guard
from jaxfair.fairness._disparity import DisparityKind, demographic_disparity
from jaxfair.pate import _aggregation
from jaxfair.pate._fair import CHOICES, Choice, Feed, Outcome, QueryBudget, answer_in_order
from jaxfair.privacy._normal import normal
from jaxfair.training import _ensembles
from jaxfair.types import Array, GroupsLike, Key, Keys, PyTree, VotesLike

# Settings and seeds side by side in a block: its state stays in the cache.
LANES = 512


class FairQuerySettings(NamedTuple):
  """Settings of `fair_gnmax`; each a number or [S] numbers."""

  threshold: Array
  sigma_threshold: Array
  sigma_answer: Array
  max_gap: Array
  min_count: Array
  max_rho: Any = math.inf


class FairGrid(NamedTuple):
  """The outcomes of the queries, for S settings and R seeds.

  Attributes:
    outcomes: [S, R, 5] how many queries had each `Outcome`.
    gap: [S, R] largest disparity of what was answered; NaN where a group
      has no answer.
    spent: [S, R] zCDP of the tests and argmaxes that happened. It depends on the
      votes: what may be published is the budget, `max_rho`.
    counters: [S, R, G, C] answers by group and class.
  """

  outcomes: jax.Array
  gap: jax.Array
  spent: jax.Array
  counters: jax.Array

  @property
  def answered(self) -> jax.Array:
    """[S, R] number of labels released."""
    return self.outcomes[..., Outcome.ANSWERED]


def fair_query_grid(
  counts: VotesLike,
  groups: GroupsLike,
  settings: FairQuerySettings,
  *,
  num_groups: int,
  keys: Keys,
  disparity: DisparityKind = "rest",
  guard: Guard = "table",
  choice: Choice = "any",
) -> FairGrid:
  """Runs the query phase for every setting and seed.

  Args:
    counts: [n, C] votes per class.
    groups: [n] public group ids of the queries.
    settings: S of them.
    num_groups: G.
    keys: [R] one per seed. Its noise is real, and the same for all settings
      up to its scale, so that settings are compared on common noise.
    disparity: as in `fair_gnmax`.
    guard: as in `fair_gnmax`.
    choice: as in `fair_gnmax`.

  Returns:
    Numbers by setting and seed.

  Privacy:
    For studies on votes one may look at. Choosing settings by the result on
    private votes is not covered by any setting's epsilon.
  """
  table = _aggregation.as_counts(counts)
  checks.key("keys", keys)
  checks.require(keys.ndim == 1, "keys must be a vector, one key per seed")
  checks.one_of("choice", choice, CHOICES)
  checks.integer("num_groups", num_groups, low=1)
  checks.same_length(counts=table, groups=groups)
  checks.ids("groups", groups, num_groups)
  flat = _stacked(settings)
  CounterRule(flat.max_gap, flat.min_count, disparity, guard).check()
  size = len(flat.threshold)
  block = max(1, min(size, LANES // keys.shape[0]))
  blocks = -(-size // block)
  padded = np.minimum(np.arange(blocks * block), size - 1)
  members = FairQuerySettings(*(a[padded].reshape(blocks, block) for a in flat))
  found = _ensembles.map_members(
    _Block(num_groups, disparity, guard, choice),
    members,
    (table, jnp.asarray(groups, jnp.int32), keys),
    chunk=1,
  )
  return jax.tree.map(lambda a: a.reshape(blocks * block, *a.shape[2:])[:size], found)


def _stacked(settings: FairQuerySettings) -> FairQuerySettings:
  """[S] float32 arrays, after checking them."""
  for name in ("threshold", "max_gap", "min_count"):
    checks.number(name, getattr(settings, name))
  for name in ("sigma_threshold", "sigma_answer"):
    checks.positive(name, getattr(settings, name))
  QueryBudget.of(1.0, 1.0, settings.max_rho)  # inside the program it is traced
  shapes = {np.shape(value) for value in settings} - {()}
  checks.require(
    len(shapes) <= 1 and all(len(shape) == 1 for shape in shapes),
    f"settings have shapes {sorted(shapes)}; pass numbers, or lists of one length",
  )
  size = shapes.pop() if shapes else (1,)
  return FairQuerySettings(*(np.broadcast_to(np.asarray(v, np.float32), size) for v in settings))


@dataclasses.dataclass(frozen=True)
class _Block:
  """Some settings, all seeds: lanes [settings, seeds] behind the queries."""

  num_groups: int
  disparity: DisparityKind
  guard: Guard
  choice: Choice

  def __call__(self, own: FairQuerySettings, common: PyTree) -> FairGrid:
    counts, groups, keys = common
    own = FairQuerySettings(*(a[:, None] for a in own))
    feed = self._feed(own, counts, groups, keys)
    rule = CounterRule(own.max_gap, own.min_count, self.disparity, self.guard)
    budget = QueryBudget.of(own.sigma_threshold, own.sigma_answer, own.max_rho)
    found = answer_in_order(feed, rule, budget, self.num_groups, counts.shape[1])
    kinds = jnp.arange(len(Outcome), dtype=jnp.int8)
    outcomes = jnp.stack([jnp.sum(found.outcome == kind, axis=0) for kind in kinds], axis=-1)
    spent = jnp.sum(found.tested, axis=0) * budget.test
    spent += jnp.sum(found.chosen, axis=0) * budget.answer
    counters = jnp.moveaxis(found.counters, (0, 1), (-2, -1))
    disparity = functools.partial(demographic_disparity, notion=self.disparity)
    gaps = jnp.max(jax.vmap(jax.vmap(disparity))(counters), axis=(-2, -1))
    return FairGrid(outcomes, gaps, spent, counters)

  def _feed(self, own: FairQuerySettings, counts: jax.Array, groups: jax.Array, keys: Keys) -> Feed:
    """The noise of every seed, scaled for every setting.

    The same draws as those of `fair_gnmax` with the seed's key.
    """
    size, num_classes = counts.shape

    def draw(key: Key) -> tuple[jax.Array, jax.Array]:
      key_test, key_noise, _ = jax.random.split(key, 3)
      return normal(key_test, (size,)), normal(key_noise, (size, num_classes))

    test, noise = jax.vmap(draw, out_axes=-1)(keys)
    largest = jnp.max(counts, axis=1)[:, None, None]
    confident = largest + own.sigma_threshold * test[:, None] >= own.threshold
    noisy = counts[:, :, None, None] + own.sigma_answer * noise[:, :, None]
    if self.choice == "any":
      winner = jnp.argmax(noisy, axis=1).astype(jnp.int32)
    else:
      order = jnp.argsort(-noisy, axis=1)
      winner = jnp.argsort(order, axis=1).astype(jnp.int32)
    return Feed(groups, confident, winner)
