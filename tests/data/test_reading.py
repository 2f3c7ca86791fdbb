"""Files as people have them: separators, decimals, encodings."""

import codecs
import gzip

import numpy as np
import pandas as pd
import pytest

from jaxfair.checks import ArgumentError
from jaxfair.data import _reading, read_table

FRAME = pd.DataFrame(
  {
    "name": ["Zoë", "Ann", "Bob; jr", "Eve"],
    "pay": [1.5, np.nan, -3.25, 1e6],
    "age": [20, 30, 40, 50],
    "hired": ["yes", "no", "yes", "no"],
  }
)


def same(table):
  assert list(table) == list(FRAME)
  assert np.asarray(table["name"]).tolist() == FRAME.name.tolist()
  for name in ("pay", "age"):
    np.testing.assert_array_equal(table[name], FRAME[name])


@pytest.mark.parametrize(("separator", "decimal"), [",.", ";.", ";,", "\t.", "\t,", "|.", "|,"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("line", ["\n", "\r\n", "\r"])
def test_how_a_file_is_written_is_found_out(tmp_path, separator, decimal, encoding, line):
  path = tmp_path / "own.csv"
  text = FRAME.to_csv(index=False, sep=separator, decimal=decimal, lineterminator=line)
  path.write_bytes(text.encode(encoding))
  same(read_table(path))
  options = {"separator": separator, "decimal": decimal, "encoding": encoding}
  same(read_table(path, **options))
  if encoding == "utf-16":  # without a byte order mark, as some databases write it
    for order in ("utf-16-le", "utf-16-be"):
      path.write_bytes(text.encode(order))
      same(read_table(path))
  _, layout = _reading.read_file(path)
  assert (layout.separator, layout.decimal) == (separator, decimal)
  assert layout.encoding == ("cp1252" if encoding == "cp1252" else "utf-8")


def test_a_packed_file_and_one_without_a_last_line_end(tmp_path):
  content = FRAME.to_csv(index=False).strip().encode()
  (tmp_path / "own.csv.gz").write_bytes(gzip.compress(content))
  same(read_table(tmp_path / "own.csv.gz"))


def test_names_of_columns_may_be_quoted_and_broken(tmp_path):
  path = tmp_path / "own.csv"
  path.write_text('\n"the\nname", "pay, gross",age\n"a\nb",1,2\n\n"c",3,4\n')
  table = read_table(path)
  assert list(table) == ["the\nname", "pay, gross", "age"]
  assert table["the\nname"].words == ("a\nb", "c")
  assert table["pay, gross"].tolist() == [1, 3]


def test_columns_can_be_kept_as_text_or_skipped(tmp_path):
  path = tmp_path / "own.csv"
  path.write_text("zip,id,v\n01,7,-\n1,8,3\n")
  table = read_table(path, text=["zip"], skip=["id"], missing=["-"])
  assert list(table) == ["zip", "v"]
  assert table["zip"].words == ("01", "1")
  np.testing.assert_array_equal(table["v"], [np.nan, 3])


def test_a_byte_order_mark_is_no_part_of_a_name_in_any_encoding(tmp_path):
  path = tmp_path / "people.csv"
  for encoding in ("utf-8", "latin-1"):
    path.write_bytes(codecs.BOM_UTF8 + "alter;größe\n1;2\n".encode(encoding))
    assert list(_reading.read_table(path)) == ["alter", "größe"]


def test_latin_1_reads_what_windows_does_not(tmp_path):
  path = tmp_path / "own.csv"
  path.write_bytes(b"a,b\n\x81,\xe9\n")
  assert _reading.read_file(path)[1].encoding == "latin-1"
  assert read_table(path)["b"].words == ("é",)


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"decimal": ";"}, "decimal=';' is not known"),
    ({"decimal": ",", "separator": ","}, "decimal=',' is also the separator"),
  ],
)
def test_options_that_cannot_be_are_refused(tmp_path, options, message):
  path = tmp_path / "own.csv"
  path.write_text("a;b\n1;2\n")
  with pytest.raises(ArgumentError, match=message):
    read_table(path, **options)
