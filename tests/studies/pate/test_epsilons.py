"""Epsilons of the labels: what each is, and what may be published."""

import jax
import numpy as np
import pytest

from jaxfair import accounting
from jaxfair.studies.pate import epsilons as pe


@pytest.fixture(scope="module")
def table():
  counts = np.tile([[240, 10]], (300, 1))
  return pe.epsilon_table(
    {"teachers": 250}, counts, sigma=20.0, delta=1e-6, consensus=0.95, key=jax.random.key(0)
  )


def told(table, name):
  return float(table.where(analysis=name)["label_epsilon"][0])


def test_every_analysis_has_its_row(table):
  assert list(table["analysis"]) == list(pe.MAY_BE_PUBLISHED)
  assert (table["teachers"] == 250).all()


def test_the_one_for_any_votes_is_that_of_the_noise(table):
  expected = accounting.zcdp_epsilon(rho=300 / 20**2, delta=1e-6)
  assert told(table, pe.ANY) == pytest.approx(expected, rel=2e-2)
  assert told(table, pe.ANY) >= expected * (1 - 2e-2)


def test_the_diagnosis_is_for_discrete_noise_and_marked(table):
  counts = np.tile([[20, 5]], (300, 1))
  noise = {"sigma": 2.0, "delta": 1e-6}
  few = pe.epsilon_table({}, counts, consensus=0.8, key=jax.random.key(0), **noise)
  discrete, continuous = (
    accounting.pate_diagnosis(counts, discrete=d, **noise).not_for_release for d in (True, False)
  )
  assert discrete > 1.01 * continuous  # little noise: the grid shows
  assert told(few, pe.THESE) == pytest.approx(discrete, rel=1e-3)
  published = table.where(analysis=pe.THESE)["published"][0]
  assert published.startswith("no: a diagnosis")


def test_a_strong_consensus_is_worth_publishing(table):
  these, shown = told(table, pe.THESE), told(table, pe.SANITISED)
  assert these < shown < told(table, pe.ANY) <= told(table, pe.TOGETHER)
