"""Run directories as a frontier study leaves them, without training."""

import itertools
import json

import numpy as np

from jaxfair.experiments import Table, _registry, _runs
from jaxfair.experiments import _config as configs

EPSILONS, SIGMAS, THRESHOLDS = (1.0, 2.0, 8.0), (20.0, 40.0), (0.0, 0.6, 0.9)


def table(seeds=4, data="colored_digits"):
  """Accuracy and gap grow with epsilon; noise lowers both."""
  rng = np.random.default_rng(0)
  rows = []
  grid = itertools.product(EPSILONS, SIGMAS, THRESHOLDS, range(seeds))
  for epsilon, sigma, threshold, seed in grid:
    moved = 0.01 * rng.normal(size=2)
    rows.append(
      {
        "data": data,
        "teachers": 10,
        "method": "confident-gnmax" if threshold else "gnmax",
        "epsilon": epsilon,
        "sigma": sigma,
        "threshold": threshold,
        "accuracy": 0.7 + 0.05 * np.log(epsilon) - 0.001 * sigma + moved[0],
        "gap": 0.05 + 0.02 * epsilon - 0.0005 * sigma + moved[1],
        "coverage": round(1 - 0.5 * threshold, 3),
        "seed": seed,
      }
    )
  return Table.from_rows(rows)


def write(folder, rows=None, title="What can <b>be</b> had & why", **changes):
  """A finished run of `pate.frontier` with these rows."""
  values = {
    "title": title,
    "sets": [{"name": "colored_digits"}],
    "teachers": [10],
    "epsilons": list(EPSILONS),
    "sigmas": list(SIGMAS),
    "thresholds": list(THRESHOLDS),
    "queries": 50,
    "splits": 4,
    "batch_size": 10,
    "hidden": [4],
    "teacher_steps": 2,
    "student_steps": 2,
  }
  made = _runs.plan(_registry.find("pate.frontier"), values | changes)
  folder.mkdir(parents=True)
  (folder / "config.toml").write_text(configs.dump(made.values))
  (folder / "results.csv").write_text((rows or table()).to_csv())
  (folder / "run.json").write_text(json.dumps({"notes": ["it is made up"]}))
  return folder
