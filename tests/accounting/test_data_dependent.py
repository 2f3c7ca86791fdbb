import json

import numpy as np
import pytest

from jaxfair import checks
from jaxfair.accounting import DataDependentEpsilon, Rdp
from jaxfair.accounting._data_dependent import DataDependentRdp
from jaxfair.accounting._pate_gnmax import gnmax_rdp
from jaxfair.accounting._rdp import rdp_to_epsilon

ORDERS = [2.0, 4.0, 8.0]
VOTES = [[90, 10], [60, 40], [100, 0]]


@pytest.fixture
def private():
  return gnmax_rdp(VOTES, sigma=10.0, orders=ORDERS)


@pytest.mark.parametrize(
  "change",
  [
    lambda rdp: rdp.sum(axis=0),
    lambda rdp: np.sum(rdp),
    lambda rdp: rdp[1:],
    lambda rdp: rdp[0, 0],
    lambda rdp: next(iter(rdp)),
    lambda rdp: 2 * rdp + 1,
    lambda rdp: np.ones(3) @ rdp,
    lambda rdp: np.cumsum(rdp, axis=0),
    lambda rdp: np.maximum(rdp, 0.5),
    lambda rdp: np.concatenate([rdp, np.zeros((1, 3))]),
    lambda rdp: np.where(rdp > 0.1, rdp, 0.0),
    lambda rdp: np.stack([np.zeros(3), rdp[0]]),
    lambda rdp: rdp.mean(axis=0),
    lambda rdp: rdp.max(),
  ],
)
def test_what_comes_from_votes_stays_marked(private, change):
  assert isinstance(change(private), DataDependentRdp)


@pytest.mark.parametrize(
  "leak",
  [
    lambda rdp: float(rdp[0, 0]),
    lambda rdp: float(rdp.sum()),
    lambda rdp: rdp.tolist(),
    lambda rdp: rdp.item(0, 0),
    lambda rdp: json.dumps(rdp.max()),
    lambda rdp: f"{rdp.sum():.3f}" + 1,
  ],
)
def test_figures_do_not_leak(private, leak):
  with pytest.raises(TypeError):
    leak(private)


def test_printing_shows_no_figures(private):
  for shown in (repr(private), str(private), f"{private.sum():.4g}"):
    assert "not for release" in shown
    assert not any(digit in shown for digit in "456789")


def test_epsilon_is_marked_too(private):
  epsilon = rdp_to_epsilon(private.sum(axis=0), ORDERS, delta=1e-5)
  assert isinstance(epsilon, DataDependentEpsilon)
  with pytest.raises(TypeError, match="private data"):
    float(epsilon)
  plain = rdp_to_epsilon(private.not_for_release.sum(axis=0), ORDERS, delta=1e-5)
  assert epsilon.not_for_release == plain


def test_queries_are_summed_first(private):
  with pytest.raises(checks.ArgumentError, match=r"rdp\.sum\(axis=0\)"):
    rdp_to_epsilon(private, ORDERS, delta=1e-5)


def test_a_ledger_event_cannot_hold_it(private):
  for values in (private.sum(axis=0), tuple(private.sum(axis=0))):
    with pytest.raises(checks.ArgumentError, match="not for release"):
      Rdp(tuple(ORDERS), values)


def test_comparisons_are_plain(private):
  flat = np.asarray(ORDERS) / 10.0**2
  assert type(private <= flat) is np.ndarray
  assert np.all(private <= flat)
