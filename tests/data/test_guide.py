"""The examples of docs/data.md run, and its table names every set."""

import pathlib
import re

import pytest

from jaxfair import data

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "data.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(example, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  exec(compile(example, str(GUIDE), "exec"), {})


def test_every_set_is_in_the_table():
  table = GUIDE.read_text().split("## Where files")[0]
  missing = [name for name in data.names() if f"`{name}`" not in table]
  assert missing == []


@pytest.mark.parametrize(
  "entry", data.catalogue(), ids=lambda entry: entry.name
)
def test_the_table_lists_the_groups(entry):
  rows = [
    line for line in GUIDE.read_text().splitlines() if f"`{entry.name}`" in line
  ]
  listed = next(line for line in rows if line.startswith("|"))
  if len(entry.groups) < 10:
    offered = [name for name in entry.groups if name not in ("label", "all")]
    assert all(name in listed for name in offered)
