"""Fair Adult: accuracy at a gap between the sexes at epsilon 1, beside DP-FERMI.

Each table of configs/accuracy/_fair.toml is a method of the registry with one setting for each
published point, or for those that its `gaps` name. Every seed draws a public part (which scales
the features), a private part and a test part of Adult. Rows are kept as JSON in a folder, so that a
run may be cut.

  python benchmarks/fair_accuracy.py [--seeds 5] [--folder runs/fair_accuracy] [--docs]

`--docs` writes the table of docs/accuracy.md from the rows in the folder.
"""

import argparse
import json
import pathlib
import time
import tomllib
from typing import Any

import jax
import numpy as np
import pages

from jaxfair import _schema, data, methods, models
from jaxfair.accounting import Budget

ROOT = pathlib.Path(__file__).parent.parent
ROWS = ROOT / "configs" / "accuracy" / "_fair.toml"
PAGE = ROOT / "docs" / "accuracy.md"
HEAD = [
  "| method | setting | accuracy | gap | DP-FERMI: accuracy at gap | seeds | CPU s |",
  "|---|---|---|---|---|---|---|",
]
BUDGET = Budget(1.0, 1e-5)
PRIVATE, TEST = 33000, 10000  # people; a table says how many are public
LIMIT = 5.0  # scaled features are cut at plus and minus this
PUBLISHED = {0.10: 83.4, 0.05: 82.4, 0.01: 81.3}  # gap: accuracy of DP-FERMI at epsilon 1
COMMON = {"optimizer": "momentum", "schedule": "cosine", "row_norm": 0.0}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--seeds", type=int, default=5)
  parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "runs" / "fair_accuracy")
  parser.add_argument("--docs", action="store_true", help="write the table of docs/accuracy.md")
  chosen = parser.parse_args()
  chosen.folder.mkdir(parents=True, exist_ok=True)
  rows = tomllib.loads(ROWS.read_text())
  if not chosen.docs:
    people = data.load("adult", group="sex")
    for name, row in rows.items():
      run(row, people, chosen.folder / f"{name}.json", seeds=range(chosen.seeds))
  told = [line for name, row in rows.items() for line in lines(row, chosen.folder / f"{name}.json")]
  print("\n".join(told))
  if chosen.docs:
    pages.write_table(PAGE, "fair table", HEAD + told)


def run(row: dict[str, Any], people: data.Dataset, path: pathlib.Path, *, seeds: range) -> None:
  """Adds what is missing in the file: accuracy in percent, gap and CPU seconds."""
  found = json.loads(path.read_text()) if path.is_file() else {}
  method = methods.get(row["method"])
  plans: dict[float, methods.Plan] = {}
  for seed in seeds:
    everybody, test = parts(people, seed, (row["public"], row.get("private", PRIVATE), TEST))
    for value in row["values"]:
      if f"{value} {seed}" in found:
        continue
      start = time.process_time()
      if value not in plans:  # all seeds have the same sizes
        own = {**COMMON, **row["settings"], row["knob"]: value}
        settings = _schema.build(method.settings, own, where="settings.")
        plans[value] = method.plan(settings, everybody.sizes, BUDGET)
      key = jax.random.fold_in(jax.random.key(2026), seed)
      params = method.fit(plans[value], everybody, key=key).params
      chosen = np.asarray(models.predict(plans[value].model, params, test.x))
      accuracy = 100 * float((chosen == test.y).mean())
      found[f"{value} {seed}"] = [accuracy, gap(chosen, test.group), time.process_time() - start]
      path.write_text(json.dumps(found))
      print(row["title"], value, seed, found[f"{value} {seed}"], flush=True)


def parts(
  people: data.Dataset, seed: int, sizes: tuple[int, int, int]
) -> tuple[methods.Population, Any]:
  """The public and private people of one seed, and its test people, scaled by the public ones."""
  drawn = data.split_rows(people.size, sizes, key=jax.random.key(seed))
  scaler = data.fit_scaler(people.examples.x[drawn[0]])

  def made(rows: np.ndarray) -> Any:
    part = people.examples.take(np.sort(rows))
    return part._replace(x=np.clip(scaler.apply(part.x), -LIMIT, LIMIT).astype(np.float32))

  known, private, test = map(made, drawn)
  names = (people.class_names, people.group_names)
  return methods.Population(private, *names, public=known), test


def gap(chosen: np.ndarray, group: np.ndarray) -> float:
  """The largest minus the smallest share of a group that is given class 1."""
  rates = [chosen[np.asarray(group) == one].mean() for one in np.unique(group)]
  return float(max(rates) - min(rates))


def lines(row: dict[str, Any], path: pathlib.Path) -> list[str]:
  """The method's lines of the table, one for each published point."""
  found = json.loads(path.read_text()) if path.is_file() else {}
  told = []
  for value, limit in zip(row["values"], row.get("gaps", PUBLISHED), strict=True):
    published = PUBLISHED[limit]
    own = np.array([v for name, v in found.items() if name.split(" ")[0] == str(value)])
    if len(own) < 2:
      continue
    (accuracy, away, seconds), (spread, swing, _) = own.mean(0), own.std(0, ddof=1)
    told.append(
      f"| {row['title']} | {row['knob']} {value:g} | **{accuracy:.2f}** ± {spread:.2f} "
      f"| {away:.3f} ± {swing:.3f} | {published} at {limit:.2f} | {len(own)} | {seconds:.1f} |"
    )
  return told


if __name__ == "__main__":
  main()
