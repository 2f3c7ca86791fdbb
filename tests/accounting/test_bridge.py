import logging
import math
import subprocess
import sys

import numpy as np
import pytest

from jaxfair.accounting import Relation, _bridge
from jaxfair.accounting import _events as ev
from jaxfair.accounting._bridge import composed_pld, pld_epsilon, rdp_curve, to_dp_event, unit_pld
from jaxfair.accounting._gaussian import gaussian_epsilon
from jaxfair.accounting._rdp import DEFAULT_ORDERS
from jaxfair.accounting._truncation import max_batch_for
from jaxfair.accounting._units import NotCovered, units

ADD = Relation.ADD_OR_REMOVE_ONE
ORDERS = DEFAULT_ORDERS


def exact_rdp(q, sigma, order):
  """Renyi divergence of the sampled Gaussian at an integer order."""
  import mpmath as mp

  with mp.workdps(50):
    q, sigma = mp.mpf(q), mp.mpf(sigma)
    terms = (
      mp.binomial(order, i) * q**i * (1 - q) ** (order - i) * mp.exp((i * i - i) / (2 * sigma**2))
      for i in range(order + 1)
    )
    return mp.log(mp.fsum(terms)) / (order - 1)


@pytest.mark.slow
@pytest.mark.parametrize("q", [1e-9, 1e-6, 1e-3, 0.3])
@pytest.mark.parametrize("sigma", [0.5, 2.0, 100.0])
def test_rdp_is_never_below_fifty_digits(q, sigma):
  curve = dict(zip(ORDERS, rdp_curve(ev.DpSgd(sigma, q, 1), ORDERS, ADD), strict=True))
  for order in (2, 3, 17, 63, 256):
    exact = exact_rdp(q, sigma, order)
    assert curve[float(order)] >= exact
    assert curve[float(order)] == pytest.approx(float(exact), rel=1e-13, abs=1e-14)


@pytest.mark.parametrize(
  "event",
  [
    ev.Gaussian(2.0),
    ev.Laplace(2.0),
    ev.DpSgd(1.0, 0.01, 7),
    ev.ZCdp(0.3),
    ev.Composed((ev.Gaussian(1.0), ev.Repeated(ev.Laplace(4.0), 3))),
    ev.RepeatAndSelect(ev.Gaussian(3.0), 5.0),
    ev.RepeatAndSelect(ev.Gaussian(3.0), 5.0, None),
  ],
)
def test_rdp_agrees_with_dp_accounting(event):
  from dp_accounting import rdp

  theirs = rdp.RdpAccountant().compose(to_dp_event(event)).rdp
  ours = rdp_curve(event, ORDERS, ADD)
  np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13)
  assert np.all(ours >= theirs)


def test_pure_dp_is_bounded_by_randomized_response():
  import dp_accounting
  from dp_accounting import rdp

  pure = rdp_curve(ev.PureDp(1.0), ORDERS, ADD)
  laplace = rdp_curve(ev.Laplace(1.0), ORDERS, ADD)
  assert np.all(laplace <= pure)
  assert np.all(pure <= 1.0 + 1e-12)
  response = rdp.RdpAccountant(
    neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
  ).compose(to_dp_event(ev.RandomizedResponse(1.0, 2)))
  np.testing.assert_allclose(pure, response.rdp, rtol=1e-12)
  assert np.all(rdp_curve(ev.PureDp(0.0), ORDERS, ADD) == 0)


def test_tabulated_rdp_uses_the_next_listed_order():
  event = ev.Rdp((2.0, 4.0), (0.1, 0.3))
  found = rdp_curve(event, (1.5, 2.0, 3.0, 4.0, 5.0), ADD)
  assert found.tolist() == [0.1, 0.1, 0.3, 0.3, math.inf]


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ATTRIBUTE])
def test_rdp_refuses_poisson_batches_under_substitution(relation):
  with pytest.raises(NotCovered, match="accountant='pld'"):
    rdp_curve(ev.DpSgd(1.0, 0.1, 1), ORDERS, relation)


def test_events_without_words_are_refused():
  for event in (ev.Rdp((2.0,), (1.0,)), ev.PureDp(1.0), ev.ApproxDp(1.0, 0.1)):
    with pytest.raises(NotCovered, match=event.kind):
      to_dp_event(event)
  with pytest.raises(NotCovered, match="zcdp"):
    unit_pld(ev.ZCdp(1.0), ADD, 0)


def test_noise_of_plain_mechanisms_is_relative_to_the_relation():
  """dp-accounting doubles it for PLD and forgets to for RDP; we do neither."""
  for relation in Relation:
    counted = units([ev.Gaussian(2.0)], relation)
    exact = gaussian_epsilon(sigma=2.0, delta=1e-5)
    assert pld_epsilon(counted, 1e-5, relation) == pytest.approx(exact, rel=1e-4)
    curve = rdp_curve(ev.Gaussian(2.0), ORDERS, relation)
    np.testing.assert_allclose(curve, np.array(ORDERS) / 8, rtol=1e-12)


@pytest.mark.slow
def test_substituting_a_clipped_person_moves_the_sum_twice_as_far():
  counted = units([ev.DpSgd(2.0, 1.0, 1)], Relation.REPLACE_ONE)
  twice = gaussian_epsilon(sigma=1.0, delta=1e-5)
  for relation in (Relation.REPLACE_ONE, Relation.ATTRIBUTE):
    found = pld_epsilon(counted, 1e-5, relation)
    assert found == pytest.approx(twice, rel=1e-4)
  for relation in (ADD, Relation.ZERO_OUT):
    found = pld_epsilon(counted, 1e-5, relation)
    assert found == pytest.approx(gaussian_epsilon(sigma=2.0, delta=1e-5), rel=1e-4)


def test_repeated_responses_are_composed():
  counted = units([ev.RandomizedResponse(math.log(3), 2, 10)], Relation.ATTRIBUTE)
  found = pld_epsilon(counted, 1e-9, Relation.ATTRIBUTE)
  assert found == pytest.approx(10 * math.log(3), rel=1e-3)
  assert found >= 10.97


@pytest.mark.parametrize(
  ("sigma", "steps"), [(3.0, 10), (30.0, 1000), (100.0, 10**4), (300.0, 10**5)]
)
@pytest.mark.parametrize("delta", [1e-5, 1e-8, 1e-10, 1e-12])
def test_rounding_of_convolutions_is_covered(sigma, steps, delta):
  """Sampling rate 1 has an exact answer; dp-accounting goes below it.

  At 100,000 steps and delta 1e-12 it is 2.7% too low.
  """
  counted = ((ev.DpSgd(sigma, 1.0, 1), steps),)
  exact = gaussian_epsilon(sigma=sigma / math.sqrt(steps), delta=delta)
  assert pld_epsilon(counted, delta, ADD) >= exact * (1 - 1e-9)


def test_what_pld_cannot_resolve_is_infinite_not_wrong():
  tiny_delta = units([ev.DpSgd(1.0, 0.1, 10**5)], ADD)
  assert pld_epsilon(tiny_delta, 1e-11, ADD) == math.inf
  no_noise = units([ev.DpSgd(0.05, 0.1, 10)], ADD)
  assert pld_epsilon(no_noise, 1e-5, ADD) == math.inf
  huge = units([ev.DpSgd(0.5, 1.0, 1000)], ADD)
  assert pld_epsilon(huge, 1e-5, ADD) == math.inf


def test_many_steps_are_composed_quickly_and_to_the_same_bits(monkeypatch):
  def epsilon(steps):
    composed_pld.cache_clear()
    return composed_pld(((ev.DpSgd(2.0, 1e-5, 1), steps),), ADD, 0).get_epsilon_for_delta(1e-6)

  found = epsilon(2000)
  assert epsilon(10**8) > found  # an exact power of so many steps would take an hour
  monkeypatch.setattr(_bridge, "_Times", int)
  assert epsilon(2000) == found


@pytest.mark.slow
def test_a_wider_grid_is_still_an_upper_bound():
  counted = units([ev.DpSgd(1.0, 0.02, 200)], ADD)
  fine = pld_epsilon(counted, 1e-5, ADD)
  wide = pld_epsilon(counted, 1e-5, ADD, 1e-3)
  assert fine * (1 - 1e-6) <= wide <= fine * 1.001


@pytest.mark.slow
def test_small_overflow_is_paid_from_delta_and_large_exactly():
  n, q, steps, delta = 2000, 0.05, 50, 1e-5
  plain = pld_epsilon(units([ev.DpSgd(6.0, q, steps)], ADD), delta, ADD)
  small = max_batch_for(dataset_size=n, sampling_rate=q, steps=steps, delta_share=0.005 * delta)
  event = ev.DpSgd(6.0, q, steps, n, small)
  found = pld_epsilon(units([event], ADD), delta, ADD)
  assert plain < found < plain * 1.001

  from dp_accounting import pld

  event = ev.DpSgd(6.0, q, steps, n, 105)
  found = pld_epsilon(units([event], ADD), delta, ADD)
  theirs = max(
    pld.PLDAccountant().compose(to_dp_event(event, grown=grown)).get_epsilon(delta)
    for grown in (0, 1)
  )
  assert found == pytest.approx(theirs, rel=1e-6)
  assert found > plain * 1.001


@pytest.mark.slow
def test_one_more_person_is_counted_where_neighbors_differ_in_size():
  event = ev.DpSgd(8.0, 0.3, 5, 20, 8)
  counted = units([event], ADD)
  grown = [composed_pld(counted, ADD, extra).get_epsilon_for_delta(1e-5) for extra in (0, 1)]
  assert grown[0] != grown[1]
  assert pld_epsilon(counted, 1e-5, ADD) == pytest.approx(max(grown), rel=1e-9)
  fixed = pld_epsilon(counted, 1e-5, Relation.ZERO_OUT)
  assert fixed == pytest.approx(grown[0], rel=1e-9)


@pytest.mark.slow
def test_dp_accounting_is_loaded_on_first_use_only():
  code = (
    "import sys, jaxfair.accounting as acc\n"
    "acc.gaussian_sigma(epsilon=1.0, delta=1e-5)\n"
    "assert 'dp_accounting' not in sys.modules\n"
  )
  subprocess.run([sys.executable, "-c", code], check=True)


def test_curves_are_shared_and_cannot_be_changed():
  curve = rdp_curve(ev.Gaussian(1.0), ORDERS, ADD)
  assert rdp_curve(ev.Gaussian(1.0), ORDERS, ADD) is curve
  with pytest.raises(ValueError, match="read-only"):
    curve[0] = 0.0


def test_orders_that_are_left_out_are_not_talked_about(capfd):
  logger = logging.getLogger("absl")
  before = logger.level
  rdp_curve(ev.DpSgd(2.0, 0.51, 1), ORDERS, ADD)
  assert capfd.readouterr().err == ""
  assert logger.level == before
