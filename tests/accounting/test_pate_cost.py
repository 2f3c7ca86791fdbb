import numpy as np
import pytest

from jaxfair import checks
from jaxfair.accounting import DataDependentEpsilon, pate_diagnosis, pate_events
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._pate_gnmax import gnmax_rdp
from jaxfair.accounting._pate_threshold import threshold_rdp
from jaxfair.accounting._rdp import DEFAULT_ORDERS, rdp_to_epsilon

ORDERS = np.array(DEFAULT_ORDERS)


def sample(rows=300):
  rng = np.random.default_rng(0)
  return rng.multinomial(250, rng.dirichlet(np.full(5, 0.2), size=rows))


def test_events_are_the_data_independent_charges():
  events = pate_events(sigma=40.0, num_queries=300, sigma_threshold=150.0, max_answers=120)
  rdp = ORDERS * (120 / 40**2 + 300 / (2 * 150**2))
  by_orders = rdp_to_epsilon(rdp, ORDERS, delta=1e-6)
  found = composed_epsilon(events, delta=1e-6)
  # The events are priced at the best order of all, not of a list.
  assert 0.99 * by_orders < found <= by_orders * (1 + 1e-12)
  assert pate_events(sigma=40.0, num_queries=0) == ()


def test_without_a_cap_every_query_is_charged_for_a_label():
  test = {"sigma": 40.0, "num_queries": 300, "sigma_threshold": 150.0}
  whole = pate_events(**test)
  assert whole == pate_events(**test, max_answers=300)
  assert whole == pate_events(**test, max_answers=1000)
  assert [event.count for event in whole] == [300, 300]
  assert [event.count for event in pate_events(**test, max_answers=0)] == [300]


def test_diagnosis_charges_tests_and_the_costliest_labels():
  counts = sample()
  found = pate_diagnosis(
    counts, sigma=20.0, delta=1e-6, threshold=180.0, sigma_threshold=60.0, max_answers=40
  )
  assert isinstance(found, DataDependentEpsilon)
  labels = gnmax_rdp(counts, sigma=20.0, orders=ORDERS).not_for_release
  tests = threshold_rdp(counts, threshold=180.0, sigma=60.0, orders=ORDERS)
  costliest = np.stack([sorted(column)[-40:] for column in labels.T], axis=1)
  total = costliest.sum(0) + tests.not_for_release.sum(0)
  exact = rdp_to_epsilon(total, ORDERS, delta=1e-6)
  assert found.not_for_release == pytest.approx(exact, rel=1e-12)
  everything = pate_diagnosis(counts, sigma=20.0, delta=1e-6, threshold=180.0, sigma_threshold=60.0)
  assert everything.not_for_release > found.not_for_release


@pytest.mark.parametrize("conversion", ["tight", "mironov"])
@pytest.mark.parametrize("sigma", [5.0, 40.0, 200.0])
def test_never_above_the_data_independent_epsilon(sigma, conversion):
  counts = sample()
  found = pate_diagnosis(counts, sigma=sigma, delta=1e-6, conversion=conversion).not_for_release
  flat = np.tile(np.asarray(ORDERS) / sigma**2, (len(counts), 1))
  assert found <= rdp_to_epsilon(flat.sum(axis=0), ORDERS, delta=1e-6, conversion=conversion)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"threshold": 3.0}, "threshold and sigma_threshold go together"),
    ({"max_answers": 1}, "max_answers is for Confident-GNMax"),
    ({"threshold": 3.0, "sigma_threshold": 1.0, "max_answers": -1}, "max_answers=-1"),
    ({"threshold": 3.0, "sigma_threshold": 0.0}, "sigma"),
    ({"delta": 1.0}, "delta"),
    ({"delta": 0.0}, "delta"),
  ],
)
def test_bad_arguments_are_named(change, told):
  given = {"sigma": 1.0, "delta": 1e-5, **change}
  with pytest.raises(checks.ArgumentError, match=told):
    pate_diagnosis([[3, 1]], **given)


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"sigma": 0.0}, "sigma"),
    ({"num_queries": -1}, "num_queries"),
    ({"max_answers": 5}, "max_answers is for Confident-GNMax"),
    ({"max_answers": -1, "sigma_threshold": 1.0}, "max_answers=-1"),
    ({"sigma_threshold": 0.0}, "sigma_threshold"),
  ],
)
def test_bad_events_are_named(change, told):
  given = {"sigma": 1.0, "num_queries": 10, **change}
  with pytest.raises(checks.ArgumentError, match=told):
    pate_events(**given)
