"""README.md: its example runs as printed, its tables list what there is."""

import re

import pytest

import jaxfair
from helpers import pages

PAGE = "README.md"
TEXT = pages.read(PAGE)


@pytest.mark.slow
def test_the_example_runs(data_root, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  session = pages.run(PAGE, blocks=1)
  told = capsys.readouterr().out.strip().splitlines()
  [promised] = re.findall(r"^print\(.*\)  # (.*)$", TEXT, re.MULTILINE)
  assert told[0] == promised
  assert session["trained"].guarantee.epsilon <= 1.0
  # One line per model: plain, then private, by group.
  assert len(told) == 3
  for line in told[1:]:
    shares = [float(v) for v in re.findall(r"\d\.\d+", line)]
    assert len(shares) == session["adult"].num_groups
    assert min(shares) > 0.75  # the majority class alone gives men 0.70


def test_every_page_is_listed():
  listed = set(re.findall(r"\((docs/\w+\.md)\)", TEXT))
  pages_there = {f"docs/{path.name}" for path in pages.ROOT.glob("docs/*.md")}
  assert listed == pages_there


def test_every_package_is_listed():
  rows = "\n".join(re.findall(r"^\| \[.*$", TEXT, re.MULTILINE))
  missing = [n for n in jaxfair.__all__ if not re.search(rf"`{n}`", rows)]
  assert missing == []


def test_the_opening_commands_are_targets_of_make():
  commands = re.findall(r"^make (\w+)", TEXT, re.MULTILINE)
  makefile = pages.read("Makefile")
  assert commands == ["quickstart", "test"]
  for name in commands:
    assert re.search(rf"^{name}:", makefile, re.MULTILINE)
