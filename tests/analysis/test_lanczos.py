"""Largest eigenvalues against NumPy's, also below larger negative ones."""

import numpy as np
import pytest

from helpers.curved import KEY, moved, people
from jaxfair import checks, models
from jaxfair.analysis import top_eigenvalue
from jaxfair.analysis._hessian import group_hessians
from jaxfair.analysis._lanczos import largest

PEOPLE = people()
MODEL = models.logistic(3)


@pytest.mark.slow
def test_finds_the_largest_not_the_largest_in_magnitude():
  rng = np.random.default_rng(0)
  basis = np.linalg.qr(rng.normal(size=(30, 30)))[0]
  values = np.r_[-10.0, np.linspace(-1, 3, 28), 3.5]
  matrix = ((basis * values) @ basis.T).astype(np.float32)
  start = rng.normal(size=30).astype(np.float32)
  found, error, vector = largest(lambda v: matrix @ v, start, 25)
  np.testing.assert_allclose(np.abs(basis[:, -1] @ vector), 1, rtol=1e-4)
  np.testing.assert_allclose(found, 3.5, rtol=1e-4)
  assert error < 1e-2


@pytest.mark.slow
def test_more_steps_than_the_space_has_add_no_eigenvalue():
  matrix = -np.eye(6, dtype=np.float32)  # one direction spans all it can reach
  start = np.ones(6, np.float32)
  found, error, _ = largest(lambda v: matrix @ v, start, 5)
  np.testing.assert_allclose(found, -1.0, rtol=1e-6)
  assert error == 0


@pytest.mark.slow
def test_every_group_has_the_eigenvalue_of_its_hessian():
  params = moved(MODEL, PEOPLE)
  found = top_eigenvalue(MODEL, models.cross_entropy, params, PEOPLE, num_groups=3, key=KEY)
  truth = group_hessians(MODEL, models.cross_entropy, params, PEOPLE, num_groups=3)
  largest = np.linalg.eigvalsh(np.asarray(truth.group[:2], np.float64))[:, -1]
  np.testing.assert_allclose(found.values.group[:2], largest, rtol=1e-4)
  assert np.isnan(found.values.group[2])
  everybody = np.linalg.eigvalsh(np.asarray(truth.population, np.float64))
  np.testing.assert_allclose(found.values.population, everybody[-1], rtol=1e-4)


def test_refuses_no_steps_and_no_key():
  params = moved(MODEL, PEOPLE)
  for change, message in (({"steps": 0}, "steps=0"), ({"key": 3}, "key must")):
    with pytest.raises(checks.ArgumentError, match=message):
      top_eigenvalue(
        MODEL, models.cross_entropy, params, PEOPLE, **{"num_groups": 2, "key": KEY, **change}
      )
