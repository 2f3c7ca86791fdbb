"""The files of a release folder: whole, with digests, arrays without pickle."""

import hashlib
import io
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _whole_files, checks
from jaxfair.methods import _model_card
from jaxfair.types import Params

RECORD, ARRAYS, DIGESTS = "release.json", "arrays.npz", "sha256.json"
SIGNED = (RECORD, ARRAYS, *_model_card.FILES)
PARAMS = "params"


class ReleaseError(checks.JaxfairError):
  """A folder that holds no release, or one that was changed."""


def write(folder: pathlib.Path, files: Mapping[str, bytes]) -> None:
  """Writes the files and their digests to a new folder, all of them or none."""
  digests = {name: _digest(content) for name, content in files.items()}
  checks.require(not folder.exists(), f"{folder} exists; choose another folder")
  with _whole_files.new_folder(folder) as made:
    for name, content in files.items():
      (made / name).write_bytes(content)
    (made / DIGESTS).write_bytes(json.dumps(digests, indent=2).encode())


def verified(folder: pathlib.Path) -> dict[str, bytes]:
  """The files of a release, if each is as it was written.

  Raises:
    ReleaseError: if one is missing or was changed.
  """
  try:
    digests = json.loads((folder / DIGESTS).read_bytes())
    files = {name: (folder / name).read_bytes() for name in SIGNED}
  except (OSError, ValueError):
    inside = folder / "release" / RECORD
    remedy = f"did you mean {inside.parent}?" if inside.is_file() else "pass the folder of one"
    raise ReleaseError(f"{folder} holds no complete release; {remedy}") from None
  for name, content in files.items():
    if not isinstance(digests, dict) or digests.get(name) != _digest(content):
      raise ReleaseError(
        f"{folder / name} was changed since it was released: its digest is "
        "not the one that was written; get the release from its source again"
      )
  return files


def pack(params: Params, others: Mapping[str, Any]) -> bytes:
  """Parameters and other arrays as the content of a `.npz` file."""
  leaves, _ = jax.tree_util.tree_flatten_with_path(params)
  named: dict[str, Any] = {
    PARAMS + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves
  }
  raw = io.BytesIO()
  np.savez(raw, **named, **others)
  return raw.getvalue()


def unpack(raw: bytes) -> dict[str, np.ndarray]:
  """The arrays of `pack` by name."""
  with np.load(io.BytesIO(raw), allow_pickle=False) as file:
    return {name: file[name] for name in file.files}


def params_like(like: Params, arrays: Mapping[str, np.ndarray], where: str) -> Params:
  """The parameters among the arrays; `like` gives their structure, shapes and types.

  Raises:
    ReleaseError: if one has another shape or type; the message begins with `where`.
  """
  leaves, structure = jax.tree_util.tree_flatten_with_path(like)
  found = []
  for path, leaf in leaves:
    array = arrays[PARAMS + jax.tree_util.keystr(path)]
    # A file holds the bits of a bfloat16 array, but not its type.
    array = array.view(leaf.dtype) if array.dtype.kind == "V" else array
    if array.shape != leaf.shape or array.dtype != leaf.dtype:
      raise ReleaseError(
        f"{where} has {array.dtype}{array.shape} for {jax.tree_util.keystr(path)}, where its "
        f"network has {leaf.dtype}{leaf.shape}; release the model again"
      )
    found.append(jnp.asarray(array))
  return jax.tree.unflatten(structure, found)


def _digest(content: bytes) -> str:
  return hashlib.sha256(content).hexdigest()
