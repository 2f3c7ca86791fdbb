"""Shares of a frontier's volume, on methods whose reach is known."""

import jax
import numpy as np
import pytest

from jaxfair import frontier
from jaxfair.checks import ArgumentError
from jaxfair.frontier import _objectives, _shares

KEY = jax.random.key(0)
TWO = (_objectives.Objective("cost", "low"), _objectives.Objective("value", "high"))


def cloud(means, seeds=4):
  return frontier.points(np.repeat(np.array(means)[:, None], seeds, 1), TWO)


def test_shares_are_quotients_of_volumes():
  # Both axes reach from 0 to 1; the reference lies 0.05 beyond the worst.
  points = cloud([[0.0, 0.0], [0.0, 0.5], [0.5, 1.0], [1.0, 1.0]])
  found = _shares.volume_shares(points, ["a", "a", "b", "b"], key=KEY, draws=5)
  whole = 1.05 * 0.55 + 0.55 * 0.5
  assert found["a"].settings == found["b"].settings == 2
  assert found["a"].volume.estimate == pytest.approx(1.05 * 0.55 / whole)
  assert found["b"].volume.estimate == pytest.approx(0.55 * 1.05 / whole)
  # All seeds are equal, so nothing is uncertain.
  assert found["a"].volume.low == found["a"].volume.high


def test_units_do_not_matter_and_no_privacy_reaches_nothing():
  means = np.array([[1.0, 0.2], [2.0, 0.6], [4.0, 0.8], [np.inf, 0.9]])
  labels = ["a", "b", "a", "plain"]
  plain = _shares.volume_shares(cloud(means), labels, key=KEY, draws=3)
  scaled = _shares.volume_shares(cloud(means * [10.0, 100.0]), labels, key=KEY, draws=3)
  for name in ("a", "b"):
    assert scaled[name].volume.estimate == pytest.approx(plain[name].volume.estimate)
  assert plain["plain"].volume.estimate == 0.0


def test_noise_widens_the_interval():
  rng = np.random.default_rng(0)
  values = rng.random((6, 1, 2)) + 0.05 * rng.normal(size=(6, 5, 2))
  found = _shares.volume_shares(frontier.points(values, TWO), list("aaabbb"), key=KEY, draws=50)
  assert found["a"].volume.low < found["a"].volume.high


def test_one_label_for_each_setting():
  with pytest.raises(ArgumentError, match="labels has 1 entries for 2"):
    _shares.volume_shares(cloud([[0.0, 1.0], [1.0, 2.0]]), ["a"], key=KEY)
