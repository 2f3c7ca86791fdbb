"""Trains on people who are not in memory: batches are drawn here and read from a `Source`.

The driver is given feeds that hold the people of their batch. They are made on the host, for a few
steps at a time, and the next ones are read by a thread while the device works on the present ones.
Row numbers are those that a training in memory looks up, so the result is the same.
"""

import concurrent.futures
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import jax
import numpy as np

from jaxfair import checks
from jaxfair.training import _driver
from jaxfair.types import Examples, Index, PyTree, Source

BYTES = 2**22  # of people whose steps are run together, at most
ALIGNMENT = 64  # bytes


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Absent:
  """The shape and type of an array that is not in memory; to JAX it is a constant."""

  shape: tuple[int, ...]
  dtype: np.dtype


def absent_people(source: Source) -> Examples:
  """The people of a source as shapes and types, read from its first row."""
  size = source.size
  checks.integer("examples.size", size, low=1, remedy="a source needs some rows")
  first = source.take(np.zeros(1, np.int64))
  return Examples(*(Absent((size, *leaf.shape[1:]), _dtype(leaf)) for leaf in first))


def is_absent(people: Examples) -> bool:
  """Whether these people are only shapes."""
  return isinstance(people.x, Absent)


def as_shapes(inputs: PyTree, blocks: int = 1) -> PyTree:
  """Inputs with the shapes of people who are not in memory, as `jax.eval_shape` takes them.

  Args:
    inputs: of a step.
    blocks: the number of people is rounded up to a multiple of it, as that of people on a mesh.
  """

  def shape(leaf: PyTree) -> PyTree:
    if not isinstance(leaf, Absent):
      return leaf
    size, *rest = leaf.shape
    return jax.ShapeDtypeStruct((-(-size // blocks) * blocks, *rest), leaf.dtype)

  return jax.tree.map(shape, inputs, is_leaf=lambda leaf: isinstance(leaf, Absent))


@dataclasses.dataclass(frozen=True)
class StreamedStep:
  """A program's step whose feed also holds the people of its batch."""

  program: Any

  def __call__(self, state: PyTree, feed: PyTree, inputs: PyTree) -> tuple[Any, Any]:
    """One step."""
    own, people = feed
    return self.program.step(state, *self.program.at_hand(own, inputs, people))


def run_streamed(
  program: Any,
  begun: PyTree,
  feeds: _driver.Feeds,
  source: Source,
  count: int,
  start: Index,
  loop: Literal["scan", "step"],
) -> tuple[Any, Any]:
  """Takes `count` steps from `start` on; the state then, and the stacked infos."""
  people = _people_of(begun.inputs)
  bytes_per_step = program.rows(begun.inputs) * sum(
    int(np.prod(leaf.shape[1:])) * leaf.dtype.itemsize for leaf in people
  )
  size = _driver.block_size(count, bytes_per_step, most=BYTES)
  blocks = [(first, min(size, count - first)) for first in range(0, count, size)]

  def make(block: tuple[int, int]) -> PyTree:
    first, steps = block
    return _driver.make(feeds, begun.source, begun.inputs, start + first, steps)

  def read(made: PyTree) -> PyTree:
    return made, _read(program, source, people, made)

  state, parts = begun.state, []
  for block in _ahead(make, read, blocks):
    state, infos = _driver.run_steps(StreamedStep(program), state, block, begun.inputs, loop=loop)
    parts.append(infos)
    # Waits for the block before: the people of blocks that are not done pile up.
    jax.block_until_ready(parts[-2:-1])
  return state, jax.tree.map(lambda *leaves: jax.numpy.asarray(np.concatenate(leaves)), *parts)


def _read(program: Any, source: Source, people: Examples, feeds: PyTree) -> Examples:
  """[steps, batch, ...] the people of some batches; zeros where nobody takes part.

  They are on the devices whose rows they are before a step needs them. Of several processes each
  one reads the rows of its own devices.
  """
  rows, mask = program.chosen(feeds)
  pieces, named = _here(rows)
  places = np.arange(named.size) if mask is None else np.flatnonzero(_here(mask)[1])
  named = named[places].astype(np.int64)
  order = np.argsort(named)  # rows that are near each other in a file are read together
  found = source.take(named[order])
  program.check_read(found)

  def filled(leaf: np.ndarray, like: Absent) -> jax.Array:
    end = like.shape[1:]
    # A single row would be copied to everybody's place, so that one person counts many times. How
    # many were drawn is not told.
    checks.require(
      np.shape(leaf) == (named.size, *end),
      f"source.take must give one row of shape {end} for every row number that it is asked for",
    )
    whole = _aligned_zeros((sum(piece.data.size for piece in pieces), *end), like.dtype)
    with np.errstate(over="ignore"):  # beyond float32 is infinite; who is drawn is told nobody
      whole[places[order]] = leaf
    if len(rows.sharding.device_set) == 1:
      return jax.device_put(whole.reshape(*rows.shape, *end))
    cuts = np.cumsum([piece.data.size for piece in pieces])[:-1]
    parts = [
      jax.device_put(part.reshape(*piece.data.shape, *end), piece.device)
      for piece, part in zip(pieces, np.split(whole, cuts), strict=True)
    ]
    shape = (*rows.shape, *end)
    return jax.make_array_from_single_device_arrays(shape, rows.sharding, parts)

  return Examples(*map(filled, found, people))


def _here(array: jax.Array) -> tuple[Sequence[jax.Shard], np.ndarray]:
  """The parts of an array that this process holds, and their values one after the other."""
  pieces = array.addressable_shards
  return pieces, np.concatenate([np.asarray(piece.data).reshape(-1) for piece in pieces])


def _aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
  """Zeros that begin where a CPU device can use them as they are, without a copy."""
  size = math.prod(shape) * dtype.itemsize
  raw = np.zeros(size + ALIGNMENT, np.uint8)
  start = -raw.ctypes.data % ALIGNMENT
  return raw[start : start + size].view(dtype).reshape(shape)


def _ahead(make: Any, read: Any, blocks: list[Any]) -> Iterator[Any]:
  """What is read for each block; the next one is read while the present one is used.

  Feeds are made by the thread that runs the steps: processes that share devices must start the
  same programs in the same order.
  """
  with concurrent.futures.ThreadPoolExecutor(1) as pool:
    waiting = pool.submit(read, make(blocks[0]))
    for block in blocks[1:]:
      made = make(block)
      ready, waiting = waiting.result(), pool.submit(read, made)
      yield ready
    yield waiting.result()


def _people_of(inputs: PyTree) -> Examples:
  held = getattr(inputs, "people", None)
  people: Examples = inputs.examples if held is None else held
  return people


def _dtype(leaf: np.ndarray) -> np.dtype:
  """The type that the array would have in JAX."""
  return np.dtype(jax.dtypes.canonicalize_dtype(leaf.dtype))
