"""What makes two data sets the same."""

import gzip

import numpy as np
import pytest

from jaxfair import data
from jaxfair.data import _identity
from jaxfair.types import Examples

ROWS = ["age,sex", "31,f", "44,m", "44,m"]


def identity(path, lines, ending="\n", before=b"", pack=lambda raw: raw):
  path.write_bytes(pack(before + ending.join(lines).encode()))
  return data.csv_identity(path)


@pytest.fixture
def path(tmp_path):
  return tmp_path / "people.csv"


def test_a_file_is_the_same_in_another_order_and_form(path):
  plain = identity(path, ROWS)
  assert identity(path, [ROWS[0], *reversed(ROWS[1:])]) == plain
  assert identity(path, [*ROWS, ""], ending="\r\n") == plain
  assert identity(path, ROWS, before=b"\xef\xbb\xbf") == plain
  assert identity(path, ROWS, pack=gzip.compress) == plain


@pytest.mark.parametrize(
  "lines", [ROWS[:3], [*ROWS, "44,m"], [*ROWS[:3], "44,f"], ["sex,age", *ROWS[1:]]]
)
def test_other_people_are_another_file(path, lines):
  assert identity(path, lines) != identity(path, ROWS)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
  with pytest.raises(data.DataError, match="cannot read"):
    data.csv_identity(tmp_path / "nowhere.csv")
  (tmp_path / "half.csv").write_bytes(gzip.compress(b"a" * 99)[:-9])
  with pytest.raises(data.DataError, match="cannot read"):
    data.csv_identity(tmp_path / "half.csv")


def test_records_are_the_same_in_another_order_only():
  rng = np.random.default_rng(0)
  x = rng.normal(size=(9, 2)).astype(np.float32)
  y = np.arange(9, dtype=np.int32) % 2
  people = Examples(x, y, np.zeros(9, np.int32))
  same = data.records_identity(people)
  assert data.records_identity(people.take(np.arange(9)[::-1])) == same
  others = [
    people.take(np.arange(8)),
    people._replace(y=1 - y),
    people._replace(x=x.astype(np.float64)),
    people._replace(x=x.reshape(9, 2, 1)),
  ]
  for other in others:
    assert data.records_identity(other) != same
  assert data.records_identity(people, feature_names=("a", "b")) != same


def test_named_sets_are_told_apart_by_name():
  assert _identity.named_identity("adult") == _identity.named_identity("adult")
  assert _identity.named_identity("adult") != _identity.named_identity("bank")
