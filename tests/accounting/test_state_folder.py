"""Where things lie that must outlive every run."""

import stat

import pytest

from jaxfair.accounting import _state_folder
from jaxfair.accounting._locked_file import LedgerError


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  return tmp_path / "state"


def test_the_folder_follows_the_environment(tmp_path, monkeypatch, root):
  assert _state_folder.state_folder() == root
  monkeypatch.delenv("JAXFAIR_STATE")
  monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
  assert _state_folder.state_folder() == tmp_path / "xdg" / "jaxfair"
  monkeypatch.delenv("XDG_STATE_HOME")
  monkeypatch.setenv("HOME", str(tmp_path / "home"))
  usual = tmp_path / "home" / ".local" / "state" / "jaxfair"
  assert _state_folder.state_folder() == usual


@pytest.mark.parametrize("existed", [False, True])
def test_it_is_its_owner_s_even_if_it_existed(root, existed):
  if existed:
    root.mkdir()
    root.chmod(0o755)
  _state_folder.keyed(b"people")
  assert stat.S_IMODE(root.stat().st_mode) == 0o700
  assert stat.S_IMODE((root / "secret").stat().st_mode) == 0o600
  assert [path.name for path in root.iterdir()] == ["secret"]


def test_names_last_and_need_the_secret(tmp_path, monkeypatch):
  name = _state_folder.keyed(b"people")
  assert _state_folder.keyed(b"people") == name
  assert _state_folder.keyed(b"others") != name
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "other"))
  assert _state_folder.keyed(b"people") != name


def test_a_lost_or_damaged_secret_is_not_made_anew(root):
  _state_folder.keyed(b"people")
  (root / "ledgers" / "some").mkdir(parents=True)
  (root / "secret").write_text("short")
  with pytest.raises(LedgerError, match="damaged"):
    _state_folder.keyed(b"people")
  (root / "secret").unlink()
  with pytest.raises(LedgerError, match=r"missing.*restore it from a copy"):
    _state_folder.keyed(b"people")


def test_a_folder_that_cannot_be_made_is_told(tmp_path, monkeypatch):
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "file" / "state"))
  with pytest.raises(LedgerError, match="set JAXFAIR_STATE"):
    _state_folder.keyed(b"people")
