"""Runs read as frontiers, and the lines that train a setting again."""

import itertools
import shlex

import numpy as np
import pytest

from helpers import frontier_runs
from jaxfair.checks import ArgumentError
from jaxfair.experiments import Table, _config, _frontiers, _registry, _runs
from jaxfair.experiments._folders import RunError


@pytest.fixture(scope="module")
def found(tmp_path_factory):
  folder = tmp_path_factory.mktemp("runs") / "r"
  return _frontiers.read_frontier(frontier_runs.write(folder))


@pytest.mark.slow
def test_settings_seeds_and_objectives_are_in_their_places(found):
  rows = frontier_runs.table()
  assert found.points.values.shape == (18, 4, 4)
  assert found.keys == ("sigma", "threshold")
  for i in (0, 7, 17):
    own = found.settings[i]
    at = rows.where(**own)
    assert len(at) == 4
    for j, name in enumerate(found.points.names):
      np.testing.assert_array_equal(found.points.values[i, :, j], at[name])
    assert found.methods[i] == at["method"][0]
  assert found.notes == ("it is made up",)
  assert found.attained.probability.shape == (18,)


def test_the_line_of_a_setting_trains_that_setting_alone(found):
  for i in (0, 11):
    folder = str(found.config.parent)
    released = ["jaxfair", "release", folder, "--point", str(i), "--out", "runs/chosen"]
    assert shlex.split(found.command(i)) == released
    words = shlex.split(found._replace(releases="").command(i))
    assert words[:2] == ["jaxfair", "run"]
    sets = [b for a, b in itertools.pairwise(words) if a == "--set"]
    values = _config.read(words[2], sets=sets)
    study = _registry.find("pate.frontier")
    plan = _runs.plan(study, values).settings
    own = found.settings[i]
    assert plan.epsilons == (own["epsilon"],)
    assert plan.sigmas == (own["sigma"],)
    assert plan.thresholds == (own["threshold"],)
    assert plan.teachers == (10,)


def test_a_setting_without_a_value_is_left_out_and_counted(tmp_path):
  rows = frontier_runs.table()
  accuracy = rows["accuracy"].copy()
  accuracy[5] = np.nan  # the second setting, second seed
  found = _frontiers.read_frontier(
    frontier_runs.write(tmp_path / "r", rows.plus(accuracy=accuracy))
  )
  assert found.points.dropped == 1
  assert len(found.settings) == 17
  assert found.settings[1]["threshold"] == 0.9


def test_rows_of_groups_and_of_other_analyses_are_passed_over(tmp_path):
  rows = frontier_runs.table()
  everyone = rows.plus(group=["everyone"] * len(rows))
  women = rows.plus(group=["women"] * len(rows), accuracy=rows["accuracy"] - 0.1)
  other = Table({"data": ["colored_digits"], "group": ["everyone"]})
  found = _frontiers.read_frontier(
    frontier_runs.write(tmp_path / "r", Table.concat([everyone, women, other]))
  )
  plain = _frontiers.read_frontier(frontier_runs.write(tmp_path / "s"))
  np.testing.assert_array_equal(found.points.values, plain.points.values)


def test_one_of_several_sets_is_chosen(tmp_path):
  both = Table.concat([frontier_runs.table(), frontier_runs.table(data="other")])
  folder = frontier_runs.write(tmp_path / "r", both)
  with pytest.raises(ArgumentError, match=r"colored_digits, other.*--data"):
    _frontiers.read_frontier(folder)
  with pytest.raises(ArgumentError, match="did you mean other"):
    _frontiers.read_frontier(folder, data="others")
  assert len(_frontiers.read_frontier(folder, data="other").settings) == 18


def test_what_is_no_frontier_is_told_why(tmp_path):
  with pytest.raises(RunError, match="not a run directory"):
    _frontiers.read_frontier(tmp_path)
  rows = frontier_runs.table()
  kept = {n: rows[n] for n in rows.names if n != "gap"}
  with pytest.raises(RunError, match=r"no column gap.*pate/frontier.toml"):
    _frontiers.read_frontier(frontier_runs.write(tmp_path / "a", Table(kept)))
  kept = {n: rows[n] for n in rows.names if n != "sigma"}
  with pytest.raises(RunError, match="several rows of one setting"):
    _frontiers.read_frontier(frontier_runs.write(tmp_path / "b", Table(kept)))
  folder = frontier_runs.write(tmp_path / "c")
  (folder / "results.csv").unlink()
  with pytest.raises(RunError, match="not finished"):
    _frontiers.read_frontier(folder)
