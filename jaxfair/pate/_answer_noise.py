"""The noise of released answers, from a secret of their folder.

The same stretch of queries with the same votes gets the same noise, however
often it is answered: after a crash, from an older log, from a copy of the
folder. That is one release. Other votes never get the noise of the first.
"""

import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import re
from typing import Any, NamedTuple

import numpy as np

from jaxfair._whole_files import owner_only, sync_folder, write_whole
from jaxfair.accounting._locked_file import LedgerError
from jaxfair.privacy._exact_coins import BitSource, keyed

SECRET, LENGTH, RUN = "secret_key", 32, 8


class Drawn(NamedTuple):
  """What is needed to answer one stretch of queries.

  Attributes:
    tag: identifies the votes that are answered; it reveals nothing about them without the secret.
    source: source of random bits for the noise.
  """

  tag: str
  source: BitSource


class NoiseSecret:
  """32 secret bytes; released values depend on them only through noise.

  Attributes:
    run: what answers are charged as, where `give_secret` has decided it.

  Privacy:
    Tags and noise are values of HMAC-SHA256 under the secret for different
    messages: to anyone without the secret they are independent random bits,
    as those of the operating system are. The message of a stretch holds its
    votes, so that two stretches, or two sets of votes for one, never share
    noise. Anyone who has the secret can subtract the noise.
  """

  def __init__(self, secret: bytes, run: str | None = None):
    self._secret, self.run = secret, run

  @classmethod
  def of_seed(cls, seed: int) -> "NoiseSecret":
    """A study's, which anybody can compute."""
    return cls(hashlib.sha256(f"jaxfair answers {seed}".encode()).digest())

  @classmethod
  def of_folder(cls, folder: pathlib.Path, *, begin: bool) -> "NoiseSecret | None":
    """The folder's secret.

    Args:
      folder: folder of the answers; the secret is in its `private` folder.
      begin: draws one from the operating system if there is none.

    Returns:
      None if there is none, since the answers are finished.
    """
    path = folder / "private" / SECRET
    try:
      if begin and not path.exists():
        owner_only(path.parent)
        write_whole(path, os.urandom(LENGTH).hex(), mode=0o600)
      text = path.read_bytes()
    except FileNotFoundError:
      return None
    except OSError as error:
      raise LedgerError(f"cannot use {path} ({error.strerror})") from None
    found = re.fullmatch(rb"([0-9a-f]{64})([0-9a-f]{16})?", text)
    if found is None:
      raise LedgerError(
        f"{path} is damaged, so no answer can be given again; begin another "
        "folder, which pays for its answers again"
      )
    return cls(bytes.fromhex(found[1].decode()), found[2].decode() if found[2] else None)

  def fingerprint(self) -> str:
    """Recognizes the secret and does not tell it."""
    return self._keyed(b"fingerprint").hex()[:32]

  def draw(self, named: Any, votes: np.ndarray) -> Drawn:
    """The noise of one stretch.

    Args:
      named: all that makes it this stretch and no other; JSON values.
      votes: the counts that noise is added to.
    """
    shape = [named, list(votes.shape)]
    content = np.ascontiguousarray(votes, "<i8").tobytes()
    stretch = self._keyed(json.dumps(shape).encode() + b"\0" + content)
    tag = self._keyed(b"tag" + stretch).hex()[:32]
    return Drawn(tag, keyed(self._keyed(b"noise" + stretch)))

  def _keyed(self, message: bytes) -> bytes:
    return hmac.new(self._secret, message, hashlib.sha256).digest()


def give_secret(folder: pathlib.Path, source: BitSource) -> None:
  """Begins a folder of answers with a secret from `source`, if it has not begun.

  For a release that is charged as a whole before the folder is made. If the folder is made again,
  from the same source, the same votes get the same answers under the same charge.
  """
  path = folder / "private" / SECRET
  if not path.exists() and not (folder / "answers.jsonl").exists():
    owner_only(path.parent)
    write_whole(path, source(LENGTH + RUN).hex(), mode=0o600)


def erase_secret(folder: pathlib.Path) -> None:
  """Unlinks the folder's secret, if there is one."""
  with contextlib.suppress(FileNotFoundError):
    (folder / "private" / SECRET).unlink()
    sync_folder(folder / "private")
