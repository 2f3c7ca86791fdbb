"""Remedies: fair where they promise it, charged for what they release."""

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, decisions
from jaxfair.accounting import _guarantee
from jaxfair.decisions import _remedies, _theory
from jaxfair.privacy import exact

KEY = jax.random.key(5)
RNG = np.random.default_rng(0)
COUNTS = np.ceil(RNG.lognormal(5, 1.2, 200))
WEIGHTS = RNG.uniform(0.7, 1.5, 200)
TOTAL = float(WEIGHTS @ COUNTS)
PROBLEM = decisions.allotment(WEIGHTS)
EPSILON = 0.1


def outputs(lower_total=0.9 * TOTAL):
  return decisions.output_perturbation(
    weights=WEIGHTS, max_weight=1.5, lower_total=lower_total, epsilon=EPSILON
  )


def private(epsilon=EPSILON):
  return _remedies.linear_proxy_private(
    weights=WEIGHTS, max_weight=1.5, lower_total=0.9 * TOTAL, epsilon=epsilon
  )


@pytest.mark.slow
@pytest.mark.parametrize(
  "mechanism",
  [decisions.linear_proxy(weights=WEIGHTS, total=TOTAL, epsilon=EPSILON), outputs()],
  ids=["public total", "outputs"],
)
def test_alpha_cannot_be_told_from_0(mechanism):
  """By plain simulation; `benchmarks/decisions.py` does it at 10^6 draws."""
  found = decisions.simulate_mechanism(
    mechanism, PROBLEM, COUNTS, draws=20_000, key=KEY, control=False
  )
  # 200 biases at once: false alarms below 1e-6.
  low, high = found.alpha_interval(level=1 - 1e-6)
  assert low == 0.0
  assert high < 0.2 * found.error.max()


@pytest.mark.slow
def test_without_a_remedy_alpha_is_told_from_0():
  release = decisions.LaplaceRelease.for_epsilon(EPSILON)

  def clipped(counts):
    return PROBLEM(decisions.non_negative(counts))

  found = decisions.simulate(clipped, COUNTS, release=release, draws=20_000, key=KEY)
  assert found.alpha_interval(level=1 - 1e-6)[0] > 0


@pytest.mark.slow
def test_a_private_total_bends_every_share_alike():
  mechanism = private()
  scale = mechanism.release.releases[1].scale
  shares = WEIGHTS * COUNTS / TOTAL
  mean = _theory.floored_inverse_mean(TOTAL, scale=scale, floor=0.9 * TOTAL)
  exact = shares * (TOTAL * mean - 1)
  expected = 2 * (scale / TOTAL) ** 2 * shares
  np.testing.assert_allclose(exact, expected, rtol=1e-4)
  found = decisions.simulate_mechanism(mechanism, PROBLEM, COUNTS, draws=20_000, key=KEY)
  assert np.all(np.abs(found.bias - exact) <= 6 * found.standard_error)


def test_what_is_charged_is_the_epsilon_that_was_asked_for(tmp_path):
  path = tmp_path / "ledger.jsonl"
  relation = accounting.Relation.ADD_OR_REMOVE_ONE
  with accounting.Ledger.create(path, data="toy", relation=relation) as ledger:
    ledger.charge(private().event, id="proxy")
    np.testing.assert_allclose(ledger.epsilon(0.0), EPSILON, rtol=1e-12)
    ledger.charge(outputs().event, id="outputs")
    np.testing.assert_allclose(ledger.epsilon(0.0), 2 * EPSILON, rtol=1e-12)


def test_output_perturbation_pays_in_error():
  # The mean of |Laplace noise| is its scale.
  by_counts = np.mean(WEIGHTS / TOTAL / EPSILON)
  assert outputs().release.scale > 2 * by_counts


def test_shares_of_a_total_below_its_bound_are_taken_of_the_bound():
  # One child less in any place, for totals around the bound: what is released
  # moves by no more than the noise is scaled to.
  rng = np.random.default_rng(3)
  lower, worst = 12.0, 0.0
  for _ in range(300):
    counts = rng.integers(0, 7, 4).astype(float)
    weights = rng.uniform(0.2, 1.5, 4)
    mechanism = decisions.output_perturbation(
      weights=weights, max_weight=1.5, lower_total=lower, epsilon=1.0
    )
    for place in np.flatnonzero(counts):
      less = counts - (np.arange(4) == place)
      moved = np.abs(mechanism.query(counts) - mechanism.query(less)).sum()
      worst = max(worst, float(moved) / mechanism.release.sensitivity)
  assert 0.5 < worst <= 1 + 1e-6


def test_cost_of_privacy_by_hand():
  cost = _remedies.cost_of_privacy([-0.1, 0.3, -0.2, 0.0], budget=1000.0)
  assert cost == pytest.approx(300.0)


def test_counts_are_published_once_and_charged_first(tmp_path):
  path = tmp_path / "ledger.jsonl"
  counts = np.arange(2000)
  ledger = accounting.Ledger.create(
    path, data="toy", relation=accounting.Relation.ADD_OR_REMOVE_ONE, budget=(1.0, 0.0)
  )
  with ledger:
    noisy = decisions.release_counts(counts, epsilon=0.5, ledger=ledger, id="counts 2019")
    assert ledger.epsilon() == pytest.approx(0.5)
    with pytest.raises(checks.ArgumentError, match="was published before"):
      decisions.release_counts(counts, epsilon=0.5, ledger=ledger, id="counts 2019")
    with pytest.raises(_guarantee.BudgetError):
      decisions.release_counts(counts, epsilon=0.6, ledger=ledger, id="more")
  assert noisy.dtype == np.int64
  q = np.exp(-0.5)  # variance 2 q / (1 - q)^2 of the discrete law
  spread = np.sqrt(2 * q) / (1 - q)
  assert abs((noisy - counts).mean()) < 6 * spread / np.sqrt(2000)


def test_counts_cost_twice_for_a_person_replaced(tmp_path):
  """One count falls by one and another rises: the same noise hides half."""
  with accounting.Ledger.create(
    tmp_path / "ledger.jsonl",
    data="toy",
    budget=(1.0, 0.0),
    relation=accounting.Relation.REPLACE_ONE,
  ) as ledger:
    decisions.release_counts([3, 4], epsilon=0.5, ledger=ledger, id="counts")
    assert ledger.epsilon() == pytest.approx(1.0)


def test_counts_of_a_larger_sensitivity_have_more_noise(tmp_path):
  """A person in four counts moves them by four, for the same epsilon."""
  with accounting.Ledger.create(
    tmp_path / "ledger.jsonl", data="toy", relation=accounting.Relation.ADD_OR_REMOVE_ONE
  ) as ledger:
    noisy = decisions.release_counts(
      np.zeros(2000, int),
      epsilon=0.5,
      sensitivity=4,
      ledger=ledger,
      id="visits",
      source=exact.seeded(0),
    )
    assert ledger.epsilon(0.0) == pytest.approx(0.5)
  # |noise| of scale 8 is about 8 on average, with a deviation of about 8.
  assert abs(np.abs(noisy).mean() - 8) < 6 * 8 / np.sqrt(2000)


def test_gaussian_noise_is_charged_by_the_sensitivity():
  release = decisions.GaussianRelease(6.0, sensitivity=3.0)
  assert release.event == accounting.Gaussian(2.0)


@pytest.mark.parametrize(
  ("call", "told"),
  [
    (lambda: decisions.linear_proxy(weights=WEIGHTS, total=0.0, epsilon=1.0), "total=0"),
    (
      lambda: _remedies.linear_proxy_private(
        weights=WEIGHTS, max_weight=1.0, lower_total=1.0, epsilon=1.0
      ),
      "max_weight=1",
    ),
    (
      lambda: decisions.output_perturbation(
        weights=WEIGHTS, max_weight=1.5, lower_total=1.0, epsilon=-1.0
      ),
      "epsilon=-1",
    ),
    (
      lambda: decisions.output_perturbation(
        weights=[-2.0, 1.0], max_weight=1.5, lower_total=1.0, epsilon=1.0
      ),
      "weights",
    ),
    (
      lambda: _remedies.linear_proxy_private(
        weights=[-20.0, 1.0], max_weight=1.0, lower_total=1.0, epsilon=1.0
      ),
      "weights",
    ),
    (lambda: _remedies.cost_of_privacy([0.1], budget=0.0), "budget=0"),
    (lambda: decisions.release_counts([1.5], epsilon=1.0, ledger=None, id="x"), "whole people"),
  ],
)
def test_refused(call, told):
  with pytest.raises(checks.ArgumentError, match=told):
    call()
