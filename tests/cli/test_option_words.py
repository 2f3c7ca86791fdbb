"""Messages of the library name the options of the command line."""

import pytest

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.cli import _option_words

ROWS = 40
COLUMNS = {
  "age": [20 + 7 * i % 50 for i in range(ROWS)],
  "sex": ["F", "M"] * (ROWS // 2),
  "hired": ["yes", "no", "no", "yes"] * (ROWS // 4),
}
WRONG = {
  "constant": ({"land": ["DE"] * ROWS}, {}, "in every row; name it in --drop"),
  "classes": (
    {"hired": ["a", "b", "c", "d"] * (ROWS // 4)},
    {},
    "pass --positive 'a' for one of them against the rest, or --set data.multiclass=true for one",
  ),
  "numbers": ({}, {"label": "age"}, "pass --set data.threshold=NUMBER to split it at a value, or "),
  "bins": ({}, {"group": "age"}, "pass --set 'data.bins=[25, 60]', with your own edges, to cut it"),
  "small group": (
    {"sex": ["X", *(["F", "M"] * ROWS)[: ROWS - 1]]},
    {},
    "or pass --set data.min_group_size=1",
  ),
  "dates": (
    {"since": [f"2020-01-{i % 28 + 1}" for i in range(ROWS)]},
    {},
    "name it in --drop, or name it in --set 'data.categorical=[\"NAME\"]' if these are codes",
  ),
  "row numbers": ({"id": list(range(ROWS))}, {}, "its range (--range NAME=LOW:HIGH) if it is a"),
  "infinite": ({"pay": [1e300 + i * 1e299 for i in range(ROWS)]}, {}, "--range pay=LOW:HIGH"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_option_is_named_in_place_of_an_argument(name):
  changed, roles, told = WRONG[name]
  options = {"label": "hired", "group": "sex"} | roles
  with pytest.raises(ArgumentError) as caught, _option_words.in_options():
    data.from_frame({**COLUMNS, **changed}, **options)
  assert told in str(caught.value)
