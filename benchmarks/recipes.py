"""Recipes of DP-SGD, each alone and all together, at one budget.

The base is plain DP-SGD: SGD with a constant rate, small batches, one clip bound. Each recipe
changes one thing; "together" changes all of them. Every recipe has its own best rate, chosen on a
draw of the people that is not reported; then five other draws are.

  python benchmarks/recipes.py [--only adult] [--seeds 5] [--folder runs/recipes] [--docs]

Results are kept as JSON in a folder, so that a run may be cut. `--docs` writes the table of
docs/accuracy.md.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import time
from typing import Any

import jax
import numpy as np
import pages

from jaxfair import data, models, privacy, training
from jaxfair.types import Examples, Model

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
HEAD = [
  "| set | recipe | accuracy | over the base, paired (± its standard error) "
  "| rate over the base's | seeds |",
  "|---|---|---|---|---|---|",
]
EPSILON, DELTA = 1.0, 1e-5
CHOICE = 100  # the draw that rates are chosen on
FACTORS = (0.25, 1.0, 4.0)  # of the learning rate


@dataclasses.dataclass(frozen=True)
class Set:
  """A data set with its base recipe.

  Attributes:
    title: in the table.
    parts: sizes of the public, private and test part.
    rate: learning rate, which every recipe has multiples of.
    steps: number of batches.
    batch_size: of the base.
    pool: images are averaged over squares of this side; 0 for tables.
  """

  title: str
  parts: tuple[int, int, int]
  rate: float
  steps: int
  batch_size: int
  pool: int = 0


SETS = {
  "adult": Set("Adult, MLP of 32", (1650, 33000, 10000), 4.0, 200, 256),
  "fashion_mnist": Set(
    "Fashion-MNIST of 14 x 14 pixels, small CNN", (1000, 20000, 10000), 4.0, 100, 128, 2
  ),
}
RECIPES: dict[str, dict[str, Any]] = {
  "base": {},
  "momentum": {"optimizer": "momentum"},
  "cosine schedule": {"schedule": "cosine"},
  "running mean (0.95)": {"average": 0.95},
  "normalize": {"rule": "normalize"},
  "quantile clip": {"adaptive": privacy.QuantileClip(count_noise=20.0, lowest=0.05)},
  "batches 8 times as large": {"batch": 8},
  "tempered sigmoid": {"activation": "tempered_sigmoid"},
  "4 views": {"augment": training.FlipAndShift(1), "views": 4},
  "standardized kernels": {"standardize": True},
}
OF_IMAGES = ("4 views", "standardized kernels")
# Normalizing and a moving bound exclude each other.
TOGETHER = [name for name in RECIPES if name not in ("base", "quantile clip")]


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--only", choices=tuple(SETS))
  parser.add_argument("--seeds", type=int, default=5)
  parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "runs" / "recipes")
  parser.add_argument("--docs", action="store_true", help="write the table of docs/accuracy.md")
  chosen = parser.parse_args()
  chosen.folder.mkdir(parents=True, exist_ok=True)
  names = [chosen.only] if chosen.only else [*SETS]
  if not chosen.docs:
    for name in names:
      run(name, chosen.folder / f"{name}.json", seeds=chosen.seeds)
  told = {name: lines(name, chosen.folder / f"{name}.json") for name in SETS}
  print("\n".join(line for own in told.values() for line in own))
  if chosen.docs:
    kept = {name: pages.lines_of(PAGE, "recipes table", SETS[name].title) for name in SETS}
    table = [line for name in SETS for line in told[name] or kept[name]]
    pages.write_table(PAGE, "recipes table", HEAD + table)


def recipes_of(own: Set) -> dict[str, dict[str, Any]]:
  """The recipes that a set can have, and all of them together."""
  able = {name: one for name, one in RECIPES.items() if own.pool or name not in OF_IMAGES}
  together = {k: v for name in TOGETHER if name in able for k, v in able[name].items()}
  return {**able, "together": together}


def run(name: str, path: pathlib.Path, *, seeds: int) -> None:
  """Adds what is missing in the file: accuracies in percent, and each recipe's rate."""
  found = json.loads(path.read_text()) if path.is_file() else {}
  own, people = SETS[name], data.load(name)
  for told, recipe in recipes_of(own).items():
    if f"{told} rate" not in found:
      tried = {f: accuracy(own, people, recipe, f, CHOICE) for f in FACTORS}
      found[f"{told} rate"] = max(tried, key=lambda factor: tried[factor])
    for seed in range(seeds):
      if f"{told} {seed}" not in found:
        start = time.process_time()
        found[f"{told} {seed}"] = accuracy(own, people, recipe, found[f"{told} rate"], seed)
        print(name, told, found[f"{told} rate"], seed, found[f"{told} {seed}"], flush=True)
        found[f"{told} seconds"] = time.process_time() - start
      path.write_text(json.dumps(found))


def accuracy(
  own: Set, people: data.Dataset, recipe: dict[str, Any], factor: float, seed: int
) -> float:
  """Of one training, in percent of the test part."""
  private, test = parts(own, people, seed)
  settings = {k: v for k, v in recipe.items() if k in ("average", "rule", "adaptive", "augment")}
  optimizer = training.named_optimizer(
    recipe.get("optimizer", "sgd"), recipe.get("schedule", "constant"), steps=own.steps
  )
  # Momentum of 0.9 makes a step ten times as long.
  rate = own.rate * factor * (0.1 if "optimizer" in recipe else 1.0)
  config = training.DpSgdConfig(
    learning_rate=rate,
    steps=own.steps,
    batch_size=own.batch_size * recipe.get("batch", 1),
    views=recipe.get("views", 1),
    optimizer=optimizer,
    **settings,
  )
  noise, cap = calibrated(own, config.batch_size, config.adaptive)
  config = dataclasses.replace(config, noise_multiplier=noise, max_batch=cap)
  model = network(
    bool(own.pool), people.num_classes, recipe.get("activation", "relu"), "standardize" in recipe
  )
  key = jax.random.fold_in(jax.random.key(2026), seed)
  params = training.dp_sgd(model, models.cross_entropy, private, config, key=key).params
  return 100 * float((np.asarray(models.predict(model, params, test.x)) == test.y).mean())


@functools.cache
def calibrated(own: Set, batch_size: int, adaptive: Any) -> tuple[float, int | None]:
  """The noise multiplier and the cap on batches that the budget pays for."""
  draft = training.DpSgdConfig(steps=own.steps, batch_size=batch_size, adaptive=adaptive)
  found = training.calibrate(draft, own.parts[1], epsilon=EPSILON, delta=DELTA)
  return float(found.noise_multiplier), found.max_batch


@functools.cache
def network(images: bool, num_classes: int, activation: Any, standardize: bool) -> Model:
  """The network of a set."""
  if images:
    return models.convnet(num_classes, activation=activation, standardize=standardize)
  return models.mlp([32], num_classes, activation=activation)


def parts(own: Set, people: data.Dataset, seed: int) -> tuple[Examples, Examples]:
  """The private and the test people of one draw, scaled by the public ones."""
  drawn = data.split_rows(people.size, own.parts, key=jax.random.key(seed))
  x = np.asarray(people.examples.x)
  scaler = None if own.pool else data.fit_scaler(x[drawn[0]])

  def made(rows: np.ndarray) -> Examples:
    part = people.examples.take(np.sort(rows))
    x = pooled(part.x, own.pool) if scaler is None else np.clip(scaler.apply(part.x), -5, 5)
    return part._replace(x=np.asarray(x, np.float32))

  return made(drawn[1]), made(drawn[2])


def pooled(x: np.ndarray, side: int) -> np.ndarray:
  """[n, h, w, c] images, averaged over squares."""
  size, height, width, channels = x.shape
  squares = x.reshape(size, height // side, side, width // side, side, channels)
  return np.asarray(squares.mean(axis=(2, 4)))


def lines(name: str, path: pathlib.Path) -> list[str]:
  """The set's lines of the table, one for each recipe."""
  found = json.loads(path.read_text()) if path.is_file() else {}

  def values(told: str) -> np.ndarray:
    own = [key for key in sorted(found) if key.rsplit(" ", 1)[0] == told]
    return np.array([found[key] for key in own if key[-1].isdigit()])

  told = []
  for recipe in recipes_of(SETS[name]):
    own, base = values(recipe), values("base")
    if len(own) < 2 or len(own) != len(base):
      continue
    gain = own - base
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if recipe != "base" else 0.0
    told.append(
      f"| {SETS[name].title} | {recipe} | {own.mean():.2f} ± {own.std(ddof=1):.2f} "
      f"| {gain.mean():+.2f} ± {error:.2f} | {found[f'{recipe} rate']:g} | {len(own)} |"
    )
  return told


if __name__ == "__main__":
  main()
