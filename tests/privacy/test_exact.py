"""Exact discrete noise on the host: the law, the limits, the source of bits."""

import inspect
import os
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxfair import checks
from jaxfair.privacy import exact, noise

FALSE_ALARM = 1e-6
COUNT = 100_000
SAMPLERS = {
  "gaussian": (exact.discrete_gaussian, "sigma"),
  "laplace": (exact.discrete_laplace, "scale"),
}


def draws(name, parameter, count=COUNT, seed=0):
  sampler, argument = SAMPLERS[name]
  zeros = np.zeros(count, int)
  return sampler(zeros, **{argument: parameter}, source=exact.seeded(seed))


def pmf(name, parameter):
  reach = int(12 + 40 * parameter)
  n = np.arange(-reach, reach + 1)
  if name == "laplace":
    return n, stats.dlaplace.pmf(n, 1 / parameter)
  weight = np.exp(-(n**2) / (2 * parameter**2))
  return n, weight / weight.sum()


# Short fractions run in int64, 0.3 and 7.1 need long integers for the Gaussian.
@pytest.mark.slow
@pytest.mark.parametrize("parameter", [Fraction(1, 2), 0.3, 1, Fraction(5, 3), 7.1, 30])
@pytest.mark.parametrize("name", SAMPLERS)
def test_law(name, parameter):
  drawn = draws(name, parameter)
  n, law = pmf(name, float(parameter))
  expected = law * COUNT
  seen = np.bincount(drawn + n[-1], minlength=len(n))
  rare = expected < 10
  seen = np.append(seen[~rare], seen[rare].sum())
  expected = np.append(expected[~rare], expected[rare].sum())
  statistic = np.sum((seen - expected) ** 2 / expected)
  assert stats.chi2.sf(statistic, len(seen) - 1) > FALSE_ALARM
  variance, fourth = law @ n.astype(float) ** 2, law @ n.astype(float) ** 4
  error = 6 * np.sqrt((fourth - variance**2) / COUNT)
  assert abs(np.mean(drawn.astype(float) ** 2) - variance) < error
  assert abs(np.mean(drawn)) < 6 * np.sqrt(variance / COUNT)


@pytest.mark.parametrize("width", [55, 58, 61, 63, 80])
def test_long_fractions_have_the_whole_support(width):
  """Numerators that fit int64 while their multiples do not."""
  scale = Fraction(4 * 2**width + 1, 2**width)
  drawn = np.abs(draws("laplace", scale, 20_000))
  for reach in (4, 8, 12, 16):  # Pr[|N| >= n] = 2 q^n / (1 + q)
    tail = 2 * np.exp(-reach / 4) / (1 + np.exp(-1 / 4))
    low, high = stats.binom.interval(1 - FALSE_ALARM, 20_000, tail)
    assert low <= np.sum(drawn >= reach) <= high


@settings(max_examples=60, deadline=None)
@given(
  parameter=st.one_of(
    st.floats(0, 2.0**40),
    st.fractions(0, 10**6, max_denominator=10**30),
    st.builds(lambda m, e: m * 2.0**e, st.integers(1, 2**53), st.integers(-1000, -13)),
  ),
  name=st.sampled_from(sorted(SAMPLERS)),
)
def test_no_parameter_overflows(parameter, name):
  """Whatever the size of numerator and denominator, draws stay sensible."""
  drawn = draws(name, parameter, 50)
  assert np.all(np.abs(drawn) <= 60 * float(parameter))


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("parameter", [1e4 + 0.1, 2.0**40])
def test_wide_noise_is_nearly_continuous(name, parameter):
  law = stats.norm if name == "gaussian" else stats.laplace
  drawn = draws(name, parameter, 20_000) / parameter
  assert stats.kstest(drawn, law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("parameter", [0, 1e-3, 1e-200, Fraction(1, 10**40)])
def test_tiny_noise_is_none(name, parameter):
  assert not draws(name, parameter, 2000).any()


@pytest.mark.slow
def test_agrees_with_the_compiled_sampler():
  """Two samples from one law: neither knows the other's code."""
  ours = draws("gaussian", 3.5, 200_000, seed=5)
  table = noise.discrete_gaussian(np.zeros(200_000, int), sigma=3.5, key=jax.random.key(5))
  counts = np.array(
    [np.bincount(np.clip(np.asarray(d), -12, 12) + 12, minlength=25) for d in (ours, table)]
  )
  assert stats.chi2_contingency(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", SAMPLERS)
def test_noise_is_added_to_the_value(name):
  sampler, argument = SAMPLERS[name]
  value = np.arange(12, dtype=np.int16).reshape(3, 4)
  setting = {argument: 5}
  noisy = sampler(value, **setting, source=exact.seeded(1))
  alone = sampler(np.zeros((3, 4), int), **setting, source=exact.seeded(1))
  assert noisy.dtype == np.int64
  np.testing.assert_array_equal(noisy - value, alone)
  assert len(set(alone.ravel().tolist())) > 3
  assert sampler(7, **setting).shape == ()
  assert sampler(np.zeros((0, 2), int), **setting).shape == (0, 2)
  big = np.array([2**62, -(2**62)])
  same = sampler(big, **{argument: 0})
  np.testing.assert_array_equal(same, big)


@pytest.mark.parametrize("name", SAMPLERS)
def test_bits_come_from_the_operating_system_unless_asked(name):
  sampler, argument = SAMPLERS[name]
  default = inspect.signature(sampler).parameters["source"].default
  assert default is os.urandom
  zeros = np.zeros(100, int)
  first, second = (sampler(zeros, **{argument: 100}) for _ in range(2))
  assert (first != second).any()
  asked = []

  def counted(size):
    asked.append(size)
    return os.urandom(size)

  sampler(zeros, **{argument: 100}, source=counted)
  assert sum(asked) >= 100
  repeated = [draws(name, 3, 50, seed=9).tolist() for _ in range(2)]
  assert repeated[0] == repeated[1] != draws(name, 3, 50, seed=10).tolist()


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(
  ("value", "parameter", "told"),
  [
    ([1.0, 2.0], 1, "exact noise is for integers"),
    ([True], 1, "exact noise is for integers"),
    ([2**63 - 1], 1, "int64"),
    (np.array([2**63], np.uint64), 1, "int64"),
    ([1], -1, "must be 0 or above"),
    ([1], float("inf"), "inf"),
    ([1], 2.0**41, "larger units"),
    ([1], np.ones(1), "one number"),
  ],
)
def test_refused(name, value, parameter, told):
  sampler, argument = SAMPLERS[name]
  with pytest.raises(checks.ArgumentError, match=told):
    sampler(value, **{argument: parameter})


def test_refused_inside_a_compiled_program():
  with pytest.raises(checks.ArgumentError, match="after the compiled program"):
    jax.jit(lambda v: exact.discrete_laplace(v, scale=1))(np.arange(3))
