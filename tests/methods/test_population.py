"""The people that methods are given."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxfair import checks, data, methods
from jaxfair.methods import _method

EVERYONE = data.gaussian_mixture(60, key=jax.random.key(0))
KEY = jax.random.key(1)


def test_the_first_part_is_public_and_the_second_private():
  split = data.prepare(EVERYONE, (0.2, 0.5, 0.3), key=KEY)
  people = methods.Population.prepared(split)
  assert people.public is split.parts[0]
  assert people.private is split.parts[1]
  assert people.scaler is split.scaler
  assert people.sizes == _method.Sizes(30, 12, (1,), 2, 2)
  none = dataclasses.replace(people, public=None)
  assert none.sizes.public == 0


def test_one_part_is_not_enough():
  with pytest.raises(checks.ArgumentError, match="one part"):
    methods.Population.prepared(data.prepare(EVERYONE, (1.0,), key=KEY))


def test_several_rows_of_one_person_are_refused():
  pairs = dataclasses.replace(EVERYONE, unit=np.arange(60) // 2)
  split = data.prepare(pairs, (0.4, 0.6), key=KEY)
  with pytest.raises(checks.ArgumentError, match="one row of each person"):
    methods.Population.prepared(split)
  alone = dataclasses.replace(EVERYONE, unit=np.arange(60))
  split = data.prepare(alone, (0.4, 0.6), key=KEY)
  methods.Population.prepared(split)


def test_people_are_a_pytree():
  split = data.prepare(EVERYONE, (0.4, 0.6), key=KEY)
  people = methods.Population.prepared(split)
  total = jax.jit(lambda own: own.private.x.sum() + own.sizes.private)(people)
  assert np.isclose(total, people.private.x.sum() + 36, rtol=1e-5)
