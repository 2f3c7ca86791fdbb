"""docs/studies.md: its study runs, is short, and its commands exist."""

import re
import tomllib

import pytest

from helpers import pages
from jaxfair import experiments
from jaxfair.cli import _app
from jaxfair.experiments import People, _registry, _runs
from jaxfair.experiments import _config as configs

GUIDE = "docs/studies.md"
TEXT = pages.read(GUIDE)
[STUDY] = pages.code_blocks(TEXT)
CONFIG, _ = pages.code_blocks(TEXT, "toml")  # the other shows quotes of a paper


@pytest.mark.slow
def test_the_study_runs_and_is_reported(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  code = compile(STUDY, GUIDE, "exec")
  made = {"__name__": "__main__"}
  exec(code, made)
  assert capsys.readouterr().out.strip().endswith("report.html")
  table = experiments.Table.read(tmp_path / "runs" / "decay" / "results.csv")
  assert table.unique("weight_decay") == [0.0, 0.01, 0.1]
  assert len(table) == 3 * 3 * (len(table.unique("group")))
  page = (tmp_path / "runs" / "decay" / "report.html").read_text()
  assert "Strong weight decay costs accuracy" in page
  assert "not run" not in page
  assert "Groups with a high loss are seldom right</h2><img" in page


def test_the_study_takes_less_than_80_lines():
  assert len(STUDY.splitlines()) < 80


def test_the_config_is_one_that_people_take():
  values = tomllib.loads(CONFIG)
  assert _registry.find(values["study"])
  configs.build(People, values["data"])


@pytest.mark.parametrize("command", re.findall(r"^jaxfair (\w+)", TEXT, re.MULTILINE))
def test_the_commands_exist(command):
  known = {c.name or c.callback.__name__ for c in _app.app.registered_commands}
  assert command in known


def test_every_file_of_a_run_is_described(toy, tmp_path):
  made = _runs.plan(toy.study, {"seed": "os"})
  experiments.execute(made, tmp_path, say=lambda message: None)
  for path in tmp_path.iterdir():
    assert f"`{path.name}" in TEXT or path.name == ".lock"
