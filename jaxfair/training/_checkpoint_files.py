"""Arrays on the disk: a checkpoint of a training by orbax, or a plain `.npz` file.

Orbax stores arrays in pieces that are named by their place in the array, so that any number of
devices and processes can read them.
"""

import contextlib
import errno
import io
import logging
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair._whole_files import write_whole
from jaxfair.types import PyTree

ROOM = 2**17  # bytes that a checkpoint takes besides its arrays, and to spare


def is_spread(tree: PyTree) -> bool:
  """Whether some array is divided between processes, so that none of them has all of it."""
  if jax.process_count() == 1:
    return False
  shardings = [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(tree)]
  return any(one is not None and not one.is_fully_replicated for one in shardings)


def checkpointer(*, alone: bool = True) -> Any:
  """Orbax, in this process alone unless it is to wait for the others, who save as well."""
  import orbax.checkpoint
  from orbax.checkpoint.options import MultiprocessingOptions

  if not alone:
    return orbax.checkpoint.StandardCheckpointer()
  me = jax.process_index()
  options = MultiprocessingOptions(
    primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"process-{me}"
  )
  return orbax.checkpoint.StandardCheckpointer(multiprocessing_options=options)


def require_room(path: pathlib.Path, state: PyTree) -> None:
  """Raises OSError if a checkpoint hardly fits on its disk.

  Writers of orbax that fail print tracebacks from threads of their own.
  """
  size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
  if shutil.disk_usage(path.parent).free < 1.25 * size + ROOM:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@contextlib.contextmanager
def without_logs() -> Iterator[None]:
  """Keeps orbax from logging the traceback of an error that it raises."""
  logger, nothing = logging.getLogger("absl"), lambda record: False
  logger.addFilter(nothing)
  try:
    yield
  finally:
    logger.removeFilter(nothing)


def save_leaves(path: pathlib.Path, tree: PyTree) -> None:
  """Writes a tree's arrays as a plain `.npz` file, whole or not at all."""
  leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
  raw = io.BytesIO()
  np.savez(raw, *leaves)
  write_whole(path, raw.getvalue(), mode=0o600)


def load_leaves(path: pathlib.Path, like: PyTree) -> PyTree:
  """The tree of `save_leaves`; `like` gives its structure and types."""
  leaves, structure = jax.tree.flatten(like)
  with np.load(path) as file:
    found = [file[f"arr_{i}"] for i in range(len(leaves))]
  # A file holds the bits of a bfloat16 array, but not its type.
  typed = [
    array.view(leaf.dtype) if array.dtype.kind == "V" else array
    for array, leaf in zip(found, leaves, strict=True)
  ]
  return jax.tree.unflatten(structure, map(jnp.asarray, typed))
