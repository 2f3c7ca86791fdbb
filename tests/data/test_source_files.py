"""Tables rewritten as memory-mapped arrays, a chunk at a time."""

import numpy as np
import pytest

from jaxfair import checks, data

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def frame():
  draw = np.random.default_rng(0)
  return pandas.DataFrame(
    {
      "age": draw.integers(18, 80, 90),
      "job": draw.choice(["cook", "nurse"], 90),
      "sex": draw.choice(["F", "M"], 90),
      "hired": draw.choice(["no", "yes"], 90),
    }
  )


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_chunks_encode_as_the_whole_table_does(frame, tmp_path, kind):
  path = tmp_path / f"people.{kind}"
  frame.to_parquet(path) if kind == "parquet" else frame.to_feather(path)
  whole = data.from_frame(frame, label="hired", group="sex", positive="yes")
  source = data.write_source(
    path, tmp_path / "out", encoder=whole.encoder, transform=lambda x: x / 2, chunk_size=32
  )
  found = data.open_source(tmp_path / "out").take(np.arange(90))
  np.testing.assert_array_equal(found.x, whole.examples.x / 2)
  np.testing.assert_array_equal(found.y, whole.examples.y)
  np.testing.assert_array_equal(found.group, whole.examples.group)
  assert source.size == 90
  assert (tmp_path / "out").stat().st_mode & 0o077 == 0  # as private as the people


def test_refused(frame, tmp_path):
  encoder = data.from_frame(frame, label="hired", group="sex", positive="yes").encoder
  (tmp_path / "full").mkdir()
  (tmp_path / "full" / "x.npy").touch()
  (tmp_path / "bad.parquet").write_bytes(b"no such thing")
  for path, folder, told in (
    ("people.xls", "new", "use a .parquet, .arrow or .feather file"),
    ("bad.parquet", "new", "cannot be read"),
    ("none.feather", "new", "cannot be read"),
    ("people.parquet", "full", "is not empty"),
  ):
    with pytest.raises(checks.JaxfairError, match=told):
      data.write_source(tmp_path / path, tmp_path / folder, encoder=encoder)
