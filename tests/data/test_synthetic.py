"""Generators: sizes, norms and errors are what they claim to be."""

import jax
import numpy as np
import pytest
from scipy import stats

from jaxfair.checks import ArgumentError
from jaxfair.data import gaussian_mixture, two_gaussians

KEY = jax.random.key(11)
SIZE = 40_000
# Two-sided z of a false alarm below 1e-7, so that all checks together stay
# below 1e-6.
Z = 5.5


@pytest.mark.slow
def test_sizes_margins_and_norms_are_as_asked():
  margins, norms = (0.5, 2.0), (4.0, 8.0)
  data = two_gaussians((SIZE, SIZE // 2), margins=margins, norms=norms, dimension=5, key=KEY)
  assert data.group_sizes == {"group 0": SIZE, "group 1": SIZE // 2}
  x, y, group = data.examples
  assert x.shape == (SIZE + SIZE // 2, 5)
  assert x.dtype == np.float32
  for a in (0, 1):
    mine = group == a
    count = mine.sum()
    squares = (x[mine].astype(np.float64) ** 2).sum(1)
    error = Z * squares.std() / np.sqrt(count)
    assert abs(squares.mean() - norms[a] ** 2) < error
    # Bayes error of 1{x_0 > 0}.
    wrong = ((x[mine, 0] > 0) != y[mine]).mean()
    expected = stats.norm.cdf(-margins[a])
    assert abs(wrong - expected) < Z * np.sqrt(expected / count)


@pytest.mark.slow
def test_rates_of_the_positive_class():
  _, y, group = two_gaussians((SIZE, SIZE), positive=(0.2, 0.7), key=KEY).examples
  for a, rate in enumerate((0.2, 0.7)):
    error = Z * np.sqrt(rate * (1 - rate) / SIZE)
    assert abs(y[group == a].mean() - rate) < error


@pytest.mark.slow
def test_rows_are_mixed_and_reproducible():
  first, again = (two_gaussians((50, 50), key=KEY) for _ in range(2))
  np.testing.assert_array_equal(first.examples.x, again.examples.x)
  assert np.any(np.diff(first.examples.group) < 0)


@pytest.mark.slow
def test_one_group_is_allowed():
  assert two_gaussians((5,), key=KEY).num_groups == 1


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"norms": (1.0, 5.0)}, "ask for larger norms"),
    ({"margins": (1.0, 2.0, 3.0)}, "one for each of the 2 groups"),
    ({"margins": -1.0}, "margins=-1.0 must be 0 or above"),
    ({"positive": 1.5}, "positive=1.5"),
    ({"dimension": 1}, "dimension=1"),
    ({"spread": 0.0}, "spread=0.0"),
  ],
)
def test_impossible_people_are_refused(options, message):
  with pytest.raises(ArgumentError, match=message):
    two_gaussians(key=KEY, **options)


@pytest.mark.slow
def test_mixture_of_chapter_6():
  data = gaussian_mixture(SIZE, mu_minus=-1.0, mu_plus=2.0, ratio=3.0, key=KEY)
  x, y, group = data.examples
  np.testing.assert_array_equal(y, group)
  for label, law in ((0, stats.norm(-1, 1)), (1, stats.norm(2, 3))):
    # Kolmogorov-Smirnov: a right generator falls below 1e-7 once in 10^7.
    assert stats.kstest(x[y == label, 0], law.cdf).pvalue > 1e-7
  assert abs(y.mean() - 0.5) < Z * np.sqrt(0.25 / SIZE)


def test_mixture_refuses_means_in_the_wrong_order():
  with pytest.raises(ArgumentError, match="lies above mu_minus"):
    gaussian_mixture(10, mu_minus=1.0, mu_plus=0.0, key=KEY)
