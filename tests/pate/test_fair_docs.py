"""The example of docs/fairpate.md runs, and prints what the page says."""

import pathlib
import re

import pytest

from jaxfair import studies

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "fairpate.md"
TEXT = PAGE.read_text(encoding="utf-8")
CONFIGS = PAGE.parents[1] / "configs" / "fairpate"


@pytest.mark.slow
def test_the_example_prints_what_the_page_shows(capsys):
  [code] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
  [shown] = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
  exec(compile(code, str(PAGE), "exec"), {})
  assert capsys.readouterr().out == shown


def test_every_config_is_listed_and_can_be_read():
  for path in CONFIGS.glob("*.toml"):
    assert f"`{path.stem}`" in TEXT
    for size in ("smoke", "small", "paper"):
      values = studies.read(path, size=size)
      studies.plan(studies.find(values["study"]), values)
