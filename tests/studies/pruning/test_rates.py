"""The study of rates: its columns, and what its claims look at."""

import jax
import numpy as np
import pytest

from helpers import pruning_runs
from jaxfair import data, experiments, tree
from jaxfair.experiments import _folders
from jaxfair.experiments._table import Table
from jaxfair.studies.pruning import common, rates


def made_up(cost):
  """Three groups, two seeds; `cost` of each group at the highest rate."""
  rows = []
  for seed in (0, 1):
    for i, (group, size) in enumerate((("a", 9.0), ("b", 5.0), ("c", 1.0))):
      for rate, paid in ((0.0, 0.0), (0.9, cost[i] + 0.001 * seed)):
        rows.append((seed, group, size, rate, paid, 0.9 - 0.1 * i, 1.0 + i))
  names = (
    "seed",
    "group",
    "size",
    "rate",
    "accuracy_cost",
    "accuracy_before",
    "gradient_norm_before",
  )
  columns = zip(*rows, strict=True)
  return Table(dict(zip(names, map(list, columns), strict=True)))


def test_claims_are_on_the_right_side():
  claims = {claim.name: claim.check for claim in rates.STUDY.claims}
  poor_pay, rich_pay = made_up((0.1, 0.2, 0.3)), made_up((0.3, 0.2, 0.1))
  for name in ("matthew", "smallest", "gradient and cost"):
    assert claims[name](poor_pay).verdict == "supported"
    assert claims[name](rich_pay).verdict != "supported"


@pytest.mark.slow
def test_a_stand_in_is_noted_and_named(tmp_path, monkeypatch):
  def fetch(name):
    raise data.DataError("no network")

  def zeros(function, own, sample):  # traced, not computed
    shapes = jax.eval_shape(function, tree.take(own, 0), sample.people)
    return jax.tree.map(lambda leaf: np.zeros((2, *leaf.shape)), shapes)

  monkeypatch.setattr(data, "fetch", fetch)
  monkeypatch.setattr(common, "for_each_seed", zeros)
  monkeypatch.setenv("JAXFAIR_DATA", str(tmp_path / "nothing"))
  sets = (*pruning_runs.DIGITS, "data.name=utkface", "data.stand_in=true", "tune.batch_size=50")
  table = experiments.execute(pruning_runs.plan("ethnicity", *sets), tmp_path / "run")
  assert table.unique("data") == ["colored_digits"]  # not utkface
  [note] = [n for n in _folders.read_record(tmp_path / "run").notes if "stand-in" in n]
  assert "utkface could not be loaded" in note


@pytest.mark.slow
def test_a_run_has_every_rate_and_the_bound_of_its_terms(tmp_path):
  table, claims = pruning_runs.run_untrained(
    tmp_path / "run", "ethnicity", "data.label=digit", "data.group=label", "curvature_steps=3"
  )
  groups = table.where(group=tuple("0123456789"))
  assert len(groups) == 2 * 3 * 10  # seeds, rates, groups
  assert table.unique("rate") == [0.0, 0.5, 0.9]
  start = groups.where(rate=0.0)
  assert np.all(start["excess_loss"] == 0)
  assert np.all(start["accuracy_cost"] == 0)
  last = groups.where(rate=0.9, seed=1.0, group="3")
  before = start.where(seed=1.0, group="3")
  assert last["gradient_norm_before"] == before["gradient_norm"]
  assert last["accuracy_before"] == before["accuracy"]
  # bound = |g| d + top d^2 / 2: the same d for all groups of a seed and rate.
  own = groups.where(rate=0.9, seed=1.0)
  g, top = own["gradient_norm_before"], own["top_eigenvalue_before"]
  d = (-g + np.sqrt(g**2 + 2 * top * own["bound"])) / top
  np.testing.assert_allclose(d, d[0], rtol=1e-3)
  paid = own["excess_loss"] > 0
  ratio = own["bound"][paid] / own["excess_loss"][paid]
  np.testing.assert_allclose(own["looseness"][paid], ratio)
  assert np.isnan(own["looseness"][~paid]).all()
  assert len(claims) == len(rates.STUDY.claims)
  [grows] = [claim.check for claim in rates.STUDY.claims if claim.name == "bound grows"]
  assert grows(table).verdict == "supported"
  assert pytest.approx(own["accuracy_before"] - own["accuracy"]) == (own["accuracy_cost"])
