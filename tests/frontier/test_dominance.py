"""Non-dominated sets against the definition, point by point."""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jaxfair import frontier
from jaxfair.checks import ArgumentError
from jaxfair.frontier import _dominance


def by_definition(costs):
  return np.array([not any((b <= a).all() and (b < a).any() for b in costs) for a in costs], bool)


@hypothesis.given(
  arrays.arrays(
    np.int64, st.tuples(st.integers(0, 30), st.integers(1, 5)), elements=st.integers(0, 4)
  ),
  st.data(),
)
@hypothesis.settings(max_examples=60)
def test_it_is_the_definition(values, data):
  dims = values.shape[1]
  signs = data.draw(st.lists(st.sampled_from([1, -1]), min_size=dims, max_size=dims))
  better = ["low" if sign == 1 else "high" for sign in signs]
  found = frontier.non_dominated(values, better)
  assert found.on.tolist() == by_definition(values * signs).tolist()
  assert found.dropped == 0


def test_many_blocks_agree_with_the_compiled_form():
  rng = np.random.default_rng(0)
  values = rng.integers(0, 12, size=(900, 4)).astype(np.float64)
  on = frontier.non_dominated(values, ["low"] * 4).on
  assert on.tolist() == (~np.asarray(_dominance.dominated(values))).tolist()
  assert on.tolist() == by_definition(values).tolist()
  assert 0 < on.sum() < 900


def test_duplicates_stay_and_infinities_compare():
  values = [[1, 2], [1, 2], [np.inf, 0], [np.inf, 1], [2, 2]]
  on = frontier.non_dominated(values, ["low", "low"]).on
  assert on.tolist() == [True, True, True, False, False]


def test_missing_values_are_refused_or_counted():
  values = [[1.0, 2.0], [np.nan, 0.0], [2.0, 3.0]]
  with pytest.raises(ArgumentError, match="1 rows with NaN"):
    frontier.non_dominated(values, ["low", "low"])
  found = frontier.non_dominated(values, ["low", "low"], missing="drop")
  assert found.on.tolist() == [True, False, False]
  assert found.dropped == 1


def test_one_direction_per_column():
  with pytest.raises(ArgumentError, match=r"pass \(points, 3\)"):
    frontier.non_dominated(np.ones((4, 2)), ["low"] * 3)


def test_the_compiled_form_maps():
  values = np.array([[[0, 1], [1, 0], [1, 1]], [[0, 0], [0, 0], [0, 1]]])
  found = jax.vmap(_dominance.dominated)(values)
  assert found.tolist() == [[False, False, True], [False, False, True]]
