"""Snapshots are of the very training that dp_sgd does."""

import dataclasses

import numpy as np
import pytest

from helpers.curved import KEY, people
from jaxfair import checks, models
from jaxfair.training import DpSgdConfig, dp_sgd
from jaxfair.training._snapshots import dp_sgd_snapshots

MODEL, LOSS, PEOPLE = models.logistic(3), models.cross_entropy, people()
CONFIG = DpSgdConfig(learning_rate=0.5, steps=4, batch_size=8)


@pytest.mark.slow
def test_the_last_snapshot_is_the_fit():
  whole = dp_sgd(MODEL, LOSS, PEOPLE, CONFIG, key=KEY)
  found = dp_sgd_snapshots(MODEL, LOSS, PEOPLE, CONFIG, count=2, key=KEY)
  assert found.steps.tolist() == [0, 2, 4]
  for name, leaf in whole.params.items():
    np.testing.assert_allclose(found.params[name], leaf, rtol=1e-5, atol=1e-6)
    start, middle, end = found.snapshots[name]
    np.testing.assert_array_equal(start, 0.0)  # where this model starts
    assert not np.allclose(middle, start)
    assert not np.allclose(middle, end)
    np.testing.assert_array_equal(end, found.params[name])
  np.testing.assert_allclose(found.trace.loss, whole.trace.loss, rtol=1e-5)


@pytest.mark.slow
def test_settings_may_change_between_snapshots():
  def stopped(config, params):
    return dataclasses.replace(config, learning_rate=0.0 * config.learning_rate)

  def same(config, params):
    return config

  plain, kept, held = (
    dp_sgd_snapshots(MODEL, LOSS, PEOPLE, CONFIG, count=2, key=KEY, update=update)
    for update in (None, same, stopped)
  )
  for name, leaf in plain.snapshots.items():
    np.testing.assert_allclose(kept.snapshots[name], leaf, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(held.snapshots[name][1], leaf[1], rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(held.snapshots[name][2], held.snapshots[name][1])


def test_refuses_unequal_distances():
  with pytest.raises(checks.ArgumentError, match="not a multiple of count=3"):
    dp_sgd_snapshots(MODEL, LOSS, PEOPLE, CONFIG, count=3, key=KEY)
