"""The examples of docs/data.md run, and its table names every set."""

import pytest

from helpers import pages
from jaxfair import data
from jaxfair.data import _loading

GUIDE = "docs/data.md"
TEXT = pages.read(GUIDE)


@pytest.mark.slow
@pytest.mark.parametrize("example", pages.code_blocks(TEXT))
def test_examples_run(example, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  exec(compile(example, GUIDE, "exec"), {})


def test_every_set_is_in_the_table():
  table = TEXT.split("## Where files")[0]
  missing = [name for name in _loading.names() if f"`{name}`" not in table]
  assert missing == []


@pytest.mark.parametrize("entry", data.catalog(), ids=lambda entry: entry.name)
def test_the_table_lists_the_groups(entry):
  rows = [line for line in TEXT.splitlines() if f"`{entry.name}`" in line]
  listed = next(line for line in rows if line.startswith("|"))
  if len(entry.groups) < 10:
    offered = [name for name in entry.groups if name not in ("label", "all")]
    assert all(name in listed for name in offered)
