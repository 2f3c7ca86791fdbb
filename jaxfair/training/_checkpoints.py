"""Checkpoints of a private training: resumed to the same bits, or refused.

folder/
  ledger.jsonl       what was charged (accounting.Ledger)
  released.npz       the parameters of a finished release, leaf by leaf
  private/           readable by its owner only; not for release
    run.json         which training this is
    secret_key       of a training and of exact noise: anyone who has it can subtract the noise
    step-00000100/   state and non-private trace after 100 steps

When a release is finished, everything in private/ but run.json is erased.
"""

import hashlib
import hmac
import json
import os
import pathlib
import re
import secrets
import shutil
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, privacy
from jaxfair._whole_files import owner_only, sync_folder, write_whole
from jaxfair.accounting import _state_folder
from jaxfair.accounting._locked_file import LedgerError
from jaxfair.privacy._exact_coins import BitSource, keyed
from jaxfair.training import _hosts
from jaxfair.training._checkpoint_files import (
  checkpointer,
  is_spread,
  load_leaves,
  require_room,
  save_leaves,
  without_logs,
)
from jaxfair.types import Key, Params, PyTree

RECORD, SECRET, RELEASED = "run.json", "secret_key", "released.npz"
BEGUN = ("secret_key", "secret_key.partial", "run.json.partial")
EXACT = 32  # secret bytes
KEPT = 2  # checkpoints; the one before the last survives a crash while saving


class CheckpointError(checks.JaxfairError):
  """A folder that holds another training, or cannot be read."""


class Checkpoints:
  """The private part of one training's folder.

  Attributes:
    run_id: names the training in the ledger; random, and new for each folder.
    for_release: whether the key came from the operating system.
    finished: whether the release is complete, and its key erased.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    described: Mapping[str, object],
    private: PyTree,
    key: Key | None,
    *,
    programs: dict[str, str],
  ):
    """Begins a training's folder, or finds the one that is there.

    Args:
      folder: folder of the training.
      described: what makes it this training and not another; JSON values.
      private: arrays that must be the same on resuming: the data.
      key: the caller's key, or None for one that is drawn and kept here.
      programs: what is trained, from `training._program_fingerprint`.
    """
    described = json.loads(json.dumps(described, default=_number))
    self._folder, self._root = folder, folder / "private"
    self._private = private
    known = self._root / RECORD
    self.finished = False
    self._key: jax.Array | None = None
    self._exact: list[int] = []
    if known.exists():
      owner_only(self._root)
      record = json.loads(known.read_text(encoding="utf-8"))
      self.run_id = record["run_id"]
      self.for_release = record["for_release"]
      self.finished = record.get("finished", False)
      if not self.finished:
        self._key, self._exact = _load_secret(self._root / SECRET)
      self._require_same(record, described, key)
      _require_programs(record, programs, folder)
      return
    # Killed in its first moment, a training has a key and has used it nowhere.
    begun = {self._root, *(self._root / name for name in BEGUN)}
    if folder.exists() and not begun.issuperset(folder.rglob("*")):
      raise CheckpointError(f"{folder} is not empty and holds no training; choose another folder")
    owner_only(self._root)
    self.run_id = secrets.token_hex(8)
    self.for_release = key is None
    self._key = privacy.os_key() if key is None else key
    self._exact = list(os.urandom(EXACT)) if self.for_release else []
    words = np.asarray(jax.random.key_data(self._key)).tolist()
    write_whole(self._root / SECRET, json.dumps([*words, *self._exact]), mode=0o600)
    record = {
      "run_id": self.run_id,
      "for_release": self.for_release,
      "described": described,
      "programs": programs,
      "jax": jax.__version__,
      "data": _fingerprint(private, self._key),
    }
    write_whole(known, json.dumps(record, indent=2), mode=0o600)

  def told(self) -> dict[str, Any]:
    """What other processes of the training must know, as JSON values."""
    words = None if self._key is None else np.asarray(jax.random.key_data(self._key)).tolist()
    return {
      "run_id": self.run_id,
      "for_release": self.for_release,
      "finished": self.finished,
      "key": words,
    }

  @classmethod
  def joined(cls, folder: pathlib.Path, told: dict[str, Any], private: PyTree) -> "Checkpoints":
    """A folder that another process, or this one, has begun or found."""
    self = cls.__new__(cls)
    self._folder, self._root, self._private = folder, folder / "private", private
    self.run_id, self.for_release = told["run_id"], told["for_release"]
    self.finished = told["finished"]
    self._key = None if told["key"] is None else _as_key(told["key"])
    self._exact = []
    return self

  @property
  def key(self) -> jax.Array:
    """The training's key, until the release is finished."""
    assert self._key is not None, "a finished release has no key"
    return self._key

  @property
  def bits(self) -> BitSource:
    """Bits of exact noise on the host, for a release that is not finished.

    Privacy:
      They follow from 32 bytes of the operating system that are kept beside the key, and the data
      must be those that the folder was begun with. A release that is computed again, also in a
      folder that was restored from a backup, therefore has the noise of the first time.
    """
    assert self._exact, "only a release that is not finished has bits"
    return keyed(bytes(self._exact))

  def save(self, step: int, state: PyTree) -> None:
    """Saves the state after a number of steps; complete or not at all.

    Of several processes the first one saves what all of them hold, and all wait for it. Of arrays
    that are spread over the processes, each one saves its part.
    """
    if is_spread(state):
      path = self._path(step)
      state = jax.tree.map(lambda leaf: leaf if is_spread(leaf) else np.asarray(leaf), state)
      _hosts.from_first(lambda: self._begin(path, state))
      with checkpointer(alone=False) as saver:
        saver.save(path, state)
      _hosts.from_first(self._drop_old)
      return
    if jax.process_count() > 1:  # where an array of JAX would have to be everybody's
      state = jax.tree.map(np.asarray, state)
    _hosts.from_first(lambda: self._save(step, state))

  def _path(self, step: int) -> pathlib.Path:
    return self._root.resolve() / f"step-{step:08d}"

  def _begin(self, path: pathlib.Path, state: PyTree) -> None:
    self._drop_unfinished()
    require_room(path, state)

  def _drop_old(self) -> None:
    for old in self._steps()[:-KEPT]:
      shutil.rmtree(self._path(old))

  def _save(self, step: int, state: PyTree) -> None:
    path = self._path(step)
    self._begin(path, state)
    try:
      with without_logs(), checkpointer() as saver:
        saver.save(path, state)
    except Exception as error:
      self._drop_unfinished()
      code = re.search(r"os_error_code='(\d+)'", str(error))
      if code is None:
        raise
      number = int(code[1])
      raise OSError(number, os.strerror(number), str(path)) from None
    self._drop_old()

  def latest(self) -> int:
    """Steps of the newest checkpoint; 0 if there is none."""
    return max(self._steps(), default=0)

  def load(self, step: int, like: PyTree) -> PyTree:
    """The state after a number of steps; `like` gives shapes, types and where arrays are."""
    spread = is_spread(like)
    if jax.process_count() > 1 and not spread:
      like = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like)
    with checkpointer(alone=not spread) as saver:
      return saver.restore(self._path(step), like)

  def finish(self, params: Params) -> None:
    """Writes what is released, then erases what could undo its noise.

    A kill at any moment leaves the whole training, or the parameters and a
    record that says so: then the same call erases what is left.
    """
    if not self.finished:
      save_leaves(self._folder / RELEASED, params)
      known = self._root / RECORD
      record = json.loads(known.read_text(encoding="utf-8"))
      record |= {"finished": True, "data": self._lasting_fingerprint()}
      write_whole(known, json.dumps(record, indent=2), mode=0o600)
      self.finished, self._key, self._exact = True, None, []
    rest = [path for path in self._root.iterdir() if path.name != RECORD]
    for path in sorted(rest, key=lambda path: not path.name.startswith(SECRET)):
      if path.is_dir():
        shutil.rmtree(path)
      else:
        path.unlink()
        sync_folder(self._root)

  @property
  def written(self) -> bool:
    """Whether the parameters are there to be seen, of a finished release or of a killed one."""
    return (self._folder / RELEASED).exists()

  def released(self, like: PyTree) -> Params:
    """The parameters of a finished release; `like` gives shapes and types."""
    return load_leaves(self._folder / RELEASED, like)

  def _drop_unfinished(self) -> None:
    """Removes checkpoints that a kill or a full disk left incomplete."""
    for path in self._root.glob("step-*"):
      if not path.name[5:].isdigit():
        shutil.rmtree(path, ignore_errors=True)

  def _steps(self) -> list[int]:
    names = [path.name for path in self._root.glob("step-*") if path.is_dir()]
    return sorted(int(n[5:]) for n in names if n[5:].isdigit())

  def _require_same(
    self, record: dict[str, Any], described: Mapping[str, object], key: Key | None
  ) -> None:
    folder = self._folder
    for name, value in described.items():
      held = record["described"].get(name)
      if held != value:
        raise CheckpointError(
          f"{folder} holds a training with {name}={held!r}, not {value!r}; choose another folder"
        )
    if key is not None and (self.finished or not _same_key(key, self.key)):
      raise CheckpointError(
        f"{folder} holds a training with another key; leave key out to "
        "continue it, or choose another folder"
      )
    if self.finished:
      now = self._lasting_fingerprint()
      if now is None or record["data"] != now:
        raise CheckpointError(
          f"{folder} holds a finished release on other data, or one that was "
          f"made with another state folder; take {RELEASED} from there, or "
          "choose another folder"
        )
    elif record["data"] != _fingerprint(self._private, self.key):
      raise CheckpointError(f"{folder} holds a training on other data; choose another folder")

  def _lasting_fingerprint(self) -> str | None:
    """Recognizes the data by the state folder's secret, which is not erased.

    Returns:
      None if there is no state folder: nothing then recognizes the data.
    """
    message = self.run_id.encode() + _content(self._private)
    try:
      return _state_folder.keyed(message)
    except (LedgerError, checks.ArgumentError):
      return None


def _require_programs(
  record: dict[str, Any], programs: dict[str, str], folder: pathlib.Path
) -> None:
  """Raises if the model, loss, optimizer or penalty differs from that of the checkpoint."""
  if "programs" not in record:
    raise CheckpointError(
      f"{folder} was written by an earlier version and does not record its model and loss; "
      "choose another folder"
    )
  known = record["programs"]
  for name in sorted({*known, *programs}, key=[*programs, *known].index):
    if known.get(name) == programs.get(name):
      continue
    if record["jax"] != jax.__version__:
      raise CheckpointError(
        f"{folder} was started with jax {record['jax']}, and jax {jax.__version__} traces another "
        f"program for the {name}; continue it with jax {record['jax']}, or choose another folder"
      )
    raise CheckpointError(
      f"{folder} holds a training with another {name}; pass the {name} that "
      "it was started with, or choose another folder"
    )


def _fingerprint(private: PyTree, key: jax.Array) -> str:
  """A keyed hash that identifies the data; it reveals nothing without the key."""
  secret = np.asarray(jax.random.key_data(key)).tobytes()
  return hmac.new(secret, _content(private), hashlib.sha256).hexdigest()


def _content(private: PyTree) -> bytes:
  digest = hashlib.sha256()
  for leaf in jax.tree.leaves(private):
    array = np.ascontiguousarray(leaf)
    digest.update(f"{array.shape} {array.dtype}".encode())
    digest.update(array.tobytes())
  return digest.digest()


def _same_key(first: jax.Array, second: jax.Array) -> bool:
  return np.array_equal(jax.random.key_data(first), jax.random.key_data(second))


def _number(value: Any) -> Any:
  """A number of NumPy or JAX as JSON has it."""
  return np.asarray(value).item()


def _load_secret(path: pathlib.Path) -> tuple[jax.Array, list[int]]:
  """The key, and the bytes of exact noise."""
  words = json.loads(path.read_text(encoding="utf-8"))
  return _as_key(words[:2]), words[2:]


def _as_key(words: list[int]) -> jax.Array:
  return jax.random.wrap_key_data(jnp.asarray(words, jnp.uint32), impl="threefry2x32")
