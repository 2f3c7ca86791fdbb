"""Bring your own: frames, mappings and CSV files."""

import functools
import gzip
import types

import jax
import numpy as np
import pandas as pd
import pytest

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.data import DataError, from_csv, prepare

from_frame = functools.partial(data.from_frame, min_group_size=1)

COLUMNS = {
  "person": ["ann", "bob", "cyn", "dan", "eve", "fay"],
  "sex": ["F", "M", "F", "M", "F", None],
  "age": [20, 35, 61, 44, 30, 70],
  "pay": [1.5, np.nan, 3.0, 2.5, 9.0, 4.0],
  "job": ["cook", "nurse", "cook", "", "nurse", "cook"],
  "hired": ["yes", "no", "no", "yes", "yes", "no"],
}


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_a_frame_or_mapping_in_one_call(make):
  own = from_frame(make(COLUMNS), label="hired", group="sex", drop=["person"])
  assert own.class_names == ("no", "yes")
  assert own.group_sizes == {"missing": 1, "F": 3, "M": 2}
  assert own.columns == ("age", "pay", "job", "job", "job")
  assert own.feature_names[2:] == ("job=missing", "job=cook", "job=nurse")
  assert np.isnan(own.examples.x[1, 1])
  assert own.examples.y.tolist() == [1, 0, 0, 1, 1, 0]


def test_csv_agrees_with_the_frame(tmp_path):
  frame = pd.DataFrame(COLUMNS)
  plain, packed = tmp_path / "own.csv", tmp_path / "own.csv.gz"
  plain.write_text(frame.to_csv(index=False, sep=";"))
  packed.write_bytes(gzip.compress(plain.read_bytes()))
  expected = from_frame(frame, label="hired", group=["sex"], drop=["person"])
  for path in (plain, packed):
    own = from_csv(path, label="hired", group="sex", drop=["person"], min_group_size=1)
    assert own.name == "own"
    np.testing.assert_array_equal(own.examples.x, expected.examples.x)
    assert own.feature_names == expected.feature_names
    assert own.group_names == expected.group_names


def test_bins_intersections_and_units():
  own = from_frame(
    {**COLUMNS, "sex": ["F", "M", "F", "M", "F", "M"]},
    label="hired",
    group=("sex", "age"),
    bins={"age": [40]},
    unit="person",
  )
  assert own.group_names == ("F, age < 40", "F, age >= 40", "M, age < 40", "M, age >= 40")
  assert own.unit.tolist() == [0, 1, 2, 3, 4, 5]
  assert "age" not in own.columns
  assert "person" not in own.columns


def test_label_rules():
  above = from_frame(COLUMNS, label="age", group=(), threshold=40, drop=["pay"])
  assert above.examples.y.tolist() == [0, 0, 1, 1, 0, 1]
  assert above.group_names == ("everyone",)
  jobs = {**COLUMNS, "job": ["cook", "nurse", "cook", "baker", "nurse", "cook"]}
  cook = from_frame(jobs, label="job", group="hired", positive="cook")
  assert cook.examples.y.tolist() == [1, 0, 1, 0, 0, 1]
  numbers = {"y": [2, 10, 2, 10], "g": ["a", "b", "a", "b"]}
  assert from_frame(numbers, label="y", group="g").class_names == ("2", "10")
  true = {"y": [True, False, True], "g": ["a", "b", "a"]}
  own = from_frame(true, label="y", group="g", positive=True)
  assert own.examples.y.tolist() == [1, 0, 1]


def test_the_positive_value_of_two_keeps_the_name_of_the_other():
  answers = {"y": ["ja", "nein", "ja"] * 4, "x": [1.0, 2.0, 3.0] * 4}
  own = from_frame(answers, label="y", group=(), positive="ja")
  assert own.class_names == ("nein", "ja")
  assert own.examples.y.tolist() == [1, 0, 1] * 4


def test_codes_become_one_hot_when_named():
  own = from_frame(
    {"zip": [10, 2, 10], "y": ["a", "b", "a"], "g": ["p", "q", "p"]},
    label="y",
    group="g",
    categorical=["zip"],
  )
  assert own.feature_names == ("zip=10", "zip=2")


def test_pandas_types_are_understood():
  frame = pd.DataFrame(
    {
      "c": pd.Categorical(["x", None, "y"]),
      "i": pd.array([1, None, 3], dtype="Int64"),
      "b": [True, False, True],
      "y": ["u", "v", "u"],
      "g": ["p", "q", "p"],
    }
  )
  own = from_frame(frame, label="y", group="g")
  assert own.feature_names == ("c=missing", "c=x", "c=y", "i", "b")
  np.testing.assert_array_equal(own.examples.x[:, 3], [1, np.nan, 3])
  np.testing.assert_array_equal(own.examples.x[:, 4], [1, 0, 1])


def test_own_data_can_be_prepared():
  own = from_frame(COLUMNS, label="hired", group="sex", drop=["person"])
  prepared = prepare(own, (0.5, 0.5), key=jax.random.key(0))
  assert prepared.train.size == 3


@pytest.mark.parametrize(
  ("changes", "options", "message"),
  [
    ({}, {"label": "hird"}, r"label 'hird'.*did you mean hired"),
    ({}, {"group": "sexx"}, r"group 'sexx'.*did you mean sex"),
    ({}, {"drop": ["persn"]}, r"drop 'persn'.*did you mean person"),
    ({}, {"unit": "no"}, "unit 'no' is not a column"),
    ({"hired": ["yes"] * 6}, {}, "one class only"),
    ({"hired": ["yes", None] * 3}, {}, r"missing in 3 rows \(the first is data row 2"),
    ({}, {"label": "pay"}, "missing in 1 rows"),
    ({}, {"positive": "maybe"}, "positive='maybe' is not a value"),
    ({}, {"positive": "yes", "threshold": 1.0}, "pass one of them"),
    ({}, {"group": "age", "bins": {"age": [99]}}, "'age >= 99' empty"),
    ({}, {"group": "age", "bins": {"age": [50, 20]}}, "increasing"),
    ({}, {"bins": {"age": [50]}}, "not columns of group="),
    ({}, {"group": "person", "drop": [], "max_groups": 3}, "6 different values"),
    ({}, {"group": ("sex", "job"), "max_groups": 3}, "makes [4-9] groups"),
    ({"age": [1, 2]}, {}, "one row per person"),
    ({"age": [[1, 2]] * 6}, {}, "one value a row"),
  ],
)
def test_mistakes_are_told_in_one_line(changes, options, message):
  call = {"label": "hired", "group": "sex", "drop": ["person"], **options}
  with pytest.raises(ArgumentError, match=message) as caught:
    from_frame({**COLUMNS, **changes}, **call)
  assert "\n" not in str(caught.value)


def test_measurements_need_bins_or_a_threshold():
  rng = np.random.default_rng(0)
  own = {"v": rng.normal(size=60), "g": ["a", "b"] * 30, "y": ["u", "v"] * 30}
  with pytest.raises(ArgumentError, match="pass threshold="):
    from_frame(own, label="v", group="g")
  with pytest.raises(ArgumentError, match=r"bins=\{'v': \[edges\]\}"):
    from_frame(own, label="y", group="v")


def test_names_and_dates_as_features_are_refused():
  many = {"name": [f"n{i}" for i in range(1500)], "y": ["u", "v"] * 750, "g": ["a", "b"] * 750}
  with pytest.raises(ArgumentError, match="1500 different values"):
    from_frame(many, label="y", group="g")
  dates = pd.DataFrame(
    {"day": pd.to_datetime(["2020-01-01", "2020-01-02"]), "y": ["u", "v"], "g": ["a", "b"]}
  )
  with pytest.raises(ArgumentError, match="'day' holds dates"):
    from_frame(dates, label="y", group="g")
  assert from_frame(dates, label="y", group="g", drop=["day"]).size == 2


def test_unreadable_files_are_refused(tmp_path):
  call = {"label": "a", "group": "b"}
  with pytest.raises(DataError, match="check the path"):
    from_csv(tmp_path / "none.csv", **call)
  (tmp_path / "latin.csv").write_bytes("a,b\nñ,1\n".encode("latin-1"))
  with pytest.raises(DataError, match="encoding='latin-1'"):
    from_csv(tmp_path / "latin.csv", **call, encoding="utf-8")
  (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 99)[:-9])
  with pytest.raises(DataError, match="cannot be read"):
    from_csv(tmp_path / "cut.csv.gz", **call)


@pytest.mark.parametrize("encoding", ["utf-9", "hex", "a\0", 8, "x" * 10**5])
def test_an_unknown_encoding_is_refused(tmp_path, encoding):
  (tmp_path / "a.csv").write_text("a,b\n1,2\n")
  with pytest.raises(ArgumentError, match=r"encoding=.* is not known; use utf-8"):
    from_csv(tmp_path / "a.csv", label="a", group="b", encoding=encoding)


@pytest.mark.parametrize("encoding", ["idna", "punycode", "utf-16", "ascii"])
def test_text_in_another_encoding_is_refused(tmp_path, encoding):
  (tmp_path / "a.csv").write_bytes("ä,b\n1,2\nx".encode())
  with pytest.raises((DataError, ArgumentError), match=r"a\.csv"):
    from_csv(tmp_path / "a.csv", label="a", group="b", encoding=encoding)


def test_a_mistake_in_a_file_names_the_file(tmp_path):
  (tmp_path / "a.csv").write_text("a,b\n1,2,3\n")
  with pytest.raises(ArgumentError, match=r"a\.csv: data row 1 has 3 cells"):
    from_csv(tmp_path / "a.csv", label="a", group="b")


@pytest.mark.parametrize("separator", ['"', "\n", "\r", "", ",,", " ", 7])
def test_what_cannot_separate_is_refused(tmp_path, separator):
  (tmp_path / "a.csv").write_text("a,b\n1,2\n")
  with pytest.raises(ArgumentError, match=r"separator=.* must be one character"):
    from_csv(tmp_path / "a.csv", label="a", group="b", separator=separator)


FEW = {
  "age": [20.0, 30.0, None, 50.0] * 3,
  "job": ["a", "b", None, "a"] * 3,
  "sex": ["f", "m"] * 6,
  "hired": [True, False, False, True] * 3,
}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library_are_the_same_people(library):
  """polars is in no extra (170 MB); its test runs where it is installed."""
  module = pytest.importorskip(library)
  make = module.table if library == "pyarrow" else module.DataFrame
  expected = from_frame(FEW, label="hired", group="sex")
  found = from_frame(make(FEW), label="hired", group="sex")
  np.testing.assert_array_equal(found.examples.x, expected.examples.x)
  np.testing.assert_array_equal(found.examples.y, expected.examples.y)
  assert found.encoder == expected.encoder


def test_lazy_frames_and_what_is_no_frame_are_refused():
  lazy = types.SimpleNamespace(collect_schema=lambda: None)
  with pytest.raises(ArgumentError, match=r"pass frame\.collect\(\)"):
    from_frame(lazy, label="hired", group="sex")
  with pytest.raises(ArgumentError, match="frame is ndarray, which has no named columns"):
    from_frame(np.zeros((2, 2)), label="hired", group="sex")
