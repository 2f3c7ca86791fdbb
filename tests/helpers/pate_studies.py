"""Tiny settings for the PATE studies: people of a CSV file, linear models."""

import numpy as np

from jaxfair import experiments
from jaxfair.experiments import _registry, _runs

SETTINGS = {
  "model": "logistic",
  "teachers": [6],
  "queries": 40,
  "test_people": 100,
  "teacher_steps": 20,
  "student_steps": 20,
  "batch_size": 20,
  "learning_rate": 0.05,
  "splits": 2,
  "draws": 4,
}


def write_people(path, size=480):
  """Two classes, two groups; the smaller group is harder to tell apart."""
  rng = np.random.default_rng(0)
  y = rng.integers(0, 2, size)
  group = (rng.random(size) < 0.3).astype(int)
  apart = np.where(group == 1, 0.3, 1.0)
  x = (2 * y - 1)[:, None] * apart[:, None] + rng.normal(size=(size, 3))
  lines = [f"{a:.4f},{b:.4f},{c:.4f}" for a, b, c in x]
  rows = [
    f"{features},{label},{'ab'[g]}" for features, label, g in zip(lines, y, group, strict=True)
  ]
  path.write_text("\n".join(["u,v,w,label,group", *rows]) + "\n")


def plan(name, folder, **changes):
  """A study on those people."""
  path = folder / "people.csv"
  if not path.exists():
    write_people(path)
  people = {"csv": str(path), "label": "label", "group": "group"}
  values = SETTINGS | {"sets": [people]} | changes
  return _runs.plan(_registry.find(name), values)


def run(name, folder, **changes):
  """Its table."""
  return experiments.execute(plan(name, folder, **changes), folder / name, say=lambda text: None)
