import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from jaxfair import checks
from jaxfair.accounting import DpSgd, Relation, composed_guarantee
from jaxfair.accounting._bridge import unit_pld
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._event_json import from_json, to_json
from jaxfair.accounting._truncation import (
  joint_max_batch,
  log_binomial_tail,
  max_batch_for,
  truncation_delta,
)

GRID = np.linspace(-14, 14, 7001)


def capped_batches(size, rate, cap):
  """Every batch of the capped sampler with its probability."""
  for sample in itertools.product((0, 1), repeat=size):
    people = [i for i, taken in enumerate(sample) if taken]
    chance = rate ** len(people) * (1 - rate) ** (size - len(people))
    kept = list(itertools.combinations(people, min(cap, len(people))))
    for batch in kept:
      yield batch, chance / len(kept)


def density(contributions, rate, cap, sigma):
  """Density on GRID of the noisy sum of one capped batch."""
  total = np.zeros_like(GRID)
  for batch, chance in capped_batches(len(contributions), rate, cap):
    mean = sum(contributions[i] for i in batch)
    total += chance * stats.norm.pdf(GRID, mean, sigma)
  return total


def hockey_stick(p, q, epsilon):
  return np.trapezoid(np.maximum(0.0, p - math.exp(epsilon) * q), GRID)


SETTINGS = [(0.9, 1, 1.5), (0.5, 2, 1.0), (0.3, 1, 2.0), (0.7, 3, 0.8)]


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "cap", "sigma"), SETTINGS)
@pytest.mark.parametrize("relation", list(Relation))
def test_loss_distribution_covers_the_sampler_exactly_enumerated(rate, cap, sigma, relation):
  """All small neighbors with contributions of -1, 0, 1; one step."""
  bound = unit_pld(DpSgd(sigma, rate, 1, 4, cap), relation, 0, 2e-3)
  plain = unit_pld(DpSgd(sigma, rate, 1), relation, 0, 2e-3)
  for others in itertools.combinations_with_replacement((-1, 0, 1), 3):
    first = density([*others, 1], rate, cap, sigma)
    second = density(
      {
        Relation.ADD_OR_REMOVE_ONE: list(others),
        Relation.ZERO_OUT: [*others, 0],
        Relation.REPLACE_ONE: [*others, -1],
        Relation.ATTRIBUTE: [*others, -1],
      }[relation],
      rate,
      cap,
      sigma,
    )
    for epsilon in (0.0, 0.3, 1.0, 2.0):
      exact = max(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))
      assert exact <= bound.get_delta_for_epsilon(epsilon) + 1e-7
      uncapped = float(plain.get_delta_for_epsilon(epsilon))
      # the cheaper bound: the plain sampler plus the chance of an overflow
      share = truncation_delta(dataset_size=3, sampling_rate=rate, max_batch=cap, steps=1)
      assert exact <= uncapped + share + 1e-7


def test_a_cap_that_is_ignored_is_under_reported():
  rate, cap, sigma, epsilon = 0.3, 1, 1.0, 2.0
  others = [-1, -1, -1]
  exact = hockey_stick(
    density([*others, 1], rate, cap, sigma), density(others, rate, cap, sigma), epsilon
  )
  plain = unit_pld(DpSgd(sigma, rate, 1), Relation.ADD_OR_REMOVE_ONE, 0, 1e-3)
  assert exact > 3 * plain.get_delta_for_epsilon(epsilon)


@pytest.mark.slow
def test_the_three_prices_are_in_order():
  n, q, steps, sigma, delta = 5000, 0.02, 300, 4.0, 1e-5
  cap = max_batch_for(dataset_size=n, sampling_rate=q, steps=steps, delta_share=0.1 * delta)
  capped = {"dataset_size": n, "sampling_rate": q, "max_batch": cap, "steps": steps}
  plain = composed_epsilon([DpSgd(sigma, q, steps)], delta=delta)
  exact = composed_epsilon([DpSgd(sigma, q, steps, n, cap)], delta=delta)
  share = truncation_delta(**capped)
  conditioned = composed_epsilon([DpSgd(sigma, q, steps)], delta=delta - share)
  assert plain < exact < conditioned
  # Total variation, which assumes nothing about the mechanism, would charge more.
  varied = (1 + math.exp(conditioned)) * steps * math.exp(log_binomial_tail(n + 1, q, cap + 1))
  assert 0 < share < varied


def test_a_well_chosen_cap_is_hardly_felt():
  n, q, steps, sigma, delta = 5000, 0.02, 300, 1.1, 1e-5
  cap = max_batch_for(dataset_size=n, sampling_rate=q, steps=steps, delta_share=1e-3 * delta)
  assert q * n < cap < q * n + 8 * math.sqrt(q * n)
  plain = composed_epsilon([DpSgd(sigma, q, steps)], delta=delta)
  capped = composed_epsilon([DpSgd(sigma, q, steps, n, cap)], delta=delta)
  assert plain < capped < plain * (1 + 2e-4)


@given(st.integers(1, 3000), st.floats(1e-4, 1.0), st.integers(1, 10**5), st.floats(-40, -1))
def test_the_cap_is_the_smallest(n, q, steps, log_share):
  share = math.exp(log_share)
  setting = {"dataset_size": n, "sampling_rate": q, "steps": steps}
  cap = max_batch_for(**setting, delta_share=share)
  assert truncation_delta(**setting, max_batch=cap) <= share
  if cap > 1:
    assert truncation_delta(**setting, max_batch=cap - 1) > share


@given(st.integers(1, 300), st.floats(1e-3, 1.0), st.integers(0, 301))
def test_tail_is_the_binomial_sum_and_not_below(n, q, m):
  exact = math.fsum(stats.binom.pmf(np.arange(m, n + 1), n, q))
  found = math.exp(log_binomial_tail(n, q, m))
  assert found >= exact * (1 - 1e-11)
  if exact > 1e-290:
    assert found == pytest.approx(exact, rel=1e-8)


def test_tails_below_the_smallest_float_are_bounded():
  import mpmath as mp

  n, q, m = 20000, 0.01, 1500
  with mp.workdps(50):
    terms = (
      mp.binomial(n, k) * mp.mpf(q) ** k * (1 - mp.mpf(q)) ** (n - k) for k in range(m, m + 200)
    )
    exact = float(mp.log(mp.fsum(terms)))
  found = log_binomial_tail(n, q, m)
  assert exact < -1000
  assert exact <= found <= exact * 0.99


def test_hand_values():
  # three others, each with chance 1/2: at least two come with chance 1/2
  assert truncation_delta(dataset_size=3, sampling_rate=0.5, max_batch=2, steps=1) == pytest.approx(
    0.5
  )
  assert truncation_delta(dataset_size=3, sampling_rate=0.5, max_batch=3, steps=2) == pytest.approx(
    0.25
  )
  assert truncation_delta(dataset_size=3, sampling_rate=1.0, max_batch=4, steps=9) == 0.0


@pytest.mark.parametrize(
  ("change", "names"),
  [
    ({"dataset_size": 0}, "dataset_size"),
    ({"sampling_rate": 0.0}, "sampling_rate"),
    ({"sampling_rate": 1.5}, "sampling_rate"),
    ({"steps": 0}, "steps"),
    ({"delta_share": 0.0}, "delta_share"),
    ({"delta_share": 1.0}, "delta_share"),
  ],
)
def test_bad_arguments_are_named(change, names):
  good = {"dataset_size": 100, "sampling_rate": 0.1, "steps": 10, "delta_share": 1e-6}
  with pytest.raises(checks.ArgumentError, match=names):
    max_batch_for(**{**good, **change})


def test_shards_sum_their_tails():
  """Hand values by SciPy; one cap of 64 m for everybody would be next to free."""
  own = {"dataset_size": 6401, "sampling_rate": 0.1, "steps": 30}
  priced = truncation_delta(**own, max_batch=35, shards=64)
  others = 101 + 2  # the largest shard, and those who move in if somebody leaves
  assert priced == pytest.approx(30 * 64 * stats.binom(others, 0.1).sf(34), rel=1e-9)
  assert truncation_delta(**own, max_batch=64 * 35) < 1e-200 * priced


def test_blocks_of_neighbors_hold_at_most_two_people_more():
  """Brute force over the ends of the blocks, for every person who may leave."""
  for n, shards in itertools.product(range(2, 24), range(1, 7)):
    ends = [s * n // shards for s in range(shards + 1)]
    for gone in range(n):
      left = [i for i in range(n) if i != gone]
      for s in range(shards):
        first, last = s * (n - 1) // shards, (s + 1) * (n - 1) // shards
        both = {*range(ends[s], ends[s + 1]), *left[first:last]} - {gone}
        assert len(both) <= -(-n // shards) + 2
        assert len(both) <= -(-(n - 1) // shards) + 2


@pytest.mark.parametrize("blocks", [1, 4, 16])
def test_joined_shards_cost_no_more(blocks):
  own = {"dataset_size": 5000, "sampling_rate": 0.05}
  priced = truncation_delta(**own, max_batch=40, shards=16, steps=1)
  cap = joint_max_batch(**own, max_batch=40, shards=16, blocks=blocks)
  others = -(-5000 // blocks) + 2
  assert blocks * stats.binom(others, 0.05).sf(cap - 1) <= priced * (1 + 1e-9)
  assert blocks * stats.binom(others, 0.05).sf(cap - 2) > priced
  assert cap == 40 if blocks == 16 else cap < 40 * 16 / blocks


def test_a_cap_for_shards_is_the_smallest_in_its_share():
  own = {"dataset_size": 6401, "sampling_rate": 0.1, "steps": 30, "shards": 64}
  cap = max_batch_for(**own, delta_share=1e-9)
  assert truncation_delta(**own, max_batch=cap) <= 1e-9
  assert truncation_delta(**own, max_batch=cap - 1) > 1e-9
  assert max_batch_for(**own | {"sampling_rate": 1.0}, delta_share=1e-9) == 101 + 3


def test_events_with_shards_are_priced_and_kept():
  event = DpSgd(1.0, 0.1, 30, 6401, 45, 64)
  assert from_json(to_json(event)) == event
  assert "shards" not in to_json(DpSgd(1.0, 0.1, 30, 6401, 900))
  overflow = truncation_delta(
    dataset_size=6401, sampling_rate=0.1, max_batch=45, steps=30, shards=64
  )
  plain = DpSgd(1.0, 0.1, 30)
  for accountant in ("pld", "rdp"):
    priced = composed_epsilon([event], delta=1e-6, accountant=accountant)
    assert priced >= composed_epsilon([plain], delta=1e-6 - overflow, accountant=accountant)
    assert priced > composed_epsilon([plain], delta=1e-6, accountant=accountant)
  with pytest.raises(checks.ArgumentError, match="batches overflow max_batch with probability"):
    composed_guarantee([DpSgd(1.0, 0.1, 30, 6401, 20, 64)], delta=1e-6)
  with pytest.raises(checks.ArgumentError, match="each shard has a cap; pass max_batch"):
    DpSgd(1.0, 0.1, 30, shards=64)
