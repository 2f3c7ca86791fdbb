"""pyarrow reads columns as the reader of cells does, or leaves them to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxfair.data import _arrow_cells, _tables
from jaxfair.data._arrow_cells import read_columns
from jaxfair.data._cells import find_cells

pytest.importorskip("pyarrow")
NUMBERS = ["1", "-0", "2.50", "1e5", ".5", "5.", "0.1234567890123456789", "NA", "", "?"]
STRANGE = [
  "+7",
  "+-7",
  "++7",
  "--1",
  "1e",
  "1.2.3",
  "1f",
  "٣",
  "-",
  ".",
  "1 2",
  "1\t",
  " 3",
  "nan",
  "inf",
  "Infinity",
  "1E-400",
  "1e999",
  "0x10",
  "1_0",
  "2020-01-01",
]
WORDS = ["a", " a", "a ", "true", "é", "NA ", "12a", "N/A"]


@pytest.fixture(autouse=True)
def short_texts(monkeypatch):
  monkeypatch.setattr(_arrow_cells, "LEAST", 0)


def read(content, width, *, text=(), missing=_tables.MISSING):
  places = {f"c{place}": place for place in range(width)}
  return read_columns(content, ",", width, "utf-8", places, start=0, text=text, missing=missing)


def same(found, content, width, *, text=(), missing=_tables.MISSING):
  cells = find_cells(content, ",", width, "utf-8")
  for place in range(width):
    name = f"c{place}"
    expected = cells.column(place, text=name in text, missing=missing)
    if isinstance(expected, _tables.Text):
      assert found[name].words == expected.words
      np.testing.assert_array_equal(found[name].codes, expected.codes)
    else:
      np.testing.assert_array_equal(
        found[name].view(np.uint64) * ~np.isnan(expected),
        expected.view(np.uint64) * ~np.isnan(expected),
      )
      np.testing.assert_array_equal(np.isnan(found[name]), np.isnan(expected))


def test_numbers_and_words():
  rows = [f"{NUMBERS[k % 10]},{WORDS[k % 8]},{k % 3},{k / 7!r}" for k in range(60)]
  content = "\n".join(rows).encode()
  found = read(content, 4, text=("c2",))
  same(found, content, 4, text=("c2",))
  assert isinstance(found["c2"], _tables.Text)
  assert found["c0"].dtype == np.float64


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
  rows=st.lists(
    st.tuples(*2 * [st.sampled_from(NUMBERS + STRANGE + WORDS) | st.floats().map(repr)]),
    min_size=1,
    max_size=8,
  ),
  common=st.booleans(),
)
def test_whatever_it_reads_is_the_same(rows, common):
  """A first column of numbers only, with a strange cell now and then, is the usual case."""
  if common:
    rows = [("1.5", second) for _, second in rows] + [(rows[0][0], "b")]
  content = "\n".join(map(",".join, rows)).encode()
  found = read(content, 2)
  if found is not None:
    same(found, content, 2)


@pytest.mark.parametrize("word", ["+-7", "inf", "word", "1e999", "0x10"])
def test_a_strange_cell_behind_the_sample_is_left_to_the_other_reader(monkeypatch, word):
  monkeypatch.setattr(_arrow_cells, "_SAMPLE", 16)
  assert read(b"1.5\n" * 20, 1) is not None
  assert read(b"1.5\n" * 20 + word.encode() + b"\n", 1) is None


@pytest.mark.parametrize("content", [b'"1",2\n', b"1,2\r\n3,4\r\n", b"1,2\n3\n"])
def test_what_is_left_to_the_other_reader(content):
  assert read(content, 2) is None
