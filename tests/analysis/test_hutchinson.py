"""Estimated traces: unbiased, and their intervals cover."""

import jax
import numpy as np
from scipy import stats

from helpers.curved import KEY, moved, people
from jaxfair import models
from jaxfair.analysis import hessian_trace
from jaxfair.analysis.curvature import _estimated

MODEL = models.mlp(4, 3, "tanh")
PEOPLE = people()
PARAMS = moved(MODEL, PEOPLE)


def test_the_interval_covers_95_times_in_100():
  truth = hessian_trace(
    MODEL, models.cross_entropy, PARAMS, PEOPLE, num_groups=2
  ).traces
  runs, probes = 1000, 40
  keys = jax.random.split(KEY, runs)
  found = jax.lax.map(
    lambda key: _estimated(
      MODEL, models.cross_entropy, PARAMS, PEOPLE, 2, probes, key
    )._replace(per_person=None, probes=None),
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


def test_per_person_estimates_average_to_the_groups():
  found = hessian_trace(
    MODEL, models.cross_entropy, PARAMS, PEOPLE, num_groups=2,
    method="hutchinson", key=KEY, probes=20,
  )  # fmt: skip
  for a in (0, 1):
    own = np.asarray(found.per_person)[PEOPLE.group == a]
    np.testing.assert_allclose(own.mean(), found.traces.group[a], rtol=1e-4)
  assert np.all(found.standard_error.group > 0)
  assert found.probes == 20
