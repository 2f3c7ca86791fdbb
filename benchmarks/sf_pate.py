"""How long SF-PATE, M and PF-LD train on Adult, at one epsilon.

    python benchmarks/sf_pate.py [--splits 3] [--set KEY=VALUE ...]

The paper's Table 1: CPU seconds of one training of configs/sf_pate/table_1.toml
(size small), teachers and votes included, compiled programs at hand, after one
split that warms up. PF-LD twice: clipped through activations, and with every
person's gradient built. Ratios are to SF_S-PATE; medians over splits.
"""

import argparse
import pathlib
import tempfile

import numpy as np

from jaxfair import experiments
from jaxfair.experiments import _config, _registry, _runs

CONFIG = pathlib.Path(__file__).parents[1] / "configs" / "sf_pate" / "table_1.toml"


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--splits", type=int, default=3)
  parser.add_argument("--set", nargs="*", default=[])
  options = parser.parse_args()
  sets = [f"splits={options.splits}", *options.set]
  values = _config.read(CONFIG, size="small", sets=sets)
  made = _runs.plan(_registry.find(values["study"]), values)
  with tempfile.TemporaryDirectory() as folder:
    table = experiments.execute(made, pathlib.Path(folder) / "run")
  for (name,), rows in table.split("data"):
    base = np.median(rows.where(method="SF_S-PATE")["seconds"])
    print(f"\n{name}: CPU seconds, times SF_S-PATE, accuracy, violation")
    for (method,), own in rows.split("method"):
      seconds = np.median(own["seconds"])
      accuracy, violation = own["accuracy"].mean(), own["violation"].mean()
      print(f"  {method:<30} {seconds:8.2f} {seconds / base:7.2f}x {accuracy:.3f} {violation:.3f}")


if __name__ == "__main__":
  main()
