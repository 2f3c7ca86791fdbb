"""Estimated traces: unbiased, and their intervals cover."""

import jax
import numpy as np
import pytest
from scipy import stats

from helpers.curved import KEY, moved, people
from jaxfair import models
from jaxfair.analysis import hessian_trace

MODEL = models.mlp(4, 3, "tanh")
PEOPLE = people()
PARAMS = moved(MODEL, PEOPLE)


@pytest.mark.slow
def test_the_interval_covers_95_times_in_100():
  truth = hessian_trace(MODEL, models.cross_entropy, PARAMS, PEOPLE, num_groups=2).traces
  runs, probes = 500, 40
  keys = jax.random.split(KEY, runs)
  found = jax.lax.map(
    lambda key: hessian_trace(
      MODEL,
      models.cross_entropy,
      PARAMS,
      PEOPLE,
      num_groups=2,
      method="hutchinson",
      key=key,
      probes=probes,
    ),
    keys,
    batch_size=50,
  )
  t = stats.t.ppf(0.975, probes - 1)
  off = np.abs(found.traces.group - truth.group)
  covered = np.sum(off <= t * found.standard_error.group, axis=0)
  # Within the 1e-6 quantiles of a binomial, a little wider below: forms of
  # signs are not quite normal.
  low, high = stats.binom.ppf([1e-7, 1 - 1e-7], runs, [0.94, 0.96])
  assert np.all((covered >= low) & (covered <= high)), covered
  # The mean of all runs is unbiased: five and a half errors.
  mean = found.traces.group.mean(axis=0)
  error = found.traces.group.std(axis=0) / np.sqrt(runs)
  assert np.all(np.abs(mean - truth.group) < 5.5 * error)
  # People's own estimates average to their group's.
  own = np.asarray(found.per_person)[:, PEOPLE.group == 1].mean(axis=1)
  np.testing.assert_allclose(own, found.traces.group[:, 1], rtol=1e-3)
