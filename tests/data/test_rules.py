"""Rules that make class and group ids."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair.checks import ArgumentError
from jaxfair.data import _rules

TABLE = {
  "sex": np.array(["F", "M", "F", "X"]),
  "age": np.array([24.0, 25.0, 60.0, np.nan]),
  "code": np.array([10.0, 2.0, 2.0, 10.0]),
}


def test_values_sorts_numbers_as_numbers():
  ids, names = _rules.values("code").assign(TABLE)
  assert names == ("2", "10")
  assert ids.tolist() == [1, 0, 0, 1]


def test_values_with_names_orders_renames_and_leaves_out():
  ids, names = _rules.values("sex", {"M": "male", "F": "female"}).assign(TABLE)
  assert names == ("male", "female")
  assert ids.tolist() == [1, 0, 1, _rules.LEFT_OUT]


def test_against_takes_everything_else_as_the_rest():
  ids, names = _rules.against("sex", "F", ("others", "women")).assign(TABLE)
  assert (ids.tolist(), names) == ([1, 0, 1, 0], ("others", "women"))


def test_bins_include_their_lower_edge_and_gather_unknowns():
  ids, names = _rules.bins("age", (25, 60)).assign(TABLE)
  assert ids.tolist() == [0, 1, 2, 3]
  assert names == ("age < 25", "25 <= age < 60", "age >= 60", "missing")


def test_above_is_strict_and_defaults_to_the_median():
  table = {"r": np.array([1.0, 2.0, 3.0, 2.0, np.nan])}
  ids, names = _rules.above("r").assign(table)
  assert ids.tolist() == [0, 0, 1, 0, _rules.LEFT_OUT]
  assert names == ("r <= 2", "r > 2")


@pytest.mark.parametrize("edges", [(), (3, 3), (5, 1)])
def test_bins_refuse_edges_that_do_not_rise(edges):
  with pytest.raises(ArgumentError, match="increasing"):
    _rules.bins("age", edges)


def test_words_cannot_be_binned():
  with pytest.raises(ArgumentError, match="'sex' holds text"):
    _rules.bins("sex", (1,)).assign(TABLE)


def test_everyone_is_one_group():
  ids, names = _rules.everyone().assign(TABLE)
  assert (ids.tolist(), names) == ([0, 0, 0, 0], ("everyone",))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("FMX"), st.sampled_from("abc")), min_size=1))
def test_cross_agrees_with_brute_force(rows):
  table = {"sex": np.array([sex for sex, _ in rows]), "race": np.array([race for _, race in rows])}
  rule = _rules.cross([_rules.values("sex", {"F": "F", "M": "M"}), _rules.values("race")])
  ids, names = rule.assign(table)
  found = [names[i] if i >= 0 else None for i in ids]
  assert found == [f"{sex}, {race}" if sex != "X" else None for sex, race in rows]
  present = {(s, r) for s, r in rows if s != "X"}
  ordered = [p for p in itertools.product("FM", "abc") if p in present]
  assert names == tuple(f"{sex}, {race}" for sex, race in ordered)
  assert rule.columns == ("sex", "race")
