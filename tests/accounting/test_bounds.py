import math

import pytest

from jaxfair import checks
from jaxfair.accounting import Relation, _bounds, _bridge
from jaxfair.accounting import _events as ev
from jaxfair.accounting._bounds import best_bound, fits, require_covered
from jaxfair.accounting._gaussian import gaussian_epsilon
from jaxfair.accounting._units import NotCovered, units

ADD = Relation.ADD_OR_REMOVE_ONE


def best(*events, delta=1e-5, relation=ADD, accountant="pld"):
  return best_bound(units(events, relation), delta=delta, relation=relation, accountant=accountant)


def test_nothing_costs_nothing():
  assert best().epsilon == 0.0
  assert fits((), epsilon=1e-9, delta=0.0, relation=ADD)


def test_gaussians_are_exact_under_every_accountant():
  sigma = 1 / math.sqrt(1 / 4 + 3 / 9)
  exact = gaussian_epsilon(sigma=sigma, delta=1e-5)
  for accountant in ("pld", "rdp"):
    found = best(ev.Gaussian(2.0), ev.Repeated(ev.Gaussian(3.0), 3), accountant=accountant)
    assert found.epsilon == pytest.approx(exact, rel=1e-9)
    assert found.accountant == "exact Gaussian"


def test_pure_events_add_up_at_delta_zero():
  found = best(
    ev.PureDp(0.1),
    ev.Laplace(2.0),
    ev.RandomizedResponse(0.3, 4, 2),
    delta=0.0,
    relation=Relation.REPLACE_ONE,
  )
  assert found.epsilon == pytest.approx(0.1 + 0.5 + 0.6)
  assert found.accountant == "basic composition"


def test_delta_zero_is_for_pure_events_only():
  with pytest.raises(checks.ArgumentError, match="pure"):
    best(ev.PureDp(1.0), ev.Gaussian(3.0), delta=0.0)


def test_approximate_events_bring_their_own_delta():
  found = best(ev.ApproxDp(0.5, 4e-6), ev.ApproxDp(0.25, 6e-6), delta=1e-5)
  assert found.epsilon == pytest.approx(0.75, rel=1e-3)
  assert found.epsilon <= 0.75
  with pytest.raises(checks.ArgumentError):
    best(ev.ApproxDp(0.5, 2e-5), delta=1e-5)


@pytest.mark.slow
def test_every_mixture_lies_between_its_parts_and_their_sum():
  parts = [
    ev.DpSgd(1.5, 0.02, 100),
    ev.ZCdp(0.01),
    ev.Rdp((2.0, 8.0, 32.0), (0.01, 0.04, 0.2)),
    ev.PureDp(0.2),
    ev.ApproxDp(0.1, 1e-7),
    ev.Laplace(8.0),
    ev.RepeatAndSelect(ev.Gaussian(20.0), 4.0),
    ev.DpSgd(1.5, 0.02, 50, 1000, 60),
  ]
  for accountant in ("pld", "rdp"):
    alone = [best(part, accountant=accountant).epsilon for part in parts]
    shares = [best(part, delta=1e-5 / len(parts), accountant="pld").epsilon for part in parts]
    together = best(*parts, accountant=accountant).epsilon
    assert max(alone) < together
    if accountant == "pld":
      assert together < 1.3 * sum(shares)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 1 / 32])
def test_mixtures_are_never_below_the_exact_gaussian(rho):
  """One step at rate 1 is a Gaussian, and rho-zCDP may be one."""
  sigma = 1 / math.sqrt(1 / 9 + 2 * rho)
  exact = gaussian_epsilon(sigma=sigma, delta=1e-5)
  for accountant in ("pld", "rdp"):
    found = best(ev.DpSgd(3.0, 1.0, 1), ev.ZCdp(rho), accountant=accountant)
    assert exact <= found.epsilon <= 1.2 * exact
  parts = _bounds._pld(units([ev.DpSgd(3.0, 1.0, 1), ev.ZCdp(rho)], ADD), 1e-5, ADD)
  assert exact <= parts.epsilon <= 2 * exact


def test_deltas_of_repeated_events_add_up():
  """Two of 6e-6 are more than 1e-5, whatever their epsilon."""
  twice = ev.Repeated(ev.ApproxDp(0.1, 6e-6), 2)
  with pytest.raises(NotCovered):
    best(twice, delta=1e-5)
  assert best(twice, delta=1.3e-5).epsilon <= 0.2


def test_the_halves_of_a_mixture_share_delta():
  """What has a loss distribution takes half of delta, the rest the other."""
  main, rest = ev.PureDp(0.3), ev.ZCdp(0.01)
  halves = _bridge.pld_epsilon(((main, 1),), 5e-6, ADD) + _bounds._rdp_epsilon(
    ((rest, 1),), 5e-6, ADD
  )
  found = _bounds._pld(units([main, rest], ADD), 1e-5, ADD)
  assert found.epsilon == pytest.approx(halves, rel=1e-12)


def test_pld_composes_pure_events_better_than_their_sum():
  found = best(ev.Repeated(ev.PureDp(0.05), 200))
  assert found.accountant == "pld"
  assert found.epsilon < 0.5 * 10.0
  exact = best(ev.RandomizedResponse(0.05, 2, 200), relation=Relation.REPLACE_ONE)
  assert exact.accountant == "exact randomized response"
  # binary randomized response is the worst pure mechanism
  assert exact.epsilon <= found.epsilon <= exact.epsilon * 1.02


def test_rdp_takes_over_where_pld_cannot_tell():
  found = best(ev.DpSgd(1.0, 0.01, 10**5), delta=1e-12)
  assert found.accountant == "rdp"
  assert found == best(ev.DpSgd(1.0, 0.01, 10**5), delta=1e-12, accountant="rdp")


def test_zcdp_is_as_good_as_its_closed_form():
  from jaxfair.accounting import zcdp_epsilon

  found = best(ev.ZCdp(0.3), ev.ZCdp(0.2))
  assert found.epsilon <= zcdp_epsilon(rho=0.5, delta=1e-5) * (1 + 1e-9)


def test_why_there_is_no_answer_is_told():
  with pytest.raises(NotCovered, match="max_batch"):
    best(ev.DpSgd(1.0, 0.5, 10, 100, 20), accountant="rdp")
  with pytest.raises(NotCovered, match="accountant='pld'"):
    best(ev.DpSgd(1.0, 0.1, 10), relation=Relation.REPLACE_ONE, accountant="rdp")
  with pytest.raises(checks.ArgumentError, match="noise_multiplier=1e-200 must"):
    ev.DpSgd(1e-200, 0.5, 1)
  with pytest.raises(checks.ArgumentError, match="did you mean pld"):
    best(ev.Gaussian(1.0), accountant="plt")
  with pytest.raises(checks.ArgumentError, match="delta"):
    best(ev.Gaussian(1.0), delta=1.0)


def test_uncoverable_events_are_found_before_they_are_needed():
  tuned = ev.RepeatAndSelect(ev.DpSgd(1.0, 0.1, 5), 3.0)
  require_covered(units([tuned], ADD), ADD)
  replaced = Relation.REPLACE_ONE
  with pytest.raises(NotCovered, match="replace-one"):
    require_covered(units([tuned], replaced), replaced)


def test_fits_settles_easy_cases_without_convolutions(monkeypatch):
  def refuse(*_):
    raise AssertionError("a loss distribution was built")

  monkeypatch.setattr(_bridge, "pld_epsilon", refuse)
  monkeypatch.setattr(_bounds._bridge, "pld_epsilon", refuse)
  counted = units([ev.DpSgd(2.0, 0.013, 100)], ADD)
  assert fits(counted, epsilon=3.0, delta=1e-5, relation=ADD)


def test_fits_to_the_boundary():
  counted = units([ev.DpSgd(2.0, 0.013, 100)], ADD)
  epsilon = best_bound(counted, delta=1e-5, relation=ADD, accountant="pld").epsilon
  assert fits(counted, epsilon=epsilon, delta=1e-5, relation=ADD)
  assert not fits(counted, epsilon=epsilon - 1e-9, delta=1e-5, relation=ADD)


def test_the_least_noise_that_is_allowed_has_an_answer():
  assert best(ev.DpSgd(1e-100, 0.5, 1), delta=1e-12).epsilon > 1e199
