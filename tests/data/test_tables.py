"""Reading delimited text: numbers, words, gaps, and what is refused."""

import csv
import io
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair.checks import ArgumentError
from jaxfair.data import _tables
from jaxfair.data._reading import parse


def test_parse_tells_numbers_from_words_and_keeps_gaps():
  text = 'age;job;score\n41;"cook; head";1e-005\n?; nurse ;\n'
  table = parse(text, separator=";")
  np.testing.assert_array_equal(table["age"], [41, np.nan])
  np.testing.assert_array_equal(table["score"], [1e-5, np.nan])
  assert table["job"].tolist() == ["cook; head", "nurse"]


def test_parse_without_header_skips_comments_and_blank_lines():
  table = parse("|head\n1, a\n\n2, ?\n", names=("n", "w"), comment="|")
  assert table["n"].tolist() == [1, 2]
  assert table["w"].tolist() == ["a", ""]


def test_repeated_and_empty_names_stay_apart():
  table = parse("AC,AC,,AC\n1,2,3,4\n")
  assert list(table) == ["AC", "AC.1", "column_2", "AC.2"]


def test_categorical_columns_stay_text():
  table = parse("zip\n01234\n90210\n", categorical=("zip",))
  assert table["zip"].tolist() == ["01234", "90210"]


def test_a_short_row_is_refused_with_its_number():
  with pytest.raises(ArgumentError, match="data row 2 has 1 cells where 2"):
    parse("a,b\n1,2\n3\n")


@pytest.mark.parametrize(("text", "separator"), [("", ","), ("a\n1\n", ",,")])
def test_unusable_text_is_refused(text, separator):
  with pytest.raises(ArgumentError):
    parse(text, separator=separator)


def test_header_alone_gives_empty_columns():
  assert _tables.size(parse("a,b\n")) == 0


WORDS = st.text(
  st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), min_size=1
).filter(lambda word: word not in _tables.MISSING)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
  st.lists(
    st.tuples(WORDS, st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=8
  )
)
def test_what_a_csv_writer_writes_is_read_back(rows):
  buffer = io.StringIO(newline="")
  csv.writer(buffer).writerows([("word", "number"), *rows])
  table = parse(buffer.getvalue(), categorical=("word",))
  assert table["word"].tolist() == [word for word, _ in rows]
  assert table["number"].tolist() == [number for _, number in rows]


def test_words_show_numbers_as_people_write_them():
  shown = _tables.words(np.array([1.0, 1234567.0, 0.1, np.nan, -2.0]))
  assert shown.tolist() == ["1", "1234567", "0.1", "", "-2"]


def test_recode_replaces_codes_and_leaves_the_rest():
  found = _tables.recode(np.array([1.0, 2.0, 3.0]), {"1": "male", "2": "female"})
  assert found.tolist() == ["male", "female", "3"]


def test_a_missing_column_names_the_nearest():
  with pytest.raises(ArgumentError, match=r"label 'incme'.*did you mean income"):
    _tables.column({"income": np.zeros(1)}, "incme", "label")


def test_agrees_with_pandas_on_a_mixed_file():
  rng = np.random.default_rng(0)
  frame = pd.DataFrame(
    {
      "x": rng.normal(size=50).round(6),
      "k": rng.integers(0, 5, 50),
      "w": rng.choice(["red", "green, dark", 'a "quoted" one'], 50),
    }
  )
  frame.loc[3, "x"] = np.nan
  table = parse(frame.to_csv(index=False))
  np.testing.assert_allclose(table["x"], frame.x)
  np.testing.assert_array_equal(table["k"], frame.k)
  assert table["w"].tolist() == frame.w.tolist()


def test_thousands_of_equal_names_take_a_moment():
  header = ["a"] * 20_000 + ["a.7", "a", "", "column_20002"]
  began = time.process_time()
  names = list(parse(",".join(header)))
  assert time.process_time() - began < 2.0  # cubic, it would be hours
  assert len(set(names)) == len(header)
  assert names[:3] == ["a", "a.1", "a.2"]
  assert names[-4:] == ["a.7.1", "a.20000", "column_20002", "column_20002.1"]
