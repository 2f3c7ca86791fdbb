"""The catalog, descriptions and checks."""

import dataclasses

import pytest

from jaxfair import data
from jaxfair.data import DataError, _inventory, _loading


def test_every_set_is_listed_without_opening_a_file(toy, monkeypatch):
  monkeypatch.setattr(_loading, "open_set", None)
  entries = {entry.name: entry for entry in data.catalog()}
  assert set(entries) == set(_loading.names())
  assert not entries["toy"].available
  assert entries["colored_digits"].available
  assert entries["adult"].rows == 48842
  assert entries["adult"].group_sizes["sex"] == (16192, 32650)
  assert "fetch adult" in entries["adult"].how
  assert "fetch mnist" in entries["colored_mnist"].how
  assert "by hand" in entries["utkface"].how
  assert "comes with" in entries["digits"].how


def test_what_is_here_is_described_with_names(toy, toy_file):
  about = _inventory.describe("toy")
  assert about.paths == (toy_file,)
  assert about.class_names == ("no", "yes")
  assert about.group_names["race"] == {"black": 2, "white": 3}
  assert about.group_names["all"] == {"everyone": 5}
  assert about.labels == ("owns", "cook")
  assert about.source.cautions == ("small",)


def test_what_is_not_here_is_described_too(toy):
  about = _inventory.describe("toy")
  assert not about.available
  assert about.group_names == {}


def test_check_verifies_files_and_figures(toy_file):
  checks = _inventory.check("toy")
  assert all(check.ok for check in checks)
  assert [check.what for check in checks] == [
    str(toy_file),
    "rows per class",
    "rows per group, sex",
    "rows per group, race",
    "oldest",
  ]


def test_check_tells_what_differs(toy, toy_file):
  toy_file.write_text("spoilt")
  (failed,) = _inventory.check("toy")
  assert not failed.ok
  assert "altered" in failed.found


def test_check_tells_which_figure_differs(toy, toy_file, monkeypatch):
  facts = dataclasses.replace(toy.facts, groups={"sex": (3, 2)})
  monkeypatch.setitem(_loading.SPECS, "toy", dataclasses.replace(toy, facts=facts))
  (failed,) = (one for one in _inventory.check("toy") if not one.ok)
  assert failed.what == "rows per group, sex"
  assert (failed.expected, failed.found) == ((3, 2), (2, 3))


def test_check_of_a_missing_set_says_how_to_get_it(toy):
  with pytest.raises(DataError, match="fetch toy"):
    _inventory.check("toy")
