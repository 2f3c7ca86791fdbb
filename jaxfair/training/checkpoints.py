"""Checkpoints of a private training: resumed to the same bits, or refused.

folder/
  ledger.jsonl       what was charged (accounting.Ledger)
  private/           readable by its owner only; not for release
    run.json         which training this is
    secret_key       the noise can be subtracted by whoever has it
    step-00000100/   state and non-private trace after 100 steps
"""

import hashlib
import hmac
import json
import os
import pathlib
import secrets
import shutil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, privacy

BEGUN = ("secret_key", "secret_key.partial", "run.json.partial")
KEPT = 2  # checkpoints; the one before the last survives a crash while saving


class CheckpointError(checks.JaxfairError):
  """A folder that holds another training, or cannot be read."""


class Checkpoints:
  """The private part of one training's folder.

  Attributes:
    run_id: names the training in the ledger; random, and new for each folder.
    key: the training's key.
    for_release: whether the key came from the operating system.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    described: Any,
    private: Any,
    key: Any,
    *,
    programs: dict[str, str],
  ):
    """Begins a training's folder, or finds the one that is there.

    Args:
      folder: of the training.
      described: what makes it this training and not another; JSON values.
      private: arrays that must be the same on resuming: the data.
      key: the caller's key, or None for one that is drawn and kept here.
      programs: what is trained, from `training.programs`.
    """
    self._root = folder / "private"
    known = self._root / "run.json"
    if known.exists():
      record = json.loads(known.read_text(encoding="utf-8"))
      self.run_id = record["run_id"]
      self.for_release = record["for_release"]
      self.key = _load_key(self._root / "secret_key")
      self._require_same(record, described, private, key, folder)
      _require_programs(record, programs, folder)
      return
    # Killed in its first moment, a training has a key and has used it nowhere.
    begun = {self._root, *(self._root / name for name in BEGUN)}
    if folder.exists() and not begun.issuperset(folder.rglob("*")):
      raise CheckpointError(
        f"{folder} is not empty and holds no training; choose another folder"
      )
    self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
    self.run_id = secrets.token_hex(8)
    self.for_release = key is None
    self.key = privacy.os_key() if key is None else key
    words = np.asarray(jax.random.key_data(self.key)).tolist()
    _write(self._root / "secret_key", json.dumps(words))
    record = {
      "run_id": self.run_id,
      "for_release": self.for_release,
      "described": described,
      "programs": programs,
      "jax": jax.__version__,
      "data": _fingerprint(private, self.key),
    }
    _write(known, json.dumps(record, indent=2))

  def save(self, step: int, state: Any) -> None:
    """Saves the state after a number of steps; complete or not at all."""
    import orbax.checkpoint

    with orbax.checkpoint.StandardCheckpointer() as saver:
      saver.save(self._root.resolve() / f"step-{step:08d}", state)
    for old in self._steps()[:-KEPT]:
      shutil.rmtree(self._root / f"step-{old:08d}")

  def latest(self) -> int:
    """Steps of the newest checkpoint; 0 if there is none."""
    return max(self._steps(), default=0)

  def load(self, step: int, like: Any) -> Any:
    """The state after a number of steps; `like` gives shapes and types."""
    import orbax.checkpoint

    with orbax.checkpoint.StandardCheckpointer() as saver:
      return saver.restore(self._root.resolve() / f"step-{step:08d}", like)

  def _steps(self) -> list[int]:
    names = [path.name for path in self._root.glob("step-*") if path.is_dir()]
    return sorted(int(n[5:]) for n in names if n[5:].isdigit())

  def _require_same(
    self, record: Any, described: Any, private: Any, key: Any, folder: Any
  ) -> None:
    for name, value in json.loads(json.dumps(described)).items():
      if record["described"].get(name) != value:
        raise CheckpointError(
          f"{folder} holds a training with {name}="
          f"{record['described'].get(name)!r}, not {value!r}; choose another "
          "folder"
        )
    if key is not None and not _same_key(key, self.key):
      raise CheckpointError(
        f"{folder} holds a training with another key; leave key out to "
        "continue it, or choose another folder"
      )
    if record["data"] != _fingerprint(private, self.key):
      raise CheckpointError(
        f"{folder} holds a training on other data; choose another folder"
      )


def _require_programs(
  record: Any, programs: dict[str, str], folder: pathlib.Path
) -> None:
  """Refuses to go on with another model, loss, optimizer or penalty."""
  if "programs" not in record:
    raise CheckpointError(
      f"{folder} does not tell which model and loss it was begun with, for an "
      "earlier version made it; choose another folder"
    )
  known = record["programs"]
  for name in sorted({*known, *programs}, key=[*programs, *known].index):
    if known.get(name) == programs.get(name):
      continue
    if record["jax"] != jax.__version__:
      raise CheckpointError(
        f"{folder} was begun with jax {record['jax']}, and jax "
        f"{jax.__version__} makes another program of the {name}; continue it "
        f"with jax {record['jax']}, or choose another folder"
      )
    raise CheckpointError(
      f"{folder} holds a training with another {name}; pass the {name} that "
      "it was begun with, or choose another folder"
    )


def _fingerprint(private: Any, key: jax.Array) -> str:
  """Recognises the data for whoever has the key, and tells nobody else."""
  secret = np.asarray(jax.random.key_data(key)).tobytes()
  digest = hmac.new(secret, digestmod=hashlib.sha256)
  for leaf in jax.tree.leaves(private):
    array = np.ascontiguousarray(leaf)
    digest.update(f"{array.shape} {array.dtype}".encode())
    digest.update(array.tobytes())
  return digest.hexdigest()


def _same_key(first: jax.Array, second: jax.Array) -> bool:
  return np.array_equal(jax.random.key_data(first), jax.random.key_data(second))


def _load_key(path: pathlib.Path) -> jax.Array:
  words = np.array(json.loads(path.read_text(encoding="utf-8")), np.uint32)
  return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")


def _write(path: pathlib.Path, text: str) -> None:
  partial = path.with_name(path.name + ".partial")
  partial.unlink(missing_ok=True)
  handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
  with open(handle, "w", encoding="utf-8") as file:
    file.write(text)
    file.flush()
    os.fsync(file.fileno())
  os.replace(partial, path)
