import math

import pytest

from jaxfair import checks
from jaxfair.accounting import _events as ev


def test_events_are_values():
  assert ev.Gaussian(1) == ev.Gaussian(1.0)
  assert hash(ev.DpSgd(1.0, 0.1, 5)) == hash(ev.DpSgd(1, 0.1, 5))
  assert ev.Gaussian(1.0) != ev.Laplace(1.0)
  with pytest.raises(AttributeError):
    ev.Gaussian(1.0).noise_multiplier = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
  ("make", "names"),
  [
    (lambda: ev.Gaussian(0.0), "noise_multiplier"),
    (lambda: ev.Gaussian(math.nan), "noise_multiplier"),
    (lambda: ev.Gaussian(True), "noise_multiplier"),
    (lambda: ev.Gaussian("1.0"), "noise_multiplier"),
    (lambda: ev.Laplace(-1.0), "noise_multiplier"),
    (lambda: ev.DpSgd(0.0, 0.1, 1), "noise_multiplier"),
    (lambda: ev.DpSgd(1.0, 0.0, 1), "sampling_rate"),
    (lambda: ev.DpSgd(1.0, 1.1, 1), "sampling_rate"),
    (lambda: ev.DpSgd(1.0, 0.1, 0), "steps"),
    (lambda: ev.DpSgd(1.0, 0.1, 1.0), "steps"),
    (lambda: ev.DpSgd(1.0, 0.1, 1, dataset_size=10), "max_batch"),
    (lambda: ev.DpSgd(1.0, 0.1, 1, 10, 0), "max_batch"),
    (lambda: ev.ShuffledDpSgd(1.0, 0), "epochs"),
    (lambda: ev.RandomizedResponse(0.0, 2), "epsilon"),
    (lambda: ev.RandomizedResponse(1.0, 1), "categories"),
    (lambda: ev.RandomizedResponse(1.0, 2, 0), "count"),
    (lambda: ev.ZCdp(-1.0), "rho"),
    (lambda: ev.Rdp((2.0,), (1.0, 2.0)), "orders"),
    (lambda: ev.Rdp((), ()), "orders"),
    (lambda: ev.Rdp((1.0,), (1.0,)), "orders"),
    (lambda: ev.Rdp((3.0, 2.0), (1.0, 1.0)), "orders"),
    (lambda: ev.Rdp((2.0,), (-1.0,)), "values"),
    (lambda: ev.PureDp(-0.1), "epsilon"),
    (lambda: ev.ApproxDp(1.0, 1.5), "delta"),
    (lambda: ev.Composed((1.0,)), "events"),
    (lambda: ev.Repeated(ev.Gaussian(1.0), 0), "count"),
    (lambda: ev.RepeatAndSelect(ev.Gaussian(1.0), 0.5), "mean_runs"),
    (lambda: ev.RepeatAndSelect(ev.Gaussian(1.0), 2.0, -1.0), "shape"),
  ],
)
def test_impossible_events_are_refused_by_name(make, names):
  with pytest.raises(checks.ArgumentError, match=names):
    make()
