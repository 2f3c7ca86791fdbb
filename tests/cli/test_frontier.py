"""`jaxfair frontier`, on a made-up run and on mistakes."""

import pathlib

import numpy as np
import pytest

from helpers import frontier_runs
from jaxfair import experiments, frontier
from jaxfair.experiments import _frontiers


@pytest.fixture
def folder(tmp_path):
  return frontier_runs.write(tmp_path / "r")


@pytest.mark.slow
def test_it_writes_the_page_and_names_the_best_setting(jaxfair, folder):
  ended = jaxfair("frontier", folder, "--limit", "epsilon=2")
  assert ended.code == 0, ended.err
  assert ended.out.startswith("18 settings over 4 seeds; ")
  assert "12 satisfy the limits" in ended.out
  found = _frontiers.read_frontier(folder)
  left = frontier.specify(found.points, {"epsilon": 2.0})
  chosen = frontier.best(found.points, left.satisfied)
  assert found.command(chosen) in ended.out
  each = ended.out.partition("Best accuracy of each method")[2]
  for name in found.reach:
    own = left.satisfied & (np.array(found.methods) == name)
    best = found.points.means[frontier.best(found.points, own), 2]
    assert f"{best:.3f} [" in each.partition("Nobody beats")[0]
  page = (folder / "frontier.html").read_text(encoding="utf-8")
  assert "may be published" in page  # the study's own notes


def test_limits_that_nothing_keeps_are_no_mistake(jaxfair, folder):
  ended = jaxfair("frontier", folder, "--limit", "gap=0.001", "--out", "p.html")
  assert ended.code == 0
  assert "No setting satisfies these limits" in ended.out
  assert pathlib.Path("p.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    (["--limit", "gap"], "write it as gap=0.1"),
    (["--limit", "gap=small"], "write it as gap=0.1"),
    (["--limit", "gaps=0.1"], "did you mean gap?"),
    (["--limit", "accuracy=85"], "never above 1; write 85% as 0.85"),
    (["--limit", "epsilon=-1"], "never below 0; pass a number above 0"),
    (["--limit", "gap=nan"], "limit gap is NaN; pass a number"),
    (["--by", "acuracy"], "did you mean accuracy?"),
    (["--data", "adult"], "data='adult' is not known"),
    (["--out", "nowhere/p.html"], "an existing folder"),
    (["--confidence", "2"], "confidence=2.0 must be in"),
  ],
)
def test_mistakes_are_one_line(refused, folder, arguments, told):
  assert told in refused("frontier", folder, *arguments)


def test_another_kind_of_folder_is_refused(refused, tmp_path):
  assert "not a run directory" in refused("frontier", tmp_path)


@pytest.mark.slow
def test_two_sets_of_a_run_and_two_runs_are_compared(jaxfair, tmp_path):
  other = frontier_runs.table(data="other")
  both = experiments.Table.concat([frontier_runs.table(), other])
  folder = frontier_runs.write(tmp_path / "both", both)
  arguments = ("frontier", folder, "--data", "colored_digits", "--against")
  ended = jaxfair(*arguments, "other")
  assert ended.code == 0, ended.err
  assert "Shape against other" in ended.out
  assert "correlation 1.000" in ended.out
  assert "Of 18 settings in both" in ended.out
  assert "accuracy of 0.000" in ended.out
  single = frontier_runs.write(tmp_path / "single", other)
  assert "Of 18 settings" in jaxfair(*arguments, single).out
