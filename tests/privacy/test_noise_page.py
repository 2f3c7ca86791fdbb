"""docs/noise.md: its examples run, and its numbers are ours."""

import math

import numpy as np
import pytest
from scipy import stats

from helpers import pages
from jaxfair import accounting, checks
from jaxfair.privacy import exact, grid, noise
from jaxfair.privacy._normal import MISSING_TAIL

PAGE = "docs/noise.md"
TEXT = pages.read(PAGE)


@pytest.fixture(scope="module")
def names():
  """What the examples leave behind, run one after the other."""
  return pages.run(PAGE, blocks=3)


@pytest.mark.slow
def test_the_examples_give_what_they_say(names):
  assert names["released"].dtype == np.int64
  assert names["releases"].shape == (1000, 4)
  assert names["estimate"].shape == (3,)
  plain = accounting.gaussian_sigma(epsilon=1.0, delta=1e-6)
  assert names["sigma"] == pytest.approx(plain, rel=1e-9)
  share = names["multiplier"] * math.sqrt(50) / grid.STEPS
  assert f"{share:.0e} for the 50 numbers" in TEXT
  spread = np.std(names["safe"] - names["total"]) / names["sigma"]
  assert 0.5 < spread < 1.6


def test_low_bits_of_float_noise_show_the_value(names):
  """The attack the page warns of works, so the warning is deserved."""
  from_one, from_zero = (names["on_grid"](names["near_zero"](value)) for value in (1.0, 0.0))
  assert from_one == 1.0
  assert from_zero < 0.1


def test_the_tails_are_as_tabulated():
  assert f"{stats.norm.isf(MISSING_TAIL / 2):.1f}" == "9.1"
  assert f"{-math.log(MISSING_TAIL):.1f} scales" in TEXT
  draws = 29_698 * 10_000
  missing = 2 * stats.norm.sf(5.42)
  assert f"{missing:.0e}" == "6e-08"
  assert f"{draws:.1e}" == "3.0e+08"
  assert f"about {draws * missing:.0f} of them" in TEXT
  total = draws * MISSING_TAIL
  assert f"{total:.1e}" == "3.2e-11"
  assert f"{total * (1 + math.exp(2)):.1e}" == "2.7e-10"
  assert f"{total * (1 + math.exp(8)):.1e}" == "9.6e-08"
  distance = noise.discrete_gaussian_distance(sigma=50)
  assert f"{distance:.1e} at sigma 50" in TEXT
  assert f"{1e6 * (1 + math.exp(8)) * distance:.1e} to delta" in TEXT


@pytest.mark.slow
def test_the_limits_are_as_told():
  for distance, name, limit in (
    (noise.discrete_gaussian_distance, "sigma", 19_679),
    (noise.discrete_laplace_distance, "scale", 2_954),
  ):
    assert distance(**{name: limit}) < 2.0**-110
    with pytest.raises(checks.ArgumentError, match=f"at most {limit}"):
      distance(**{name: limit + 1})
    assert f"{limit:,}" in TEXT
  assert exact.LARGEST == 2**40
