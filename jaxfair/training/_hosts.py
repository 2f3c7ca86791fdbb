"""One run of several processes under `jax.distributed`.

All processes call the same functions with the same arguments. What must happen once (a charge, a
draw from the operating system, a file) happens in the first process, and the others wait for what
it was. With one process everything here is what it would be without it.
"""

import atexit
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxfair import checks
from jaxfair.types import Array, PyTree

# How the errors of collectives and of the coordination service name a process that is gone.
GONE = ("gloo", "nccl", "connection", "peer", "heartbeat", "coordination", "unavailable")

# How a group that was started by one command sends the first process's message to all.
CHANNEL: Callable[[bytes], bytes] | None = None


class LostProcessError(checks.JaxfairError):
  """Another process of the run has ended."""


def is_first() -> bool:
  """Whether this process writes what is written once."""
  return jax.process_index() == 0


def from_first(function: Callable[[], Any]) -> Any:
  """What the function returns in the first process, in every process.

  It is called there alone. If it raises, all processes raise: none is left waiting.
  """
  if jax.process_count() == 1:
    return function()
  told: dict[str, Any] = {"value": None, "error": None}
  error = None
  if is_first():
    try:
      told["value"] = function()
    except Exception as raised:
      told["error"], error = str(raised), raised
  told = json.loads(_broadcast(json.dumps(told).encode()))
  if error is not None:
    raise error
  if told["error"] is not None:
    raise checks.JaxfairError(told["error"])
  return told["value"]


def require_same(told: Mapping[str, Any], remedy: str) -> None:
  """Raises in a process that was told something else than the first one.

  Privacy:
    Processes that clip to another bound than the noise is scaled to, that take other steps than
    are charged, or that draw noise from keys of their own, break the guarantee of all of them.
  """
  if jax.process_count() == 1:
    return
  own = json.loads(json.dumps(told, default=str))
  first = from_first(lambda: own)
  for name in {**first, **own}:
    one, other = first.get(name, "missing"), own.get(name, "missing")
    checks.require(
      one == other,
      f"{name} is {checks.shown(one)} in the first process and {checks.shown(other)} in process "
      f"{jax.process_index() + 1}; {remedy}",
    )


def key_from_first(draw: Callable[[], jax.Array]) -> jax.Array:
  """A key that the first process draws, in every process.

  Privacy:
    With a key of its own, each process would add another noise to its copy of the same sum, and
    draw other people: the difference of two copies would show what the noise hides.
  """
  words = from_first(lambda: np.asarray(jax.random.key_data(draw())).tolist())
  return jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32), impl="threefry2x32")


def place(tree: PyTree, sharding: NamedSharding) -> PyTree:
  """Arrays as one array over all processes, from the copy that every process has."""
  return jax.tree.map(lambda leaf: _placed(leaf, sharding), tree)


def local(tree: PyTree, mesh: Mesh) -> PyTree:
  """The whole of arrays that are spread over a mesh, in the memory of every process."""
  everywhere = NamedSharding(mesh, PartitionSpec())
  whole = jax.jit(lambda tree: tree, out_shardings=everywhere)(tree)
  return jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), whole)


def joined(own: np.ndarray) -> np.ndarray:
  """Rows that are spread over the processes, with zeros for those that other processes hold."""
  from jax.experimental import multihost_utils

  whole: np.ndarray = np.max(multihost_utils.process_allgather(own), axis=0)
  return whole


@contextlib.contextmanager
def together(remedy: str) -> Iterator[None]:
  """Ends a run in one line if another process of it has ended."""
  try:
    yield
  except jax.errors.JaxRuntimeError as error:
    known = any(word in str(error).lower() for word in GONE)
    if jax.process_count() == 1 or not known:
      raise
    # The runtime says good-bye to all processes at exit, and aborts if one does not answer.
    atexit.register(_leave)
    raise LostProcessError(f"another process of this run has ended; {remedy}") from None


def _leave() -> None:
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(1)


def _broadcast(message: bytes) -> bytes:
  if CHANNEL is not None:
    return CHANNEL(message)
  from jax.experimental import multihost_utils

  length = int(multihost_utils.broadcast_one_to_all(np.int32(len(message))))
  filled = np.frombuffer(message.ljust(length)[:length], np.uint8)
  return bytes(np.asarray(multihost_utils.broadcast_one_to_all(filled)).astype(np.uint8))


def _placed(leaf: Array, sharding: NamedSharding) -> jax.Array:
  if jax.process_count() == 1 or not getattr(leaf, "is_fully_addressable", True):
    return jax.device_put(leaf, sharding)
  if jax.dtypes.issubdtype(jnp.result_type(leaf), jax.dtypes.prng_key):
    words = _placed(jax.random.key_data(leaf), NamedSharding(sharding.mesh, PartitionSpec()))
    return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))
  near = np.asarray(leaf, jnp.result_type(leaf))
  return jax.make_array_from_callback(near.shape, sharding, lambda index: near[index])
