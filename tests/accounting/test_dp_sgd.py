import itertools
import math

import pytest

from jaxfair import checks
from jaxfair.accounting import DpSgd, Relation, ShuffledDpSgd, _bridge, calibrate_dp_sgd
from jaxfair.accounting._bridge import to_dp_event
from jaxfair.accounting._composition import composed_epsilon
from jaxfair.accounting._dp_sgd import dp_sgd_epsilon, max_steps
from jaxfair.accounting._event_json import from_json, to_json
from jaxfair.accounting._gaussian import gaussian_epsilon
from jaxfair.accounting._guarantee import BudgetError, DeltaWarning
from jaxfair.accounting._truncation import max_batch_for, truncation_delta

# 200 settings: five rates, and for each so many steps, noises and deltas.
STEPS = {
  0.001: (300, 1000, 3000, 6000, 10000),
  0.01: (1, 10, 100, 1000, 5000),
  0.05: (1, 10, 50, 200, 1000),
  0.2: (1, 5, 20, 50, 200),
  1.0: (1, 2, 4, 8, 16),
}
NOISES = (1.5, 3.0, 6.0, 12.0)
DELTAS = (1e-5, 1e-6)


def setting(rate=0.02, steps=200, delta=1e-5, **more):
  return {"sampling_rate": rate, "steps": steps, "delta": delta, **more}


def theirs(accountant, noise, rate, steps):
  return accountant.compose(to_dp_event(DpSgd(noise, rate, steps)))


@pytest.mark.slow
@pytest.mark.parametrize("rate", STEPS)
@pytest.mark.parametrize("name", ["pld", "rdp"])
def test_agrees_with_dp_accounting_on_the_grid(rate, name):
  from dp_accounting import pld, rdp

  make = {"pld": pld.PLDAccountant, "rdp": rdp.RdpAccountant}[name]
  checked = 0
  for noise, steps in itertools.product(NOISES, STEPS[rate]):
    accountant = theirs(make(), noise, rate, steps)
    for delta in DELTAS:
      found = dp_sgd_epsilon(noise_multiplier=noise, accountant=name, **setting(rate, steps, delta))
      expected = accountant.get_epsilon(delta)
      assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
      assert found >= expected * (1 - 1e-9)
      checked += 1
  assert checked == 40


@pytest.mark.slow
@pytest.mark.parametrize("rate", STEPS)
def test_calibration_is_never_below_on_the_grid(rate):
  """Asked for the epsilon of a noise, it gives no less than that noise."""
  from dp_accounting import rdp

  checked = 0
  for noise, steps in itertools.product(NOISES, STEPS[rate]):
    accountant = theirs(rdp.RdpAccountant(), noise, rate, steps)
    for delta in DELTAS:
      target = accountant.get_epsilon(delta)
      checked += 1
      if target == 0:  # indistinguishable at this delta: any noise will do
        continue
      given = setting(rate, steps, delta, accountant="rdp")
      found = calibrate_dp_sgd(epsilon=target, **given)
      spent = dp_sgd_epsilon(noise_multiplier=found, **given)
      assert target * (1 - 1.1e-4) <= spent <= target
      assert found >= noise * (1 - 1e-9)
  assert checked == 40


@pytest.mark.slow
@pytest.mark.parametrize(
  ("epsilon", "more"),
  [
    (0.3, setting()),
    (1.0, setting(0.05, 100, 1e-6)),
    (1.0, setting(relation=Relation.REPLACE_ONE)),
    (0.5, setting(0.01, 5000)),
    (0.5, setting(dataset_size=1000, max_batch=60)),
  ],
)
def test_calibrated_noise_meets_the_target_from_below(epsilon, more):
  found = calibrate_dp_sgd(epsilon=epsilon, **more)
  spent = dp_sgd_epsilon(noise_multiplier=found, **more)
  assert epsilon * (1 - 1.1e-4) <= spent <= epsilon


def test_calibration_is_close_to_dp_accountings():
  import dp_accounting
  from dp_accounting import pld

  expected = dp_accounting.calibrate_dp_mechanism(
    pld.PLDAccountant,
    lambda noise: to_dp_event(DpSgd(noise, 0.02, 200)),
    0.3,
    1e-5,
    dp_accounting.ExplicitBracketInterval(2.0, 8.0),
  )
  found = calibrate_dp_sgd(epsilon=0.3, **setting())
  assert expected * (1 - 1e-6) <= found <= expected * 1.001


def test_max_steps_is_the_last_step_that_fits():
  given = {"noise_multiplier": 3.0, "sampling_rate": 0.02, "delta": 1e-5}
  for accountant in ("pld", "rdp"):
    most = max_steps(epsilon=0.8, accountant=accountant, **given)
    inside = dp_sgd_epsilon(steps=most, accountant=accountant, **given)
    outside = dp_sgd_epsilon(steps=most + 1, accountant=accountant, **given)
    assert inside <= 0.8 < outside


@pytest.mark.slow
def test_max_steps_undoes_calibration():
  noise = calibrate_dp_sgd(epsilon=1.0, **setting(0.02, 300))
  found = max_steps(epsilon=1.0, delta=1e-5, noise_multiplier=noise, sampling_rate=0.02)
  assert found == 300


@pytest.mark.slow
def test_a_budget_too_small_for_one_step_is_told():
  with pytest.raises(BudgetError, match=r"does not cover one step.*raise"):
    max_steps(epsilon=0.01, delta=1e-5, noise_multiplier=1.0, sampling_rate=0.5)


@pytest.mark.slow
def test_accountants_and_relations_are_in_order():
  given = setting(0.05, 50)
  pld = dp_sgd_epsilon(noise_multiplier=2.0, **given)
  rdp = dp_sgd_epsilon(noise_multiplier=2.0, accountant="rdp", **given)
  zero = dp_sgd_epsilon(noise_multiplier=2.0, relation=Relation.ZERO_OUT, **given)
  other = dp_sgd_epsilon(noise_multiplier=2.0, relation=Relation.REPLACE_ONE, **given)
  assert pld < rdp < 1.25 * pld
  assert zero == pld
  assert pld < other <= 2.5 * pld


def test_a_cap_costs_a_little_under_both_accountants():
  n = 1000
  cap = max_batch_for(dataset_size=n, sampling_rate=0.05, steps=50, delta_share=1e-7)
  for accountant in ("pld", "rdp"):
    given = setting(0.05, 50, accountant=accountant)
    plain = dp_sgd_epsilon(noise_multiplier=2.0, **given)
    capped = dp_sgd_epsilon(noise_multiplier=2.0, dataset_size=n, max_batch=cap, **given)
    assert plain < capped < 1.002 * plain


def test_shuffled_epochs_are_plain_gaussians():
  exact = gaussian_epsilon(sigma=5 / math.sqrt(10), delta=1e-5)
  event = ShuffledDpSgd(noise_multiplier=5.0, epochs=10)
  found = composed_epsilon([event], delta=1e-5, relation=Relation.ZERO_OUT)
  assert found == pytest.approx(exact, rel=1e-9)
  twice = gaussian_epsilon(sigma=2.5 / math.sqrt(10), delta=1e-5)
  found = composed_epsilon([event], delta=1e-5, relation=Relation.REPLACE_ONE)
  assert found == pytest.approx(twice, rel=1e-9)


def test_shuffled_epochs_are_refused_where_nothing_is_known():
  with pytest.raises(checks.ArgumentError, match="ZERO_OUT"):
    composed_epsilon([ShuffledDpSgd(5.0, 10)], delta=1e-5, relation=Relation.ADD_OR_REMOVE_ONE)


def test_a_sweep_builds_each_loss_distribution_once(monkeypatch):
  from dp_accounting.pld import privacy_loss_distribution as pld

  built = []
  original = pld.from_gaussian_mechanism

  def counting(*args, **kwargs):
    built.append(args)
    return original(*args, **kwargs)

  monkeypatch.setattr(pld, "from_gaussian_mechanism", counting)
  for cache in (_bridge.pld_epsilon, _bridge.composed_pld, _bridge.unit_pld):
    cache.cache_clear()
  given = {"noise_multiplier": 7.125, "sampling_rate": 0.0375}
  first = [
    dp_sgd_epsilon(steps=steps, delta=delta, **given)
    for steps in (10, 20, 40)
    for delta in (1e-5, 1e-6)
  ]
  assert len(built) == 1
  before = _bridge.composed_pld.cache_info().misses
  again = [
    dp_sgd_epsilon(steps=steps, delta=delta, **given)
    for steps in (10, 20, 40)
    for delta in (1e-5, 1e-6)
  ]
  assert again == first
  assert len(built) == 1
  assert _bridge.composed_pld.cache_info().misses == before == 3


def test_a_delta_above_one_over_n_is_warned_of():
  for call in (
    lambda: dp_sgd_epsilon(noise_multiplier=9.0, **setting(delta=1e-2, **SMALL)),
    lambda: calibrate_dp_sgd(epsilon=1.0, **setting(delta=1e-2, accountant="rdp", **SMALL)),
    lambda: max_steps(
      epsilon=1.0, delta=1e-2, noise_multiplier=9.0, sampling_rate=0.02, accountant="rdp", **SMALL
    ),
  ):
    with pytest.warns(DeltaWarning, match=r"above 1/n") as caught:
      call()
    assert caught[0].filename == __file__


SMALL = {"dataset_size": 1000, "max_batch": 80}


@pytest.mark.parametrize(
  ("change", "names"),
  [
    ({"noise_multiplier": 0.0}, "noise_multiplier"),
    ({"noise_multiplier": -1.0}, "noise_multiplier"),
    ({"sampling_rate": 0.0}, "sampling_rate"),
    ({"sampling_rate": 1.01}, "sampling_rate"),
    ({"steps": 0}, "steps"),
    ({"delta": 0.0}, "delta"),
    ({"delta": 1.0}, "delta"),
    ({"accountant": "moments"}, "use one of pld, rdp"),
    ({"dataset_size": 10}, "max_batch"),
  ],
)
def test_bad_arguments_are_named(change, names):
  with pytest.raises(checks.ArgumentError, match=names) as caught:
    dp_sgd_epsilon(**{**setting(), "noise_multiplier": 1.0, **change})
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("change", "names"),
  [
    ({"epsilon": 0.0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"delta": 2.0}, "delta"),
    ({"sampling_rate": 2.0}, "sampling_rate"),
    ({"accountant": "moments"}, "accountant"),
    ({"accountant": "rdp", "relation": Relation.REPLACE_ONE}, "'pld'"),
  ],
)
def test_bad_targets_are_named(change, names):
  with pytest.raises(checks.ArgumentError, match=names):
    calibrate_dp_sgd(**{**setting(), "epsilon": 1.0, **change})


@pytest.mark.slow
@pytest.mark.parametrize(("bands", "steps"), [(7, 200), (50, 200)])
def test_bands_cost_as_many_releases_as_a_person_takes_part_in(bands, steps):
  """dp-accounting composes ceil(T / b) Poisson-sampled Gaussian releases at the rate b q."""
  from dp_accounting import dp_event, pld, rdp

  one = dp_event.PoissonSampledDpEvent(0.02 * bands, dp_event.GaussianDpEvent(2.0))
  composed = dp_event.SelfComposedDpEvent(one, math.ceil(steps / bands))
  for name, make in (("pld", pld.PLDAccountant), ("rdp", rdp.RdpAccountant)):
    own = setting(steps=steps, noise_multiplier=2.0, accountant=name, bands=bands)
    expected = make().compose(composed).get_epsilon(1e-5)
    assert dp_sgd_epsilon(**own) == pytest.approx(expected, rel=2e-3)
    assert dp_sgd_epsilon(**own) >= expected * (1 - 1e-9)
  own = {"delta": 1e-5, "sampling_rate": 0.02, "bands": bands, "accountant": "rdp"}
  noise = calibrate_dp_sgd(**own, steps=steps, epsilon=3.0)
  assert 2.999 < dp_sgd_epsilon(**own, steps=steps, noise_multiplier=noise) <= 3.0
  most = max_steps(**own, epsilon=3.0, noise_multiplier=noise)
  assert most == math.ceil(steps / bands) * bands


def test_bands_pay_for_their_caps_and_are_kept():
  event = DpSgd(1.5, 0.02, 200, 5000, 160, bands=8)
  assert from_json(to_json(event)) == event
  assert DpSgd(1.5, 0.02, 200, bands=1) == DpSgd(1.5, 0.02, 200)
  spent = truncation_delta(dataset_size=5000, sampling_rate=0.02, max_batch=160, steps=200)
  assert 1e-7 < spent < 1e-5
  for accountant in ("pld", "rdp"):
    priced = composed_epsilon([event], delta=1e-5, accountant=accountant)
    plain = DpSgd(1.5, 0.16, 25)
    for delta in (1e-5 - spent, 1e-5):
      assert priced >= composed_epsilon([plain], delta=delta, accountant=accountant)
  for wrong, told in (
    ({"bands": 51}, "bands=51 .* use at most 50 bands"),
    ({"bands": 4, "dataset_size": 99, "max_batch": 9, "shards": 2}, "cannot be combined"),
    ({"bands": 0}, "bands=0"),
  ):
    with pytest.raises(checks.ArgumentError, match=told):
      DpSgd(1.5, 0.02, 200, **wrong)
