"""Remedies for a rare class: parts, the choice of rates, one small run."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxfair import data
from jaxfair import experiments as ex
from jaxfair.experiments import _study
from jaxfair.studies import remedies

STEPS = {"steps": 10, "batch_size": 200, "row_norm": 1.0, "optimizer": "momentum"}
CONFIG = remedies.Config(
  data=ex.People("digits"),
  rates=(1.0, 4.0),
  settings=dict.fromkeys(("dp_sgd", "dp_sgd_f", "dp_sgd_global"), STEPS),
  rare_share=0.3,
  epsilon=50.0,
  delta=1e-4,
  seeds=2,
)


def test_parts_are_disjoint_and_one_class_is_rare():
  people = data.load("digits")
  marked = np.asarray(people.examples.x).copy()
  marked[:, 0, 0, 0] = np.arange(people.size) / 2048  # exact in float32
  people = dataclasses.replace(people, examples=people.examples._replace(x=marked))
  parts = remedies._parts(CONFIG, people, 0)
  names = [set(part.x[:, 0]) for part in parts]
  assert not names[0] & names[1] | names[0] & names[2] | names[1] & names[2]
  sizes = [np.bincount(part.y, minlength=10) for part in parts]
  assert sizes[0][8] > 3 * sizes[1][8] > 0  # held out as often as the others
  trained, eights = sizes[0] + sizes[1], (people.examples.y == 8).sum()
  assert trained[8] == round(0.3 * (eights - sizes[2][8]))
  assert (sizes[0] + sizes[1] + sizes[2])[:8].sum() == (people.examples.y < 8).sum()
  again = remedies._parts(CONFIG, people, 1)
  assert [len(part.y) for part in again[2:]] == [len(parts[2].y)]
  assert set(again[2].x[:, 0]) != names[2]


def test_the_best_rate_is_that_of_the_held_out_people():
  def row(method, rate, seed, held, rare):
    told = {"method": method, "rate": rate, "seed": seed}
    return told | {"held_out_accuracy": held, "rare_accuracy": rare, "balanced_accuracy": 0.5}

  table = ex.Table.from_rows(
    row(method, rate, seed, held, rare)
    for method, best in (("dp_sgd", 1.0), ("dp_sgd_f", 4.0), ("dp_sgd_global", 4.0))
    for seed in range(3)
    for rate in (1.0, 4.0)
    for held, rare in [(0.9, 0.7 + 0.01 * seed) if rate == best else (0.8, 0.99)]
  )
  found = remedies.STUDY.derive(table)
  chosen = {(r["method"], r["rate"]) for r in found.rows() if r["best_rate"] == "yes"}
  assert chosen == {("dp_sgd", 1.0), ("dp_sgd_f", 4.0), ("dp_sgd_global", 4.0)}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dp_sgd_f"])
def test_a_cell_has_a_row_for_each_rate_and_seed(method):
  key = jax.random.key(0)
  context = _study.Context(key, key, False, None, lambda told: None)
  table = remedies.run(CONFIG, {"method": method}, context)
  assert sorted(zip(table["rate"], table["seed"], strict=True)) == [
    (1.0, 0.0),
    (1.0, 1.0),
    (4.0, 0.0),
    (4.0, 1.0),
  ]
  assert table["balanced_accuracy"].max() > 0.5
