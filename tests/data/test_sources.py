"""Sources: the rows that were asked for, from arrays, maps and records; nothing else in memory."""

import tracemalloc

import numpy as np
import pytest

from jaxfair import checks, data
from jaxfair.data import _file_rows
from jaxfair.types import Examples, Source


@pytest.fixture
def people():
  draw = np.random.default_rng(0)
  return Examples(
    draw.normal(size=(50, 3)).astype(np.float32),
    draw.integers(0, 2, 50).astype(np.int32),
    draw.integers(0, 3, 50).astype(np.int32),
  )


class Records:
  """Random access, as grain's data sources have it."""

  def __init__(self, people, named):
    self.people, self.named = people, named

  def __len__(self):
    return self.people.size

  def __getitem__(self, row):
    x, y, group = (leaf[row] for leaf in self.people)
    return {"x": x, "y": y, "group": group} if self.named else (x, y, group)


def sources(people, folder):
  np.savez(folder / "people.npz", x=people.x, y=people.y, group=people.group)
  for name, leaf in people._asdict().items():
    np.save(folder / f"{name}.npy", np.asfortranarray(leaf))
  yield data.open_source(*people)
  yield data.open_source(folder / "people.npz")
  yield data.open_source(folder / "x.npy", str(folder / "y.npy"), people.group)
  yield data.open_source(Records(people, named=True))
  yield data.open_source(Records(people, named=False))


@pytest.mark.parametrize("kept", [_file_rows.KEPT, 0])
def test_every_kind_gives_the_rows_in_order(people, tmp_path, monkeypatch, kept):
  monkeypatch.setattr(_file_rows, "KEPT", kept)  # 0: every map is read as that of a large file
  rows = np.array([7, 0, 49, 7])
  for source in sources(people, tmp_path):
    assert isinstance(source, Source)
    assert source.size == 50
    for chosen in (rows, rows[:0]):
      for found, leaf in zip(source.take(chosen), people, strict=True):
        assert type(found) is np.ndarray
        assert found.dtype == leaf.dtype
        np.testing.assert_array_equal(found, leaf[chosen])


@pytest.mark.parametrize("kept", [_file_rows.KEPT, 0])
def test_a_part_of_a_map_has_its_own_row_numbers(tmp_path, monkeypatch, kept):
  monkeypatch.setattr(_file_rows, "KEPT", kept)
  whole = np.arange(9000, dtype=np.float32).reshape(3000, 3)
  np.save(tmp_path / "x.npy", whole)
  part = np.load(tmp_path / "x.npy", mmap_mode="r")[2000:2500]
  source = data.open_source(part, np.zeros(500, np.int32))
  found = source.take(np.array([0, 499])).x
  np.testing.assert_array_equal(found, whole[[2000, 2499]])
  found[:] = 0  # a copy
  for row in (-1, 500):
    with pytest.raises(IndexError, match="between 0 and 499"):
      source.take(np.array([3, row]))


def test_a_file_that_becomes_shorter_is_noticed(tmp_path, monkeypatch):
  monkeypatch.setattr(_file_rows, "KEPT", 0)
  np.save(tmp_path / "x.npy", np.ones((4000, 3), np.float32))
  source = data.open_source(tmp_path / "x.npy", np.zeros(4000, np.int32))
  with open(tmp_path / "x.npy", "r+b") as file:
    file.truncate(1000)
  with pytest.raises(OSError, match="became shorter"):
    source.take(np.array([3, 3999]))


def test_fingerprints_follow_the_content(people, tmp_path):
  plain, npz, *_ = sources(people, tmp_path)
  assert plain.fingerprint() == npz.fingerprint()
  changed = people._replace(x=people.x.copy())
  changed.x[49, 2] += 1e-3
  assert data.open_source(*changed).fingerprint() != plain.fingerprint()
  first, second = (
    data.open_source(Records(some, named=True)).fingerprint() for some in (people, changed)
  )
  assert first != second


def test_without_groups_everybody_is_in_one(people):
  source = data.open_source(people.x, people.y)
  assert source.take(np.arange(5)).group.tolist() == [0] * 5


def test_a_few_rows_of_many_people_take_little_memory():
  """Also of arrays whose rows are not in one piece, such as groups that were left out."""
  x = np.zeros((3, 10**6), np.float32).T
  source = data.open_source(x, x[:, 0].astype(np.int32))
  tracemalloc.start()
  source.take(np.arange(5))
  peak = tracemalloc.get_traced_memory()[1]
  tracemalloc.stop()
  assert peak < 10**5


def test_rows_of_a_map_do_not_stay_in_memory(tmp_path, monkeypatch):
  """Pages of a large file that was read are unmapped again."""
  monkeypatch.setattr(_file_rows, "KEPT", 2**20)
  size = 2**25
  np.save(tmp_path / "x.npy", np.zeros((size // 1024, 1024 // 4), np.float32))
  source = data.open_source(tmp_path / "x.npy", np.zeros(size // 1024, np.int32))
  source.take(np.arange(source.size))
  with open("/proc/self/smaps") as file:
    text = file.read()
  _, _, rest = text.partition(str(tmp_path / "x.npy"))
  resident = next(line for line in rest.splitlines() if line.startswith("Rss:"))
  assert int(resident.split()[1]) * 1024 < size / 8


@pytest.mark.parametrize(
  ("make", "told"),
  [
    (lambda p, f: data.open_source(p.x), "needs y"),
    (lambda p, f: data.open_source(p.x, group=p.group), "group is given without y"),
    (lambda p, f: data.open_source(p.x, p.y[:9]), "x has 50, y has 9"),
    (lambda p, f: data.open_source(f / "x.npy"), "needs y: pass y="),
    (lambda p, f: data.open_source(f / "none.npz"), "not a .npz file"),
    (lambda p, f: data.open_source(f / "none.npy", p.y), "x=.*not a .npy file"),
    (lambda p, f: data.open_source(f), "not a finished folder"),
    (lambda p, f: data.open_source([]), "x is empty"),
    (lambda p, f: data.open_source([(1.0,)]).take(np.zeros(1, int)), "items need x and y"),
    (lambda p, f: data.open_source(f / "packed.npz"), "is compressed.*use np.savez"),
    (lambda p, f: data.open_source(f / "other.npz"), "name them x, y and group"),
  ],
)
def test_refused(people, tmp_path, make, told):
  np.savez_compressed(tmp_path / "packed.npz", x=people.x, y=people.y)
  np.savez(tmp_path / "other.npz", a=people.x)
  with pytest.raises(checks.JaxfairError, match=told):
    make(people, tmp_path)
