"""Epsilons of the labels: what each is, and what may be published."""

import jax
import numpy as np
import pytest

from jaxfair import accounting
from jaxfair.studies.pate import comparison as pc


def epsilons(counts, sigma, consensus):
  config = pc.Config(queries=len(counts), sigma=sigma, delta=1e-6, consensus=consensus)
  return pc.epsilons(config, counts, key=jax.random.key(0))


@pytest.fixture(scope="module")
def found():
  return epsilons(np.tile([[240, 10]], (300, 1)), 20.0, 0.95)


def test_every_analysis_says_whether_it_may_be_published(found):
  assert list(found) == list(pc.MAY_BE_PUBLISHED)
  assert pc.MAY_BE_PUBLISHED[pc.THESE].startswith("no: a diagnosis")


def test_the_one_for_any_votes_is_that_of_the_noise(found):
  expected = accounting.zcdp_epsilon(rho=300 / 20**2, delta=1e-6)
  assert found[pc.ANY] == pytest.approx(expected, rel=2e-2)
  assert found[pc.ANY] >= expected * (1 - 2e-2)


def test_the_diagnosis_is_for_discrete_noise():
  counts = np.tile([[20, 5]], (300, 1))
  discrete, continuous = (
    accounting.pate_diagnosis(counts, discrete=d, sigma=2.0, delta=1e-6).not_for_release
    for d in (True, False)
  )
  assert discrete > 1.01 * continuous  # little noise: the grid shows
  assert epsilons(counts, 2.0, 0.8)[pc.THESE] == pytest.approx(discrete, rel=1e-3)


def test_a_strong_consensus_is_worth_publishing(found):
  assert found[pc.THESE] < found[pc.SANITIZED] < found[pc.ANY] <= found[pc.TOGETHER]
