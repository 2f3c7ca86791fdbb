"""Tensor files are read without torch, and a hostile one does nothing."""

import io
import os
import pickle
import sys
import types
from collections import OrderedDict

import numpy as np
import pytest

from jaxfair.data import DataError
from jaxfair.models import _tensor_file
from jaxfair.models._tensor_file import read_tensors


class Storage:
  """What a tensor points to; written by name, its numbers follow later."""

  def __init__(self, key, numbers):
    self.key, self.numbers = key, numbers


class Tensor:
  """Written as torch writes one: a call that rebuilds it."""

  def __init__(self, storage, offset, shape, strides):
    self.parts = (storage, offset, shape, strides, False, OrderedDict())

  def __reduce__(self):
    return sys.modules["torch._utils"]._rebuild_tensor_v2, self.parts


@pytest.fixture
def save(monkeypatch):
  """Writes a file of tensors; torch's names stand for nothing here."""
  torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

  class FloatStorage:
    __module__, __qualname__ = "torch", "FloatStorage"

  def _rebuild_tensor_v2():
    pass

  _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = (
    "torch._utils",
    "_rebuild_tensor_v2",
  )
  torch.FloatStorage, utils._rebuild_tensor_v2, torch._utils = (
    FloatStorage,
    _rebuild_tensor_v2,
    utils,
  )
  monkeypatch.setitem(sys.modules, "torch", torch)
  monkeypatch.setitem(sys.modules, "torch._utils", utils)

  class Pickler(pickle.Pickler):
    def persistent_id(self, one):
      if isinstance(one, Storage):
        return "storage", FloatStorage, one.key, "cpu", len(one.numbers), None
      return None

  def written(tensors, *storages, magic=_tensor_file.MAGIC, keys=None):
    file = io.BytesIO()
    keys = [one.key for one in storages] if keys is None else keys
    for part in (magic, 1001, {"little_endian": True}, tensors, keys):
      Pickler(file, protocol=2).dump(part)
    for one in storages:
      file.write(len(one.numbers).to_bytes(8, "little") + one.numbers.astype("<f4").tobytes())
    return file.getvalue()

  return written


def test_reads_shapes_offsets_and_transposed_tensors(save):
  numbers = np.arange(12, dtype=np.float32)
  one, two = Storage("a", numbers), Storage("b", -numbers[:2])
  tensors = OrderedDict(
    plain=Tensor(one, 0, (3, 4), (4, 1)),
    part=Tensor(one, 5, (2, 2), (3, 1)),
    turned=Tensor(one, 0, (4, 3), (1, 4)),
    scalar=Tensor(two, 1, (), ()),
  )
  found = read_tensors(save(tensors, one, two))
  np.testing.assert_array_equal(found["plain"], numbers.reshape(3, 4))
  np.testing.assert_array_equal(found["part"], [[5, 6], [8, 9]])
  np.testing.assert_array_equal(found["turned"], numbers.reshape(3, 4).T)
  assert found["scalar"] == -1


class Call:
  """Asks for a call when it is read."""

  def __init__(self, function, *arguments):
    self.call = (function, arguments)

  def __reduce__(self):
    return self.call


@pytest.mark.parametrize("function", [os.mkdir, eval, getattr, pickle.loads], ids=str)
def test_a_hostile_file_is_refused_before_anything_runs(save, tmp_path, function):
  target = tmp_path / "made"
  hostile = OrderedDict(x=Call(function, str(target)))
  with pytest.raises(DataError, match="tries to load"):
    read_tensors(save(hostile))
  assert not target.exists()


def test_an_attribute_of_an_allowed_name_is_refused():
  # Protocol 4 may ask for a dotted name: the door to everything else.
  content = b"\x80\x04\x8c\x0bcollections\x94\x8c\x16OrderedDict.__reduce__\x94\x93."
  with pytest.raises(DataError, match="tries to load"):
    read_tensors(content)


def test_tensors_outside_their_storage_are_refused(save):
  one = Storage("a", np.arange(6, dtype=np.float32))
  for offset, shape, strides in (
    (0, (7,), (1,)),
    (1, (2, 3), (3, 1)),
    (0, (2,), (6,)),
    (-1, (2,), (1,)),
    (0, (2,), (-1,)),
    (0, (1000, 1000), (0, 0)),  # a small file that would fill the memory
    (0, (2, 2), (1,)),
  ):
    with pytest.raises(DataError, match="holds a tensor"):
      read_tensors(save(OrderedDict(x=Tensor(one, offset, shape, strides)), one))


def test_damaged_files_are_refused(save):
  one = Storage("a", np.arange(6, dtype=np.float32))
  tensors = OrderedDict(x=Tensor(one, 0, (6,), (1,)))
  whole = save(tensors, one)
  assert read_tensors(whole)["x"].shape == (6,)
  for damaged in (
    b"",
    b"PK\x03\x04",
    whole[:-1],
    whole + b"x",
    whole[:40],
    save(tensors, one, magic=1),
    save(tensors, one, keys=[]),
    save(OrderedDict(x=1)),
    save([1]),
  ):
    with pytest.raises(DataError):
      read_tensors(damaged)
