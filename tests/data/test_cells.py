"""Cells of delimited text against Python's own `float` and `csv`."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair.data import _cells, _tables
from jaxfair.data._cells import find_cells

HALFWAY = [str(2**53 + k) for k in range(-3, 9)] + ["4503599627370496.5", "4503599627370497.5"]
PLAIN = ["0", "-0", "+7", "007", ".5", "5.", "-.25", "1e5", "1E-400", "-inf", "Infinity", "1e999"]
LONG = [
  "0." + "0" * 21 + "5",
  "1" * 19,
  "1" * 20,
  "9" * 19,
  "0" * 25 + "1",
  "123456789." + "9" * 12,
]


def column(words, **options):
  content = "\n".join(words).encode()
  settings = {"text": False, "missing": _tables.MISSING, **options}
  return find_cells(content, "\t", 1, "utf-8").column(0, **settings)


def written():
  rng = np.random.default_rng(0)
  values = rng.normal(size=400) * 10.0 ** rng.integers(-6, 9, 400)
  forms = ["%.17g", "%.15g", "%.3f", "%.0f", "%.9e", "%.16f", "%.18f"]
  return [form % value for form in forms for value in values] + HALFWAY + PLAIN + LONG


@pytest.mark.parametrize("long", [True, False])
def test_numbers_are_those_of_python_to_the_last_bit(monkeypatch, long):
  if not long:  # a platform without long doubles
    monkeypatch.setattr(_cells, "_LONG", False)
    monkeypatch.setattr(_cells, "_MOST_DIGITS", 15)
  words = written()
  expected = np.array([float(word) for word in words])
  found = column(words)
  np.testing.assert_array_equal(found.view(np.uint64), expected.view(np.uint64))


def test_digits_are_read_at_once_and_not_one_by_one(monkeypatch):
  single = []
  monkeypatch.setattr(_cells, "number", lambda word, _: single.append(word) or float(word))
  words = [*(f"{k / 7:.4f}" for k in range(-99, 99)), "0.12345678901234567"]
  np.testing.assert_array_equal(column(words), [float(word) for word in words])
  assert single == words[:1]  # with fewer than eight bytes before its end


@pytest.mark.parametrize("word", ["1_000", "1,5", "1.2.3", "--1", "1-", "0x10", "٣", "1 2", "."])
def test_what_python_or_others_may_take_for_a_number_is_text(word):
  assert column(["1", word]).words == tuple(sorted(["1", word]))


def test_decimal_commas():
  found = column(["1,5", "-2", ",25", "3,"], decimal=",")
  np.testing.assert_array_equal(found, [1.5, -2, 0.25, 3])


CELLS = st.one_of(
  st.text(st.characters(codec="utf-8", exclude_characters="\x1e\x1f\0\r"), max_size=12),
  st.floats(allow_nan=False).map(repr),
  st.sampled_from(["", "NA", "?", " a", "a ", 'say "no"', "a,b", "x" * 300]),
)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
  rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=9),
  quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
  block=st.integers(1, 4),
)
def test_agrees_with_the_csv_module(rows, quoting, block):
  buffer = io.StringIO(newline="")
  csv.writer(buffer, quoting=quoting).writerows(rows)
  content = buffer.getvalue()
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(_cells, "_ROWS", block)
    patch.setattr(_cells, "_BLOCK", 7 * block)
    cells = find_cells(content.encode(), ",", 2, "utf-8")
    for place in range(2):
      read = [row[place] for row in csv.reader(io.StringIO(content, newline="")) if row]
      expected = ["" if (cell := one.strip()) in _tables.MISSING else cell for one in read]
      found = cells.column(place, text=True, missing=_tables.MISSING)
      assert np.asarray(found).tolist() == expected
      assert list(found.words) == sorted(set(expected))
      as_numbers = _tables.typed(expected)
      again = cells.column(place, text=False, missing=_tables.MISSING)
      assert _tables.is_number(as_numbers) == _tables.is_number(again)
      if _tables.is_number(again):
        np.testing.assert_array_equal(again, as_numbers)


def test_two_words_of_one_hash_stay_apart(monkeypatch):
  unique = np.unique
  monkeypatch.setattr(_cells.np, "unique", lambda x, **k: unique(x * np.uint64(0), **k))
  words = ["a", "b", "a", "longer than eight"]
  assert np.asarray(column(words, text=True)).tolist() == words


def test_text_that_has_our_own_separators_is_refused():
  with pytest.raises(_tables.checks.ArgumentError, match="control characters"):
    find_cells(b'"a\x1fb",c\n', ",", 2, "utf-8")
