"""The optimum is a bound on every procedure, and `ByProgress` comes close."""

import jax
import numpy as np
import pytest

from helpers import disclosure_cases as cases
from jaxfair import checks, disclosure
from jaxfair.disclosure import _greedy_disclosure, _smallest_core_sets

X = cases.people(256)
LAW = disclosure.fit_gaussian(cases.people(2000, seed=9))
ASKED = cases.asked()
KEY = jax.random.key(3)


@pytest.mark.slow
def test_no_procedure_asks_anybody_less_and_progress_little_more():
  model, params = cases.linear()
  best = np.asarray(_smallest_core_sets.smallest_core_sets(params, ASKED, X, key=KEY))
  few = disclosure.ByEntropy(draws=50, label_draws=50)
  choosers = {"v": disclosure.ByVariance(), "p": disclosure.ByProgress(), "e": few}
  found = _greedy_disclosure.disclose_each(
    model, params, LAW, ASKED, X, deltas=(0.0,), choosers=choosers, key=KEY
  )
  counts = {name: np.asarray(own.count[0]) for name, own in found.items()}
  for count in counts.values():
    assert (count >= best).all()
  assert best.mean() <= counts["p"].mean() <= counts["v"].mean()
  assert counts["p"].mean() < 1.15 * best.mean()


def test_the_optimum_is_that_of_sorted_differences():
  """For two classes the columns that lift the worst case most come first."""
  _, params = cases.linear()
  best = np.asarray(_smallest_core_sets.smallest_core_sets(params, ASKED, X, key=KEY))
  theta = np.asarray(params["w"][:, 1] - params["w"][:, 0], float)
  bias = float(params["b"][1] - params["b"][0])
  own = X.astype(float) * theta @ ASKED.members.T  # [n, q] actual worth
  label = np.sign(X @ theta + bias)[:, None]
  worst = (label[..., None] * (ASKED.values @ theta)).min(axis=2)
  lifted = np.sort(label * own - worst, axis=1)[:, ::-1]
  public = X.astype(float) * theta @ ~ASKED.members.any(axis=0) + bias
  low = label[:, 0] * public + worst.sum(axis=1)
  reached = low[:, None] + np.cumsum(np.c_[np.zeros(len(X)), lifted], axis=1)
  expected = np.argmax(reached > 0, axis=1)
  np.testing.assert_array_equal(best, expected)


def test_too_many_subsets_are_refused():
  names = [f"c{i}" for i in range(13)]
  _, asked = disclosure.questions(names, names, step=1.0)
  params = {"w": np.zeros((13, 2)), "b": np.zeros(2)}
  with pytest.raises(checks.ArgumentError, match=r"2\^13 subsets.*at most 12"):
    _smallest_core_sets.smallest_core_sets(params, asked, np.zeros((3, 13)), key=KEY)
