"""Expected losses and equal-loss thresholds, against closed forms."""

import numpy as np
import pytest
from scipy import stats

from jaxfair.robustness import _gaussians, _surrogates

PEOPLE = (-1.0, 1.0, 5.0)
SOME = [PEOPLE, (0.0, 3.0, 1.0), (-1.0, 1.0, 2.0)]


@pytest.mark.parametrize("people", SOME)
def test_quadrature_counts_errors(people):
  for at in (-2.0, 0.1, 0.9):
    found = _surrogates.class_losses(_surrogates.zero_one_loss, at, *people)
    exact = _gaussians.class_errors(at, *people)
    assert float(found.minus) == pytest.approx(float(exact.minus), abs=1e-10)
    assert float(found.plus) == pytest.approx(float(exact.plus), abs=1e-10)


def ramp_losses(at, low, high, k):
  """Means of errors over all shifts of the threshold by up to 1: integrals of Phi."""

  def integral(z):
    return z * stats.norm.cdf(z) + stats.norm.pdf(z)

  minus = integral(low - at + 1) - integral(low - at)
  return minus, k * (integral((at + 1 - high) / k) - integral((at - high) / k))


@pytest.mark.parametrize("people", SOME)
def test_the_ramp_s_closed_form_is_its_quadrature(people):
  for at in (-2.0, 0.1, 0.9):
    found = _surrogates.class_losses(_surrogates.ramp_loss, at, *people)
    exact = ramp_losses(at, *people)
    np.testing.assert_allclose(found, exact, atol=1e-10)


def test_exponential_losses_have_a_closed_form():
  low, high, k = -1.0, 1.0, 2.0
  minus, plus = _surrogates.class_losses(_surrogates.exponential_loss, 0.3, low, high, k)
  assert float(minus) == pytest.approx(np.exp(low - 0.3 + 0.5), rel=1e-9)
  assert float(plus) == pytest.approx(np.exp(0.3 - high + k * k / 2), rel=1e-9)


@pytest.mark.parametrize("people", SOME)
def test_equal_loss_thresholds(people):
  low, high, k = people
  found = {
    name: _surrogates.equal_loss_threshold(loss, *people)
    for name, loss in _surrogates.LOSSES.items()
  }
  fair = float(_gaussians.fair_threshold(*people))
  assert found["zero_one"] == pytest.approx(fair, abs=1e-8)
  exponential = (low + high) / 2 - (k * k - 1) / 4
  assert found["exponential"] == pytest.approx(exponential, abs=1e-6)
  minus, plus = ramp_losses(found["ramp"], *people)
  assert minus == pytest.approx(plus, abs=1e-9)
  # The steeper a loss is far out, the further it is pulled.
  order = [found[n] for n in ("exponential", "log", "zero_one", "ramp")]
  assert order == pytest.approx(sorted(order))
