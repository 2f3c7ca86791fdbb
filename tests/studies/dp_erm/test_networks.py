"""Many private trainings in one program."""

import jax
import numpy as np
import pytest

from helpers import dp_erm_runs
from jaxfair import checks
from jaxfair.experiments import _config
from jaxfair.studies.dp_erm import common, networks
from jaxfair.studies.dp_erm.networks import Training


@pytest.mark.slow
def test_seeds_are_paired_across_values():
  made_up = dp_erm_runs.two_groups()
  settings = Training(hidden=2, steps=4, snapshots=2, plain_steps=1)
  made = networks.Setup(
    networks.NetworkConfig(training=settings, seeds=3),
    {"data": "bank"},
    common.Sample(made_up.examples, made_up),
    settings.model(2),
    jax.random.key(1),
    optimum=None,
    plain=None,
  )

  def look(params, people, key):
    return params["layer_0"]["w"], jax.random.uniform(key)

  (found, drawn), accuracy = made.train(look, [0.1, 0.1, 9.0])
  assert accuracy.shape == (3, 3, 3)
  assert ((accuracy >= 0) & (accuracy <= 1)).all()
  assert found.shape == (3, 3, 3, 3, 2)  # values, seeds, looks, weights
  np.testing.assert_array_equal(found[0], found[1])
  np.testing.assert_array_equal(found[0, :, 0], found[2, :, 0])
  assert np.abs(found[0, :, -1] - found[2, :, -1]).max() > 0
  assert np.abs(found[0, 0, -1] - found[0, 1, -1]).max() > 0
  assert len(np.unique(drawn[0])) == 9  # looks have keys of their own


def test_looks_are_at_equal_distances():
  assert Training(steps=6, snapshots=3).looks == [0, 2, 4, 6]
  with pytest.raises(checks.ArgumentError, match="not a multiple"):
    Training(steps=7, snapshots=3)


def test_a_batch_larger_than_the_people_is_refused():
  with pytest.raises(_config.ConfigError, match="at most max_people"):
    dp_erm_runs.plan("fig_3_3", "max_people=60", "training.batch_size=61")
