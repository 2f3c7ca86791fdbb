"""Files that appear complete or not at all."""

import os
import stat

import pytest

from jaxfair import _whole_files, checks


def test_a_file_is_replaced_whole_with_its_permissions(tmp_path):
  path = tmp_path / "a.txt"
  _whole_files.write_whole(path, "older")
  _whole_files.write_whole(path, "Größe", mode=0o600)
  assert path.read_text(encoding="utf-8") == "Größe"
  assert stat.S_IMODE(path.stat().st_mode) == 0o600
  assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_what_was_there_and_no_part(tmp_path, monkeypatch, call):
  path = tmp_path / "a.txt"
  _whole_files.write_whole(path, "older")

  def full(*_):
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(os, call, full)
  with pytest.raises(OSError, match="No space left"):
    _whole_files.write_whole(path, "newer")
  monkeypatch.undo()
  assert path.read_text() == "older"
  assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_gets_its_name_when_it_is_complete(tmp_path):
  with _whole_files.new_folder(tmp_path / "release") as made:
    (made / "model").write_text("weights")
    assert not (tmp_path / "release").exists()
  assert (tmp_path / "release" / "model").read_text() == "weights"
  assert [p.name for p in tmp_path.iterdir()] == ["release"]


def test_a_folder_that_was_not_completed_is_not_there(tmp_path):
  partial = tmp_path / "release.partial"  # of a process that was killed
  partial.mkdir()
  (partial / "stale").write_text("half")

  def fill():
    with _whole_files.new_folder(tmp_path / "release") as made:
      assert list(made.iterdir()) == []
      (made / "model").write_text("half")
      raise OSError(28, "No space left on device")

  with pytest.raises(OSError, match="No space left"):
    fill()
  assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o705])
def test_an_open_folder_is_closed_to_others(tmp_path, mode):
  folder = tmp_path / "state"
  folder.mkdir()
  folder.chmod(mode)
  _whole_files.owner_only(folder)
  assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_is_shared_is_left_alone(tmp_path):
  folder = tmp_path / "tmp"
  folder.mkdir()
  folder.chmod(0o1777)
  with pytest.raises(checks.ArgumentError, match="name a folder of your own"):
    _whole_files.owner_only(folder)
  assert stat.S_IMODE(folder.stat().st_mode) == 0o1777
