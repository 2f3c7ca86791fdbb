"""Finished teachers on the disk: each file complete or not there at all."""

import pathlib
from typing import Any

import jax

from jaxfair.training import _hosts
from jaxfair.training._checkpoint_files import load_leaves, save_leaves
from jaxfair.training._checkpoints import Checkpoints
from jaxfair.types import Examples, Params, PyTree


class SavedTeachers:
  """The folder of an ensemble's teachers, saved some at a time by their numbers.

  Whose teachers they are, and that they are continued with the same data,
  settings and model, is `training._checkpoints`' to tell. The arrays are plain
  `.npz` files: the processes of one run save at different times, which
  checkpoints that are written jointly do not allow.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    described: dict[str, Any],
    parts: Examples,
    key: jax.Array,
    *,
    programs: dict[str, str],
  ):
    # Ours, or refused: by the first process, which the others wait for.
    def found() -> None:
      Checkpoints(folder, described, parts, key, programs=programs)

    _hosts.from_first(found)
    self._root = folder / "private"

  def save(self, number: int, params: Params) -> None:
    """Saves the parameters of the teachers in this segment."""
    save_leaves(self._path(number), params)

  def load(self, number: int, like: PyTree) -> Params | None:
    """The parameters of a segment, or None if it was not finished."""
    path = self._path(number)
    if not path.exists():
      return None
    return load_leaves(path, like)

  def _path(self, number: int) -> pathlib.Path:
    return self._root / f"teachers-{number:06d}.npz"
