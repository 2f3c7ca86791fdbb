"""The gallery: every example runs as it stands, quickly, and draws a picture."""

import ast
import re
import time
import warnings

import pytest

from helpers import pages

SCRIPTS = sorted((pages.ROOT / "docs" / "gallery").glob("*.py"))
MOST_SECONDS = 20.0  # of CPU time, on any machine; most take two


def run(script, monkeypatch, folder):
  """Runs an example in this process; returns the number of its figures and its CPU seconds."""
  matplotlib = pytest.importorskip("matplotlib")
  matplotlib.use("Agg")
  from matplotlib import pyplot

  monkeypatch.chdir(folder)
  monkeypatch.setenv("PYTHONPATH", str(pages.ROOT))  # of a process that an example starts
  start = time.process_time()
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), {"__name__": "example"})
  drawn = len(pyplot.get_fignums())
  pyplot.close("all")
  return drawn, time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(script, monkeypatch, tmp_path):
  drawn, seconds = run(script, monkeypatch, tmp_path)
  assert drawn >= 1
  assert seconds < MOST_SECONDS


def test_there_are_ten_and_the_index_lists_them():
  index = pages.read("docs/gallery/index.md")
  assert len(SCRIPTS) >= 10
  assert re.findall(r"^(\w+)$", index, re.MULTILINE) == [path.stem for path in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_model_is_compared_with_the_majority_class(script):
  text = script.read_text(encoding="utf-8")
  trains = re.search(r"\b(training|pate|methods)\.\w", text)
  assert not trains or re.search(r"majority|plurality", text)
  assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text)))
