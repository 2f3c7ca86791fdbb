"""The user's state folder: what must outlive every run.

    secret      32 random bytes, in hexadecimal digits
    ledgers/    one folder per data set (accounting.dataset_ledger)

It is `$JAXFAIR_STATE`, else `$XDG_STATE_HOME/jaxfair`, else
`~/.local/state/jaxfair`, and open to its owner only.
"""

import hashlib
import hmac
import os
import pathlib
import secrets

from jaxfair import _whole_files
from jaxfair.accounting._ledger_file import LedgerError

SECRET = "secret"
LEDGERS = "ledgers"


def state_folder() -> pathlib.Path:
  """The folder; made if missing, and closed to other users if it was open."""
  chosen = os.environ.get("JAXFAIR_STATE")
  if chosen:
    folder = pathlib.Path(chosen).absolute()
  else:
    usual = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    folder = pathlib.Path(usual).expanduser() / "jaxfair"
  try:
    return _whole_files.owner_only(folder)
  except OSError as error:
    raise LedgerError(
      f"cannot use the state folder {folder} ({error.strerror}), where the "
      "ledgers of data sets are kept; set JAXFAIR_STATE to a folder that you "
      "can write"
    ) from None


def ledgers_folder() -> pathlib.Path:
  """Where the ledgers of data sets lie."""
  return _whole_files.owner_only(state_folder() / LEDGERS)


def keyed(message: bytes) -> str:
  """A name for the message that reveals nothing without this folder's secret.

  A plain hash of people's records would reveal them: anyone who knows all records but one could
  find that one by trial.
  """
  return hmac.new(_secret(), message, hashlib.sha256).hexdigest()


def _secret() -> bytes:
  folder = state_folder()
  path = folder / SECRET
  try:
    if not path.exists():
      _make_secret(path)
    found = path.read_text(encoding="ascii")
  except (OSError, UnicodeError) as error:
    raise LedgerError(f"cannot use {path} ({error})") from None
  if len(found) != 64 or set(found) - set("0123456789abcdef"):
    raise LedgerError(
      f"{path} is damaged, so ledgers of data sets cannot be found by their "
      "data; restore it from a copy"
    )
  return bytes.fromhex(found)


def _make_secret(path: pathlib.Path) -> None:
  """Draws the secret; of two processes that do so at once, one wins."""
  ledgers = path.parent / LEDGERS
  if ledgers.exists() and any(ledgers.iterdir()):
    raise LedgerError(
      f"{path} is missing, so the ledgers in this folder cannot be found by their data; "
      f"restore it from a copy, or move {ledgers} away and count its charges as spent"
    )
  draft = path.with_name(f".{SECRET}.{secrets.token_hex(4)}")
  _whole_files.write_whole(draft, secrets.token_hex(32), mode=0o600)
  try:
    os.link(draft, path)  # unlike a rename this never replaces a file
  except FileExistsError:
    pass
  finally:
    draft.unlink()
  _whole_files.sync_folder(path.parent)
