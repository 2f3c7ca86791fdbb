"""An encoder that is fitted a chunk at a time is that of the whole table."""

import json

import numpy as np
import pytest

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.data import _streamed_encoder

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

SIZE = 200


def table(seed=0, **more):
  rng = np.random.default_rng(seed)
  columns = {
    "age": rng.integers(17, 90, SIZE),
    "pay": np.where(rng.uniform(size=SIZE) < 0.1, np.nan, rng.normal(3000, 400, SIZE)),
    "late": np.where(np.arange(SIZE) == SIZE - 1, 1.0, 0.0),  # one different number, at the end
    "job": rng.choice(["cook", "nurse", None], SIZE),
    "code": rng.choice(["1", "2", "10"], SIZE),  # text that holds numbers
    "mixed": np.where(np.arange(SIZE) == SIZE - 1, "x", rng.choice(["1", "2"], SIZE)),
    "area": rng.choice([3, 7], SIZE),
    "race": rng.choice(["a", "b"], SIZE),
    "sex": rng.choice(["F", "M"], SIZE),
    "hired": rng.choice(["no", "yes"], SIZE),
  }
  return pandas.DataFrame(columns | more)


def fitted(tmp_path, frame, suffix="parquet", **options):
  path = tmp_path / f"people.{suffix}"
  frame.to_parquet(path) if suffix == "parquet" else frame.to_feather(path)
  options = {"label": "hired", "group": ("sex",), "chunk_size": 7} | options
  return _streamed_encoder.fit_encoder(path, **options)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
  "options",
  [
    {},
    {"group": ("sex", "race"), "drop": ("mixed",)},
    {"group": ("area",), "categorical": ("age",), "ranges": {"pay": (0.0, 6000.0)}},
    {"label": "job", "positive": "cook", "drop": ("job2",)},
  ],
)
def test_it_is_the_encoder_of_the_whole_table(tmp_path, seed, options):
  frame = table(seed, job2=0) if "job2" in options.get("drop", ()) else table(seed)
  if options.get("label") == "job":
    frame["job"] = frame["job"].fillna("none")
  found = fitted(tmp_path, frame, "feather" if seed else "parquet", **options)
  whole = data.from_frame(frame, **{"label": "hired", "group": ("sex",)} | options)
  assert found == whole.encoder


@pytest.mark.parametrize(
  ("change", "line"),
  [
    (
      {"hired": ["no"] * 9 + [None] + ["yes"] * (SIZE - 10)},
      r"label 'hired' is missing in some rows \(the first is data row 10\); drop these rows first",
    ),
    ({"sex": ["F"] * (SIZE - 1) + ["X"]}, r"group 'X' of sex has 1 person, and figures of so few"),
    ({"age": [3] * SIZE}, "column 'age' has the same value in every row"),
    ({"hired": ["no"] * SIZE}, "label 'hired' has one class only"),
    ({"hired": ["a", "b"] * (SIZE // 2 - 1) + ["c", "c"]}, "label 'hired' has 3 values"),
  ],
)
def test_a_table_that_cannot_be_used(tmp_path, change, line):
  with pytest.raises(ArgumentError, match=line):
    fitted(tmp_path, table(**change))


def test_words_without_end_are_refused_without_being_kept(tmp_path):
  frame = table().loc[np.arange(2000) % SIZE].assign(name=[f"p{i}" for i in range(2000)])
  with pytest.raises(ArgumentError, match="column 'name' has 1001 different values"):
    fitted(tmp_path, frame.reset_index(drop=True), chunk_size=100)


def test_categories_of_these_very_people_are_not_public(tmp_path):
  encoder = fitted(tmp_path, table())
  for here, told in ((True, "taken from the private people"), (False, "from another table")):
    folder = tmp_path / str(here)
    data.write_source(tmp_path / "people.parquet", folder, encoder=encoder, fitted_here=here)
    record = json.loads((folder / "source.json").read_text())
    sentences = data.Encoder.from_record(record["encoder"]).assumed_public()
    assert any(told in one for one in sentences)
