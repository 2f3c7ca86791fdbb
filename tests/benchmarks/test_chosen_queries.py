"""The benchmark of chosen queries: what is spent, who is far, and why two classes gain nothing."""

import importlib
import pathlib
import sys

import numpy as np
import pytest

from jaxfair import analysis
from jaxfair.accounting._pate_threshold import log_answer_probability

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.append(str(ROOT / "benchmarks"))  # where it finds the modules beside it
bench = importlib.import_module("chosen_queries")


def test_tests_and_labels_never_exceed_the_budget():
  rng = np.random.default_rng(0)
  for share in (0.0, 0.3, 1.0):
    passed = rng.random(1000) < share
    sigma, test, rho = 5.0, 8.0, 3.0
    paid = bench.affordable(passed, rho, sigma, test)
    spent = (paid * (0.5 / test**2 + passed / sigma**2)).sum()
    one = 0.5 / test**2 + 1 / sigma**2
    assert spent <= rho * (1 + 1e-6)
    assert spent > rho - one or paid.all()
    # Whether a query is asked depends on the outcomes of earlier ones alone.
    other = np.concatenate([passed[:500], ~passed[500:]])
    np.testing.assert_array_equal(bench.affordable(other, rho, sigma, test)[:501], paid[:501])


def test_rows_apart_are_taken_one_by_one():
  x = np.array([[0.0], [1.0], [10.0], [9.0], [5.0]])
  taken = bench.farthest(x, np.array([0]), np.array([1, 2, 3, 4]), 3)
  assert taken.tolist() == [2, 4, 1]


@pytest.mark.parametrize("sigma", [4.0, 30.0])
def test_with_two_classes_a_test_of_disagreement_is_the_noisy_label_itself(sigma):
  """At half of the teachers, and at the price of that label."""
  against = np.array([51, 60, 75, 99])
  counts = np.stack([against, 100 - against], axis=1)
  reached = np.exp(log_answer_probability(counts, threshold=50, sigma=sigma))
  named = 1 - np.asarray(analysis.flip_probability(counts, sigma=np.sqrt(2) * sigma))
  np.testing.assert_allclose(reached, named, rtol=1e-9)
  assert 0.5 / sigma**2 == pytest.approx(1 / (np.sqrt(2) * sigma) ** 2)
