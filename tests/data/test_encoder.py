"""Encoders: one-hot against scikit-learn's, other people, records."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.data import _columns
from jaxfair.data._columns import encode_columns, fit_columns

COLUMNS = {
  "age": [20, 35, 61, 44, 30, 70],
  "job": ["cook", "nurse", "cook", None, "nurse", "cook"],
  "code": ["01", "1", "01", "1", "x", "x"],
  "sex": ["F", "M", "F", "M", "F", "M"],
  "level": [1, 2, 2, 1, 1, 2],
  "hired": ["yes", "no", "no", "yes", "yes", "no"],
}


def people(**options):
  return data.from_frame(
    COLUMNS, **{"label": "hired", "group": "sex", "min_group_size": 1, **options}
  )


def encode(table, names, size):
  columns = fit_columns(table, names)
  return encode_columns(columns, table, size)


def test_agrees_with_scikit_learn():
  rng = np.random.default_rng(1)
  words = rng.choice(["b", "a", "", "c"], (40, 2))
  numbers = rng.normal(size=40)
  table = {"p": words[:, 0], "n": numbers, "q": words[:, 1]}
  x = encode(table, ["p", "q", "n"], 40)
  expected = OneHotEncoder(sparse_output=False).fit_transform(words)
  np.testing.assert_array_equal(x[:, :-1], expected)
  np.testing.assert_allclose(x[:, -1], numbers, rtol=1e-6)
  assert x.dtype == np.float32


def test_missing_words_are_a_value_and_missing_numbers_stay():
  table = {"w": np.array(["", "a"]), "n": np.array([np.nan, 2.0])}
  np.testing.assert_array_equal(encode(table, ["w", "n"], 2), [[1, 0, np.nan], [0, 1, 2]])


def test_no_column_gives_no_feature():
  assert encode({}, [], 3).shape == (3, 0)


@pytest.mark.parametrize(
  "options",
  [
    {},
    {"group": ("sex", "level"), "ranges": {"age": (25, 60)}},
    {"group": "age", "bins": {"age": [30, 50]}, "positive": "no"},
    {"label": "level", "group": (), "threshold": 1.5},
    {"categories": {"job": ["cook", "baker"]}, "keep_group_features": True},
  ],
)
def test_a_loaded_encoder_gives_the_same_bits(options):
  own = people(**options)
  record = json.loads(json.dumps(own.encoder.to_record()))
  loaded = data.Encoder.from_record(record)
  assert loaded == own.encoder
  x, y, group = loaded.encode(COLUMNS, need_label=True, need_group=True)
  for found, expected in zip((x, y, group), own.examples, strict=True):
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
  assert loaded.feature_names == own.feature_names
  assert loaded.feature_columns == own.columns


def test_new_people_need_neither_label_nor_group_nor_all_categories():
  encoder = people().encoder
  new = pd.DataFrame({"more": [1], "level": [2], "code": ["01"], "job": ["pilot"], "age": [None]})
  x, y, group = encoder.encode(new)
  assert (y, group) == (None, None)
  shown = dict(zip(encoder.feature_names, x[0].tolist(), strict=True))
  assert np.isnan(shown.pop("age"))
  assert {name for name, value in shown.items() if value} == {"code=01", "level"}
  (note,) = encoder.notes(new)
  assert note.startswith(
    "1 rows have a value of 'job' that the model has not seen (such as 'pilot'"
  )
  assert encoder.notes(COLUMNS) == ()


def test_a_single_row_is_read_with_the_decimal_sign_of_the_file_before(tmp_path):
  own, new = tmp_path / "own.csv", tmp_path / "new.csv"
  own.write_text("size;sex;hired\n1,75;F;yes\n1,8;M;no\n1,75;M;yes\n1,6;F;no\n")
  encoder = data.from_csv(own, label="hired", group="sex").encoder
  for written in ("size;sex\n1,700;F\n", "sex,size\nF,1.7\n", "size;share\n1,700;12%\n"):
    new.write_text(written)
    np.testing.assert_array_equal(encoder.encode(encoder.read(new)).x, np.float32([[1.7]]))


def test_a_file_is_read_as_the_one_before(tmp_path):
  own, new = tmp_path / "own.csv", tmp_path / "new.csv"
  own.write_text(pd.DataFrame(COLUMNS).to_csv(index=False, sep=";"))
  new.write_text("age;job;code;level\n40;cook;01;2\n")
  fitted = data.from_csv(own, label="hired", group="sex", categorical=["code"])
  expected = people(categorical=["code"])
  np.testing.assert_array_equal(fitted.examples.x, expected.examples.x)
  loaded = data.Encoder.from_record(fitted.encoder.to_record())
  assert loaded.layout.separator == ";"
  x = loaded.encode(loaded.read(new)).x
  np.testing.assert_array_equal(
    x, expected.encoder.encode({"age": [40], "job": ["cook"], "code": ["01"], "level": [2]}).x
  )
  assert x[0, expected.feature_names.index("code=01")] == 1


def test_declared_ranges_clip_and_are_counted():
  own = people(ranges={"age": (25, 60)})
  np.testing.assert_array_equal(own.examples.x[:, 0], [25, 35, 60, 44, 30, 60])
  (note,) = own.encoder.notes(COLUMNS)
  assert note == "3 rows have 'age' outside [25, 60]; the nearest bound was used"
  fixed = dataclasses.replace(
    own.encoder, columns=(_columns.Numeric("age", 25.0, 60.0, missing=40.0),)
  )
  assert fixed.encode({"age": [None, 90.0]}).x.tolist() == [[40.0], [60.0]]


def test_unknown_groups_are_marked_and_unknown_classes_refused():
  encoder = people(group=("sex", "level")).encoder
  new = {**COLUMNS, "sex": ["F", "X", "F", "M", "F", "M"], "level": [1, 2, 3, 1, 1, 2]}
  _, _, group = encoder.encode(new, need_group=True)
  assert group.tolist() == [0, -1, -1, 2, 0, 3]
  with pytest.raises(ArgumentError, match=r"none of the classes no, yes in 1 rows .* data row 6"):
    encoder.encode({**COLUMNS, "hired": ["no"] * 5 + ["so"]}, need_label=True)
  with pytest.raises(ArgumentError, match="missing in 1 rows"):
    encoder.encode({**COLUMNS, "hired": ["no"] * 5 + [None]}, need_label=True)


@pytest.mark.parametrize(
  ("table", "message"),
  [
    ({"age": [1], "job": ["a"], "level": [1]}, "no column 'code'"),
    ({"aged": [1]}, "none of the columns 'age', 'job', 'code', 'level'; it has aged"),
    ({**COLUMNS, "age": [1, 2, 3, 4, 5, "old"]}, "'age' holds 'old' where a number"),
    ({**COLUMNS, "age": [1, 2, 3, 4, 5, 1e300]}, "'age' has infinite numbers, or some above"),
  ],
)
def test_what_cannot_be_encoded_is_told_in_one_line(table, message):
  with pytest.raises(ArgumentError, match=message) as caught:
    people().encoder.encode(table)
  assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    (lambda r: r.pop("group"), "encoder.group: missing"),
    (lambda r: r.update(colums=[]), "did you mean columns"),
    (lambda r: r["columns"].append({"name": "a", "low": 2, "high": 1}), "must be increasing"),
    (lambda r: r["columns"].append({"name": "a", "values": ["b", "b"]}), "names a value twice"),
    (lambda r: r["label"]["parts"][0].update(kind="odd"), "kind='odd' is not known"),
  ],
)
def test_a_damaged_record_is_refused(change, message):
  record = people().encoder.to_record()
  change(record)
  with pytest.raises(ArgumentError, match=message):
    data.Encoder.from_record(record)


def test_what_was_assumed_public_is_said():
  told = people(ranges={"age": (0, 99)}, categories={"job": ["cook"]}).encoder.assumed_public()
  assert told == (
    "the range of age was declared by the user, without looking at the people",
    "the set of categories of job was declared by the user, without looking at the people",
    "the set of categories of code was taken from the private people themselves and assumed public",
    "the names and kinds of the columns, the names of the classes (hired) and of the groups (sex) "
    "were assumed public",
  )


def test_that_one_person_s_letter_decides_the_encoding_is_said(tmp_path):
  lines = "name,age,sex,hired\nBob,20,F,yes\nAnn,30,M,no\n{},40,F,no\nEve,50,M,yes\n"
  found = []
  for name in ("Jose", "José"):
    path = tmp_path / f"{name}.csv"
    path.write_bytes(lines.format(name).encode("cp1252"))
    encoder = data.from_csv(path, label="hired", group="sex", drop=("name",)).encoder
    found.append(encoder.to_record())
    assert "encoding of characters) was assumed public" in encoder.assumed_public()[-1]
  assert found[0] != found[1]  # a cell of a column that is left out
  found = [{**record, "layout": None} for record in found]
  assert found[0] == found[1]


def test_private_people_are_encoded_like_public_ones():
  public = people()
  private = data.from_frame({**COLUMNS, "job": ["cook"] * 6}, encoder=public.encoder)
  assert private.feature_names == public.feature_names
  assert "taken from another table, which is public" in private.encoder.assumed_public()[0]
  with pytest.raises(ArgumentError, match="label='hired' is part of the encoder"):
    people(encoder=public.encoder)


CELLS = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["a", "b", "1", ""]))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, st.sampled_from("pq")), min_size=1, max_size=12))
def test_any_rows_encode_alone_as_among_others(rows):
  table = {name: list(cells) for name, cells in zip("abc", zip(*rows, strict=True), strict=True)}
  try:
    own = data.from_frame(table, label="c", group=(), multiclass=True)
  except ArgumentError:  # an empty or constant column, or one class
    return
  encoder = data.Encoder.from_record(own.encoder.to_record())
  for i in range(len(rows)):
    one = {name: cells[i : i + 1] for name, cells in table.items()}
    np.testing.assert_array_equal(encoder.encode(one).x[0], own.examples.x[i])
