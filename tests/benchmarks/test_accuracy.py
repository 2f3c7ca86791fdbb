"""The table of accuracies: its rows are valid, its parts disjoint, its noise pays for epsilon."""

import dataclasses
import importlib
import json
import pathlib
import sys
import tomllib

import numpy as np
import pytest

from jaxfair import _schema, accounting, data
from jaxfair.accounting import _composition

ROOT = pathlib.Path(__file__).parent.parent.parent


sys.path.append(str(ROOT / "benchmarks"))  # where it finds the modules beside it
bench = importlib.import_module("accuracy")
ROWS = {
  name: _schema.build(bench.Row, row) for name, row in tomllib.loads(bench.ROWS.read_text()).items()
}


def small(**changes):
  row = dataclasses.replace(
    ROWS["adult"],
    data="digits",
    parts=(300, 1000, 400),
    epsilons=(8.0,),
    learning_rates=(1.0,),
    steps=(20,),
    batch_size=500,
    published=(99.0,),
    bars=(50.0,),
  )
  return dataclasses.replace(row, **changes)


@pytest.mark.parametrize("name", ROWS)
def test_rows_say_where_numbers_come_from(name):
  row = ROWS[name]
  each = [row.published, row.bars]
  if row.method == "dp_sgd":  # others have a plan of their own
    each += [row.learning_rates, row.steps]
  assert {len(values) for values in each} == {len(row.epsilons)}
  assert row.source
  assert row.differences
  assert "test" not in row.chosen


def test_nobody_is_in_two_parts_and_a_class_can_be_made_rare():
  people = data.load("digits")
  marked = people.examples.x.copy()
  marked[:, 0, 0, 0] = np.arange(people.size) / 1024  # exact in float32
  people = dataclasses.replace(people, examples=people.examples._replace(x=marked))
  _, private, test = bench.split(small(scale="none", limit=np.inf), people, 0)
  assert not set(private.x[:, 0]) & set(test.x[:, 0])
  _, rare, _ = bench.split(small(scale="none", limit=np.inf, keep_class=(8.0, 0.1)), people, 0)
  assert 0 < (rare.y == 8).sum() < 0.3 * (private.y == 8).sum()
  assert (rare.y != 8).sum() == (private.y != 8).sum()
  _, again, _ = bench.split(small(scale="none", limit=np.inf), people, 1)
  assert set(again.x[:, 0]) != set(private.x[:, 0])


@pytest.mark.slow
def test_the_noise_pays_for_epsilon_and_plain_has_none():
  row = small()
  config = bench.recipe(row, 8.0, 1000, 64)
  spent = _composition.composed_epsilon([config.event(1000)], delta=row.delta)
  assert 7.9 < spent <= 8.0
  assert bench.recipe(row, "plain", 1000, 64).noise_multiplier == 0


@pytest.mark.slow
def test_the_same_budget_pays_for_the_mean():
  row = small(mean_noise=10.0, mean_bound=2.0)
  events = [accounting.Gaussian(10.0), bench.recipe(row, 8.0, 1000, 64).event(1000)]
  assert 7.9 < _composition.composed_epsilon(events, delta=row.delta) <= 8.0
  assert _composition.composed_epsilon(events[1:], delta=row.delta) < 7.99


def test_the_mean_is_bounded_and_noisy():
  row = small(mean_noise=3.0, mean_bound=2.0)
  x = np.tile(np.float32([[0.6, 0.8], [30.0, 40.0]]), (50, 200))
  x /= np.sqrt(200)
  exact = bench.center(row, x, 0, noisy=False)
  # Half of the rows have length 1, the others 50, cut to 2.
  np.testing.assert_allclose(exact * np.sqrt(200), np.tile([0.9, 1.2], 200), rtol=1e-5)
  noise = bench.center(row, x, 0, noisy=True) - exact
  assert noise.std() == pytest.approx(3 * 2 / 100, rel=0.15)
  assert not bench.center(small(), x, 0, noisy=True).any()


@pytest.mark.slow
def test_a_row_is_measured_kept_and_written(tmp_path, monkeypatch):
  row, path = small(), tmp_path / "small.json"
  found = bench.run(row, path, seeds=2)
  assert json.loads(path.read_text()) == found
  accuracy = np.mean([found[f"8.0 {seed}"][0] for seed in range(2)])
  assert accuracy > 40  # ten classes: the majority has 10
  assert found["plain 0"][0] > 80
  monkeypatch.setattr(bench.training, "dp_sgd", None)  # nothing is computed twice
  assert bench.run(row, path, seeds=2) == found
  page = tmp_path / "page.md"
  kept = "| Not run here | 1, 1e-05 | **50.00** |"
  page.write_text(f"before\n<!-- table -->\nold\n{kept}\n<!-- end of table -->\nafter\n")
  monkeypatch.setattr(bench, "PAGE", page)
  other = dataclasses.replace(row, title="Not run here")
  bench.write_page({"small": row, "other": other}, tmp_path)
  text = page.read_text()
  assert f"{kept}\n" in text
  assert f"**{accuracy:.2f}**" in text
  assert "old" not in text
  assert text.endswith("after\n")
