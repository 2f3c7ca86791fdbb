import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import checks
from jaxfair.accounting import (
  DpSgd,
  Gaussian,
  Laplace,
  Relation,
  composed_guarantee,
  preprocessed_guarantee,
)
from jaxfair.accounting._composition import (
  composed_epsilon,
  group_privacy,
  preprocessing_factor,
  repeat_and_select_epsilon,
)
from jaxfair.accounting._dp_sgd import dp_sgd_epsilon
from jaxfair.accounting._rdp import DEFAULT_ORDERS, rdp_to_epsilon
from jaxfair.accounting._truncation import truncation_delta


def test_different_events_agree_with_dp_accounting():
  from dp_accounting import dp_event, pld, rdp

  events = [DpSgd(3.0, 0.05, 100), Gaussian(8.0), Laplace(5.0)]
  theirs = dp_event.ComposedDpEvent(
    [
      dp_event.SelfComposedDpEvent(
        dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(3.0)), 100
      ),
      dp_event.GaussianDpEvent(8.0),
      dp_event.LaplaceDpEvent(5.0),
    ]
  )
  for name, accountant in (("pld", pld.PLDAccountant()), ("rdp", rdp.RdpAccountant())):
    accountant.compose(theirs)
    for delta in (1e-4, 1e-6):
      found = composed_epsilon(events, delta=delta, accountant=name)
      assert found == pytest.approx(accountant.get_epsilon(delta), rel=1e-6)


def test_a_guarantee_says_all_of_it():
  found = composed_guarantee(
    [Gaussian(5.0)], delta=1e-5, relation=Relation.ZERO_OUT, unit="one device"
  )
  assert found.epsilon == composed_epsilon([Gaussian(5.0)], delta=1e-5)
  assert found.delta == 1e-5
  assert found.relation is Relation.ZERO_OUT
  assert "one device" in str(found)


@given(st.floats(0.0, 3.0), st.floats(-30.0, -3.0), st.integers(1, 12))
def test_group_privacy_is_the_sum_of_its_steps(epsilon, log_delta, size):
  delta = math.exp(log_delta)
  total, group_delta = group_privacy(epsilon=epsilon, delta=delta, size=size)
  steps = sum(math.exp(i * epsilon) for i in range(size)) * delta
  assert total == pytest.approx(size * epsilon)
  assert group_delta == pytest.approx(min(1.0, steps), rel=1e-9)


def test_group_privacy_holds_for_the_gaussian():
  """Three people move a sum three times as far."""
  from jaxfair.accounting._gaussian import _log_delta, gaussian_epsilon

  sigma, delta = 4.0, 1e-6
  epsilon = gaussian_epsilon(sigma=sigma, delta=delta)
  total, group_delta = group_privacy(epsilon=epsilon, delta=delta, size=3)
  exact = math.exp(_log_delta(3.0 / sigma, total))
  assert exact <= group_delta


def test_group_privacy_does_not_overflow():
  assert group_privacy(epsilon=500.0, delta=1e-5, size=50) == (25000.0, 1.0)
  assert group_privacy(epsilon=2.0, delta=0.0, size=3) == (6.0, 0.0)


@pytest.mark.parametrize(
  ("gap", "factor"),
  [
    (0.0, 2),
    (0.01, 3),
    (0.1, 3),
    (0.2, 3),
    (1 / 3, 3),
    (0.34, 4),
    (0.5, 4),
    (0.6, 5),
    (0.8, 10),
    (0.9, 20),
  ],
)
def test_preprocessing_factor_by_hand(gap, factor):
  assert preprocessing_factor(gap) == factor


def test_preprocessing_multiplies_as_the_theorem_says():
  epsilon, delta = preprocessed_guarantee(epsilon=0.5, delta=1e-6, max_gap=0.2)
  assert epsilon == 1.5
  assert delta == pytest.approx(3 * math.exp(1.5) * 1e-6)
  assert preprocessed_guarantee(epsilon=50.0, delta=1e-6, max_gap=0.8)[1] == 1.0
  assert preprocessed_guarantee(epsilon=1.0, delta=0.0, max_gap=0.0) == (2, 0)


def test_a_person_replaced_is_taken_out_and_put_in():
  replaced = {"relation": Relation.REPLACE_ONE}
  assert preprocessing_factor(0.2, **replaced) == 5
  found = preprocessed_guarantee(epsilon=0.5, delta=0.0, max_gap=0.2, **replaced)
  assert found == (2.5, 0.0)
  with pytest.raises(checks.ArgumentError, match="relation=ZERO_OUT is not supported"):
    preprocessing_factor(0.2, relation=Relation.ZERO_OUT)


def test_tuning_agrees_with_the_theorems():
  """Papernot & Steinke, Theorems 2 and 6, written out for the Gaussian."""
  orders = np.array(DEFAULT_ORDERS)
  rdp = orders / (2 * 4.0**2)
  mean, delta = 10.0, 1e-5
  constant = 2 * np.min((1 - 1 / orders) * rdp + math.log(mean) / orders)
  geometric = rdp + constant + math.log(mean) / (orders - 1)
  geometric = np.minimum.accumulate(geometric[::-1])[::-1]
  found = repeat_and_select_epsilon(Gaussian(4.0), mean_runs=mean, delta=delta)
  assert found == pytest.approx(rdp_to_epsilon(geometric, orders, delta=delta), rel=1e-9)
  # Poisson: delta-hat at epsilon-hat = ln(1 + 1/(a - 1)), minimized over b
  hats = np.log1p(1 / (orders - 1))
  b = orders[:, None]
  log_deltas = (b - 1) * (rdp[:, None] - hats + np.log1p(-1 / b)) - np.log(b)
  by_kl = 0.5 * np.log(-np.expm1(-rdp))[:, None] + 0 * hats
  delta_hats = np.exp(np.minimum(log_deltas, by_kl).min(axis=0))
  poisson = rdp + mean * delta_hats + math.log(mean) / (orders - 1)
  found = repeat_and_select_epsilon(Gaussian(4.0), mean_runs=mean, delta=delta, shape=None)
  assert found == pytest.approx(rdp_to_epsilon(poisson, orders, delta=delta), rel=1e-9)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 5.0, None])
def test_every_distribution_of_runs_has_a_price(shape):
  run = Gaussian(5.0)
  one = composed_epsilon([run], delta=1e-5)
  found = repeat_and_select_epsilon(run, mean_runs=5.0, delta=1e-5, shape=shape)
  assert one < found < 6 * one


def test_tuning_costs_more_than_one_run_and_grows_slowly():
  run = DpSgd(2.0, 0.05, 100)
  one = dp_sgd_epsilon(
    noise_multiplier=2.0, sampling_rate=0.05, steps=100, delta=1e-5, accountant="rdp"
  )
  costs = [
    repeat_and_select_epsilon(run, mean_runs=mean, delta=1e-5) for mean in (2.0, 10.0, 100.0)
  ]
  assert one < costs[0] < costs[1] < costs[2] < 10 * one


def test_tuning_pays_for_the_caps_of_all_runs():
  capped = DpSgd(2.0, 0.05, 100, 1000, 98)
  plain = DpSgd(2.0, 0.05, 100)
  share = truncation_delta(dataset_size=1000, sampling_rate=0.05, max_batch=98, steps=100)
  assert 1e-9 < share < 1e-6
  found = repeat_and_select_epsilon(capped, mean_runs=10.0, delta=1e-5)
  expected = repeat_and_select_epsilon(plain, mean_runs=10.0, delta=1e-5 - 10 * share)
  assert found == pytest.approx(expected, rel=1e-12)


def test_bad_arguments_are_named():
  with pytest.raises(checks.ArgumentError, match="size"):
    group_privacy(epsilon=1.0, delta=0.0, size=0)
  with pytest.raises(checks.ArgumentError, match="max_gap"):
    preprocessing_factor(1.0)
  with pytest.raises(checks.ArgumentError, match="mean_runs"):
    repeat_and_select_epsilon(Gaussian(1.0), mean_runs=0.5, delta=1e-5)
  with pytest.raises(checks.ArgumentError, match="delta"):
    composed_epsilon([Gaussian(1.0)], delta=-1.0)
