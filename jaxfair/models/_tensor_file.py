"""Reads the tensors of a `.pth` file without torch and without running its pickle.

The file is a row of pickles (a magic number, a version, the writer's system, the
dictionary of tensors, the list of storages) followed by the storages as raw numbers.
A pickle may name any function and have it called, so the reader here resolves six
names to inert objects of its own and refuses every other.
"""

import io
import math
import pickle
from typing import Any, NamedTuple

import numpy as np

from jaxfair.data import DataError

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
_DTYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "LongStorage": "<i8"}


def read_tensors(content: bytes) -> dict[str, np.ndarray]:
  """The named arrays of a dictionary of tensors, as `torch.save` wrote it before version 1.6.

  Raises:
    DataError: if the file is another format, is damaged, or asks for anything but tensors.
  """
  try:
    return _read(content)
  except DataError:
    raise
  except Exception as error:  # pickle, numpy and struct have a dozen kinds
    raise DataError(
      f"this is not an intact file of tensors ({error or type(error).__name__}); get it again"
    ) from None


class _Storage(NamedTuple):
  """Where numbers lie; they are read later."""

  key: str
  dtype: str
  size: int


class _Tensor(NamedTuple):
  """Which numbers of a storage make an array; checked to lie inside it."""

  storage: _Storage
  offset: int
  shape: tuple[int, ...]
  strides: tuple[int, ...]


class _Named(dict[str, Any]):
  """In place of OrderedDict; it may be given attributes, which nobody reads."""


class _Unpickler(pickle.Unpickler):
  """Builds dictionaries of `_Tensor`, and refuses to load anything else."""

  def find_class(self, module: str, name: str) -> Any:
    if (module, name) == ("collections", "OrderedDict"):
      return _Named
    if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
      return _tensor
    if module == "torch" and name in _DTYPES:
      return _DTYPES[name]
    raise DataError(
      f"this file tries to load {module}.{name}, which a file of tensors does not need; delete "
      "it and get the original"
    )

  def persistent_load(self, pid: Any) -> _Storage:
    kind, dtype, key, _, count, view = pid
    _need(kind == "storage" and view is None and dtype in _DTYPES.values(), "an unknown storage")
    _need(isinstance(key, str) and type(count) is int and count >= 0, "a storage without size")
    return _Storage(key, dtype, count)


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *others: Any) -> _Tensor:
  del others  # whether it was trained, and hooks
  _need(isinstance(storage, _Storage), "a tensor without storage")
  numbers = (offset, *shape, *strides)
  _need(all(type(number) is int and number >= 0 for number in numbers), "a tensor without shape")
  _need(len(shape) == len(strides), "a tensor without shape")
  reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
  _need(all(shape) and offset + reach < storage.size, "a tensor beyond its storage")
  _need(math.prod(shape) <= storage.size, "a tensor larger than its storage")
  return _Tensor(storage, offset, tuple(shape), tuple(strides))


def _read(content: bytes) -> dict[str, np.ndarray]:
  file = io.BytesIO(content)
  magic, version, system, tensors, keys = (_Unpickler(file).load() for _ in range(5))
  _need(magic == MAGIC and version == VERSION, "another format")
  _need(system["little_endian"] is True, "another order of bytes")
  _need(isinstance(tensors, _Named), "no dictionary")
  found = {name: value for name, value in tensors.items() if isinstance(value, _Tensor)}
  _need(len(found) == len(tensors), "something that is no tensor")
  storages = {tensor.storage.key: tensor.storage for tensor in found.values()}
  _need(sorted(storages) == sorted(keys), "storages that no tensor has")
  arrays = {key: _numbers(file, storages[key]) for key in keys}
  _need(not file.read(1), "more than its tensors")
  return {str(name): _array(arrays[one.storage.key], one) for name, one in found.items()}


def _array(numbers: np.ndarray, tensor: _Tensor) -> np.ndarray:
  steps = [stride * numbers.itemsize for stride in tensor.strides]
  view = np.lib.stride_tricks.as_strided(numbers[tensor.offset :], tensor.shape, steps)
  return np.array(view, order="C")  # of its own: the checks above bound what it reads


def _numbers(file: io.BytesIO, storage: _Storage) -> np.ndarray:
  _need(int.from_bytes(file.read(8), "little") == storage.size, "a storage of another size")
  dtype = np.dtype(storage.dtype)
  raw = file.read(storage.size * dtype.itemsize)
  _need(len(raw) == storage.size * dtype.itemsize, "a storage that was cut short")
  return np.frombuffer(raw, dtype)


def _need(holds: bool, otherwise: str) -> None:
  if not holds:
    raise DataError(f"this file of tensors holds {otherwise}; delete it and get the original")
