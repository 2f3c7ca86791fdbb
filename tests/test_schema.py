"""Plain values against types: one line for whatever is wrong."""

import dataclasses
import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxfair import _schema
from jaxfair.checks import ArgumentError


@dataclasses.dataclass(frozen=True)
class Part:
  size: int = 1


@dataclasses.dataclass(frozen=True)
class Record:
  name: str
  kind: Literal["a", "b"] = "a"
  rate: float = 0.0
  notes: tuple[str, ...] = ()
  words: dict[str, str] = dataclasses.field(default_factory=dict)
  maybe: float | None = None
  part: Part = Part()
  parts: tuple[Part, ...] = ()
  other: Any = None


WHOLE = {
  "name": "n",
  "kind": "b",
  "rate": 2,
  "notes": ["x", "y"],
  "words": {"k": "v"},
  "maybe": None,
  "part": {"size": 3},
  "parts": [{"size": 4}, {}],
  "other": [{}],
}


def read(path, text):
  path.write_text(text, encoding="utf-8")
  return _schema.read_json(path, Record, remedy="delete it")


def test_a_file_becomes_what_it_describes(tmp_path):
  assert read(tmp_path / "a.json", json.dumps(WHOLE)) == Record(
    "n", "b", 2.0, ("x", "y"), {"k": "v"}, None, Part(3), (Part(4), Part()), [{}]
  )


@pytest.mark.parametrize(
  ("text", "told"),
  [
    ("", "Expecting value"),
    ("{", "damaged"),
    ("[]", "no table of names"),
    ("3", "no table of names"),
    ("{}", "name: missing"),
    ('{"name": 3}', "name=3 must be a string"),
    ('{"name": "n", "rat": 3}', "rat: unknown key; .*did you mean rate"),
    ('{"name": "n", "kind": "c"}', "kind='c' is not known; use one of a, b"),
    ('{"name": "n", "kind": []}', r"kind=\[\] is not known"),
    ('{"name": "n", "rate": NaN}', "NaN is not a number"),
    ('{"name": "n", "rate": 1%s}' % ("0" * 400), "rate=<a whole number of"),
    ('{"name": "n", "rate": 1%s}' % ("0" * 5000), "damaged"),
    ('{"name": "n", "rate": true}', "rate=True must be a number"),
    ('{"name": "n", "notes": "x"}', "notes='x' must be a list"),
    ('{"name": "n", "notes": [1]}', r"notes\[0\]=1 must be a string"),
    ('{"name": "n", "words": []}', r"words=\[\] must be a table"),
    ('{"name": "n", "words": {"k": 1}}', r"words\.k=1 must be a string"),
    ('{"name": "n", "part": {"size": 1.5}}', r"part\.size=1\.5 must be a wh"),
    ('{"name": "n", "parts": [3]}', r"parts\[0\]=3 must be a table"),
    ("[" * 100_000, "nested too deeply"),
  ],
)
def test_a_damaged_file_is_one_line_with_path_and_remedy(tmp_path, text, told):
  path = tmp_path / "a.json"
  with pytest.raises(ArgumentError, match=told) as caught:
    read(path, text)
  message = str(caught.value)
  assert message.startswith(f"{path} is damaged (")
  assert message.endswith("; delete it")
  assert len(message) < 1000


def test_what_cannot_be_read_is_said(tmp_path):
  with pytest.raises(ArgumentError, match="cannot be read"):
    _schema.read_json(tmp_path, Record, remedy="look")
  (tmp_path / "a.json").write_bytes(b'"\xff"')
  with pytest.raises(ArgumentError, match="damaged"):
    _schema.read_json(tmp_path / "a.json", Record, remedy="look")


json_values = st.recursive(
  st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
  lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(WHOLE)), inner, max_size=4)
  ),
  max_leaves=8,
)


@given(json_values)
def test_any_json_is_taken_or_refused(value):
  values = WHOLE | value if isinstance(value, dict) else {"name": value}
  try:
    built = _schema.build(Record, values)
  except ArgumentError as error:
    assert "\n" not in str(error)  # noqa: PT017
  else:
    assert isinstance(built, Record)


def test_a_part_is_checked_without_the_rest():
  _schema.check_part(Record, {"rate": 1, "part": {"size": 2}}, where="s.")
  for wrong, told in (
    ({"rat": 1}, "s.rat: unknown key"),
    ({"part": {"sise": 1}}, "s.part.sise: unknown key"),
    ({"part": {"size": "x"}}, "s.part.size='x' must be"),
  ):
    with pytest.raises(ArgumentError, match=told):
      _schema.check_part(Record, wrong, where="s.")
