"""One page over many runs: every verdict once, nothing loaded from outside."""

import json
import re

import pytest

from helpers.toy_study import stand_in_for_all
from jaxfair import experiments, report
from jaxfair.experiments import _reading, _runs
from jaxfair.experiments._folders import RunError
from jaxfair.report import _collection


@pytest.fixture
def runs(toy, tmp_path, monkeypatch):
  stand_in_for_all(monkeypatch, toy.study)
  for name in ("fig_2", "fig_10"):
    made = _runs.plan(toy.study, {"title": f"Toy & {name}"})
    experiments.execute(made, tmp_path / name, say=lambda message: None)
    report.write(_reading.read_run(tmp_path / name))
  return tmp_path


@pytest.mark.slow
def test_every_claim_of_every_run_is_on_the_page(runs):
  text = _collection.write_collection(runs).read_text("utf-8")
  assert text.count("A larger mean gives larger numbers<br><small>[Tab. 1]") == 2
  assert text.count("✓ supported") == text.count("✗ not supported") == 2
  assert "Toy &amp; fig_2" in text
  assert text.index('id="fig_2"') < text.index('id="fig_10"')


def test_figures_are_inside_and_links_stay_in_the_folder(runs):
  text = _collection.write_collection(runs).read_text("utf-8")
  loaded = re.findall(r"""(?:src|href)=["']([^"']+)""", text)
  outside = [link for link in loaded if not link.startswith(("#", "data:"))]
  assert outside == ["fig_2/report.html", "fig_10/report.html"]
  assert text.count("id='figure-values'") == 2


def test_verdicts_are_a_markdown_table(runs):
  claims = runs / "fig_2" / "claims.json"
  changed = json.loads(claims.read_text())
  changed[0]["statement"] = "|a| exceeds |b|"
  claims.write_text(json.dumps(changed))
  _collection.write_collection(runs)
  rows = (runs / "verdicts.md").read_text().splitlines()
  cells = [len(re.split(r"(?<!\\)\|", row)) for row in rows]
  assert cells == [6] * 8


def test_an_unfinished_run_says_so(runs):
  record = runs / "fig_2" / "run.json"
  told = json.loads(record.read_text()) | {"finished": False}
  record.write_text(json.dumps(told))
  text = _collection.write_collection(runs).read_text("utf-8")
  assert "1 unfinished" in text
  assert text.count("Unfinished: only the cells so far.") == 1


def test_a_folder_without_runs_is_refused(tmp_path):
  assert not _collection.is_collection(tmp_path)
  with pytest.raises(RunError, match="holds no run with verdicts"):
    _collection.write_collection(tmp_path)
