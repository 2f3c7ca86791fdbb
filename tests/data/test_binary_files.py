"""Excel and Parquet files."""

import sys

import numpy as np
import pandas as pd
import pytest

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.data import DataError, read_table

FRAME = pd.DataFrame(
  {
    "name": ["Zoë", "Ann", "Bob; jr", "Eve"],
    "pay": [1.5, np.nan, -3.25, 1e6],
    "age": [20, 30, 40, 50],
    "hired": ["yes", "no", "yes", "no"],
  }
)


@pytest.mark.parametrize("ending", [".xlsx", ".parquet"])
def test_excel_and_parquet_give_the_same_people(tmp_path, ending):
  path, text = tmp_path / f"own{ending}", tmp_path / "own.csv"
  if ending == ".xlsx":
    FRAME.to_excel(path, index=False)
  else:
    FRAME.to_parquet(path, index=False)
  FRAME.to_csv(text, index=False)
  table = read_table(path)
  assert np.asarray(table["name"]).tolist() == FRAME.name.tolist()
  for name in ("pay", "age"):
    np.testing.assert_array_equal(table[name], FRAME[name])
  options = {"label": "hired", "group": (), "drop": ["name"]}
  mine, theirs = (data.from_csv(one, **options) for one in (path, text))
  np.testing.assert_array_equal(mine.examples.x, theirs.examples.x)
  assert mine.encoder.columns == theirs.encoder.columns
  assert mine.encoder.layout is None


@pytest.mark.parametrize("ending", [".xlsx", ".parquet"])
def test_without_the_extra_its_name_is_said(tmp_path, monkeypatch, ending):
  path = tmp_path / f"own{ending}"
  path.write_bytes(b"what")
  with pytest.raises(DataError, match="is not an intact file of its kind"):
    read_table(path)
  monkeypatch.setitem(sys.modules, "pandas", None)
  with pytest.raises(DataError, match=r"pip install 'jaxfair\[files\]', or save it as CSV"):
    read_table(path)
  monkeypatch.undo()
  with pytest.raises(DataError, match="cannot be read"):
    read_table(tmp_path / f"none{ending}")


@pytest.mark.parametrize("ending", [".xlsx", ".parquet"])
def test_a_column_of_dates_is_refused_unless_it_is_dropped(tmp_path, ending):
  path = tmp_path / f"own{ending}"
  dated = FRAME.assign(since=pd.date_range("2020-02-01", periods=len(FRAME)))
  if ending == ".xlsx":
    dated.to_excel(path, index=False)
  else:
    dated.to_parquet(path, index=False)
  options = {"label": "hired", "group": ()}
  with pytest.raises(ArgumentError, match=r"column 'since' holds dates; .* name it in drop="):
    data.from_csv(path, **options, drop=["name"])
  own = data.from_csv(path, **options, drop=["name", "since"])
  assert own.feature_names == ("pay", "age")
  np.testing.assert_array_equal(own.encoder.encode(own.encoder.read(path)).x, own.examples.x)
