"""Prepare: the scaler sees the training part only, persons stay together."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxfair.checks import ArgumentError
from jaxfair.data import Dataset, prepare, two_gaussians
from jaxfair.types import Examples

KEY = jax.random.key(3)


def gappy():
  base = two_gaussians((150, 50), key=KEY)
  x = base.examples.x.copy()
  x[::7, 0] = np.nan
  return dataclasses.replace(base, examples=base.examples._replace(x=x))


@pytest.mark.slow
def test_training_part_is_standardized_and_everything_is_finite():
  prepared = prepare(gappy(), (0.6, 0.2, 0.2), key=KEY)
  assert [part.size for part in prepared.parts] == [120, 40, 40]
  np.testing.assert_allclose(prepared.train.x.mean(0), 0, atol=1e-5)
  assert all(np.isfinite(part.x).all() for part in prepared.parts)
  assert prepared.test is prepared.parts[-1]


def numbered(dataset):
  """The same rows with their number as every feature."""
  rows = np.arange(dataset.size, dtype=np.float32)
  return dataclasses.replace(
    dataset, examples=dataset.examples._replace(x=np.stack([rows, rows], 1))
  )


def test_the_scaler_never_sees_the_other_parts():
  """Moving every test row by 1000 changes no training feature."""
  dataset = gappy()
  test_rows = prepare(numbered(dataset), key=KEY, scale="none").test.x[:, 0]
  moved = dataset.examples.x.copy()
  moved[test_rows.astype(int)] += 1000
  far = dataclasses.replace(dataset, examples=dataset.examples._replace(x=moved))
  near, away = prepare(dataset, key=KEY), prepare(far, key=KEY)
  np.testing.assert_array_equal(near.train.x, away.train.x)
  assert (away.test.x - near.test.x)[:, 1].min() > 100


def test_persons_stay_together():
  unit = np.repeat(np.arange(40), 5)
  dataset = dataclasses.replace(gappy(), unit=unit)
  tagged = dataclasses.replace(
    dataset, examples=dataset.examples._replace(x=np.stack([unit, unit], 1).astype(np.float32))
  )
  parts = prepare(tagged, key=KEY, scale="none").parts
  assert not set(parts[0].x[:, 0]) & set(parts[1].x[:, 0])


def test_official_parts_are_the_publishers():
  test_rows = np.arange(200) >= 160
  dataset = dataclasses.replace(gappy(), test_rows=test_rows)
  parts = prepare(numbered(dataset), "official", key=KEY, scale="none").parts
  train, test = parts
  assert sorted(test.x[:, 0]) == list(range(160, 200))
  assert sorted(train.x[:, 0]) == list(range(160))


def test_what_cannot_be_is_refused():
  with pytest.raises(ArgumentError, match="no official test part"):
    prepare(gappy(), "official", key=KEY)
  with pytest.raises(ArgumentError, match="fractions='offical'"):
    prepare(gappy(), "offical", key=KEY)
  with pytest.raises(ArgumentError, match="key must be"):
    prepare(gappy(), key=0)


def test_images_keep_their_shape():
  images = Dataset(
    "toy",
    Examples(
      np.random.default_rng(0).uniform(size=(20, 4, 4, 1)).astype(np.float32),
      np.arange(20) % 2,
      np.arange(20) % 2,
    ),
    ("0", "1"),
    ("a", "b"),
  )
  prepared = prepare(images, key=KEY, scale="none")
  assert prepared.train.x.shape == (15, 4, 4, 1)
  assert prepared.train.x.dtype == np.float32
