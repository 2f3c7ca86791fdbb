"""Accuracy at epsilon: the library's private models beside the best published ones.

Each row of configs/accuracy/_rows.toml is a data set with a recipe, budgets, and what was
published. Five seeds train at every epsilon; beside them stand the same recipe without noise
and the majority class. Rows are kept as JSON in a folder, so that a run may be cut.

  python benchmarks/accuracy.py [--only mnist] [--seeds 5] [--folder runs/accuracy] [--docs]

Features are computed once and cached ($JAXFAIR_CACHE). `--docs` writes the table of
docs/accuracy.md from the rows in the folder.
"""

import argparse
import dataclasses
import functools
import json
import pathlib
import time
import tomllib
from typing import Any, Literal

import accuracy_table
import jax
import numpy as np
import pages

from jaxfair import _schema as schema
from jaxfair import accounting, data, fairness, methods, models, training
from jaxfair.accounting import _grid
from jaxfair.methods._answer_plans import answer_targets
from jaxfair.privacy import grid
from jaxfair.types import Examples, Model

calibrated = functools.cache(accounting.calibrate_dp_sgd)
ROOT = pathlib.Path(__file__).parent.parent
ROWS = ROOT / "configs" / "accuracy" / "_rows.toml"
PAGE = ROOT / "docs" / "accuracy.md"


@dataclasses.dataclass(frozen=True)
class Row:
  """One row: people, features, a recipe, budgets, and what was published.

  Attributes:
    title: of the row.
    data: a named set; `label` and `group` as in a config.
    features: a name for `models.extractor`; none leaves x as it is.
    pretrained: arguments of `models.pretrained` in its place.
    parts: sizes of the public, private and test part, drawn anew for each seed; none for the
      publisher's training and test parts.
    public: how many of the publisher's training people are public in their place.
    keep_class: keeps only a share of one class's people in the private part.
    scale: each feature by mean and variance of the public part, or not at all.
    limit: scaled features are cut at plus and minus this.
    norm: rows are scaled to this length; none leaves them.
    mean_noise: subtracts the private part's mean, released with this noise multiplier and paid
      for by the same budget; none leaves the features where they are.
    mean_bound: a public bound on a row's length for that mean; longer rows count shortened.
    method: a method of the registry; "dp_sgd" is trained by the recipe below.
    settings: of another method.
    epsilons: budgets, with a learning rate and a number of steps for each under DP-SGD.
    watch: a class whose own accuracy is the row's measure.
    published: at each epsilon, with `source`.
    differences: between the published setting and ours.
    chosen: where the settings were chosen; never on the test part.
  """

  title: str
  data: str
  epsilons: tuple[float, ...]
  published: tuple[float | str, ...]
  bars: tuple[float, ...]
  source: str
  differences: str
  chosen: str
  method: str = "dp_sgd"
  settings: dict[str, bool | int | float | str] = dataclasses.field(default_factory=dict)
  group: str | None = None
  learning_rates: tuple[float, ...] = ()
  steps: tuple[int, ...] = ()
  batch_size: int = 0
  l2_clip: float = 0.0
  delta: float = 1e-5
  label: str | None = None
  pretrained: dict[str, int | bool | str | tuple[int, ...]] = dataclasses.field(
    default_factory=dict
  )
  features: str | None = None
  parts: tuple[int, ...] = ()
  public: int = 0
  keep_class: tuple[float, ...] = ()
  scale: Literal["standard", "none"] = "none"
  limit: float = np.inf
  norm: float | None = None
  mean_noise: float | None = None
  mean_bound: float = 1.0
  network: str = "logistic"
  optimizer: Literal["sgd", "momentum", "adam"] = "momentum"
  schedule: Literal["constant", "linear", "cosine"] = "constant"
  watch: int | None = None


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--only", help="names of rows, separated by commas")
  parser.add_argument("--seeds", type=int, default=5)
  parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "runs" / "accuracy")
  parser.add_argument("--docs", action="store_true", help="write the table of docs/accuracy.md")
  chosen = parser.parse_args()
  table = tomllib.loads(ROWS.read_text())
  rows = {name: schema.build(Row, one, where=f"{name}.") for name, one in table.items()}
  chosen.folder.mkdir(parents=True, exist_ok=True)
  if chosen.docs:
    write_page(rows, chosen.folder)
    return
  for name in chosen.only.split(",") if chosen.only else rows:
    found = run(rows[name], chosen.folder / f"{name}.json", seeds=chosen.seeds)
    print("\n".join(accuracy_table.lines(rows[name], found)))


def run(row: Row, path: pathlib.Path, *, seeds: int) -> dict:
  """Adds what is missing in the file: accuracies in percent and CPU seconds."""
  found = json.loads(path.read_text()) if path.is_file() else {}
  people = load(row)
  model = models.network(row.network, people.num_classes)
  # Without noise, seeds of one split hardly differ. The private ones come first.
  plain = range(seeds if row.parts else 1)
  jobs = [(seed, row.epsilons) for seed in range(seeds)] + [(seed, ("plain",)) for seed in plain]
  for seed, wanted in jobs:
    todo = [epsilon for epsilon in wanted if f"{epsilon} {seed}" not in found]
    if not todo:
      continue
    public, private, test = split(row, people, seed)
    found["people"] = int(private.size)
    watched = test.y == row.watch if row.watch is not None else np.ones(test.size, bool)
    share = np.bincount(private.y, minlength=people.num_classes)
    found[f"majority {seed}"] = 100 * float((test.y[watched] == share.argmax()).mean())
    for epsilon in todo:
      start = time.process_time()
      if row.method == "dp_sgd":
        right = descended(row, model, private, test, epsilon, seed)
        told = [100 * float(right[watched].mean())]
      else:
        told = released(row, people, (public, private, test), epsilon, seed)
      found[f"{epsilon} {seed}"] = [told[0], time.process_time() - start, *told[1:]]
      path.write_text(json.dumps(found))
      print(f"{row.title}, epsilon {epsilon}, seed {seed}:", found[f"{epsilon} {seed}"], flush=True)
  return found


def descended(
  row: Row, model: Model, private: Examples, test: Examples, epsilon: float | str, seed: int
) -> np.ndarray:
  """[n] whether a model of DP-SGD is right about each test person."""
  config = recipe(row, epsilon, private.size, private.x.shape[1])
  origin = center(row, np.asarray(private.x), seed, noisy=epsilon != "plain")
  moved, asked = private._replace(x=private.x - origin), test.x - origin
  key = jax.random.fold_in(jax.random.key(2026), seed)
  fit = training.dp_sgd(model, models.cross_entropy, moved, config, key=key)
  right: np.ndarray = np.asarray(models.predict(model, fit.params, asked)) == test.y
  return right


def released(
  row: Row,
  people: data.Dataset,
  parts: tuple[Examples, Examples, Examples],
  epsilon: float | str,
  seed: int,
) -> list[float]:
  """Accuracy in percent of a method's model; with a margin also coverage and the gap.

  With a margin, test people ask one after the other, and accuracy is that of the answers. "plain"
  is the last budget's plan with hardly any noise.
  """
  public, private, test = parts
  own = methods.Population(private, people.class_names, people.group_names, public=public)
  method = methods.get(row.method)
  budget = accounting.Budget(row.epsilons[-1] if epsilon == "plain" else float(epsilon), row.delta)
  plan = method.plan(method.settings(**row.settings), own.sizes, budget)
  if epsilon == "plain":
    plan = dataclasses.replace(plan, config=quiet(plan.config))
  fit = method.fit(plan, own, key=jax.random.fold_in(jax.random.key(2026), seed))
  seen = plan.bounded(dataclasses.replace(own, private=test))
  answers = np.asarray(models.predict(plan.model, fit.params, seen.private.x))
  right = answers == test.y
  if plan.abstention is None:
    return [100 * float(right.mean())]
  order = np.random.default_rng(seed).permutation(test.size)
  gate = fairness.Abstainer(
    plan.abstention,
    num_groups=people.num_groups,
    num_classes=people.num_classes,
    targets=answer_targets(plan, fit.params, own),
  )
  told = gate.answer(answers[order], np.asarray(test.group)[order])
  shown = order[told >= 0]
  return [100 * float(right[shown].mean()), len(shown) / test.size, gate.gap]


def quiet(config: Any) -> Any:
  """Scores or votes with hardly any noise."""
  if hasattr(config, "noise"):
    return config._replace(noise=dataclasses.replace(config.noise, noise_multiplier=1e-6))
  return config._replace(rule=dataclasses.replace(config.rule, sigma=1e-3))


def load(row: Row) -> data.Dataset:
  """The people, with features in place of images."""
  people = data.load(row.data, label=row.label, group=row.group)
  if row.features is not None:
    return models.embed(people, models.extractor(row.features))
  if row.pretrained:
    return models.embed(people, models.pretrained(**row.pretrained))
  return people


def split(row: Row, people: data.Dataset, seed: int) -> tuple[Examples, Examples, Examples]:
  """The public, the private and the test part of one seed."""
  key = jax.random.key(seed)
  if row.parts:
    public, private, test = data.split_rows(people.size, row.parts, key=key)
  else:
    private, test = (np.flatnonzero(people.test_rows == part) for part in (False, True))
    order = np.random.default_rng(seed).permutation(private)
    public, private = order[: row.public], order[row.public :]
  if row.keep_class:
    label, share = row.keep_class
    kept = np.random.default_rng(seed).random(len(private)) < share
    private = private[kept | (people.examples.y[private] != label)]
  scaler = data.fit_scaler(people.examples.x[public]) if row.scale == "standard" else None

  def made(chosen: np.ndarray) -> Examples:
    part = people.examples.take(np.sort(chosen))
    x = np.asarray(part.x).reshape(part.size, np.prod(np.shape(part.x)[1:], dtype=int))
    if scaler is not None:
      x = np.clip(scaler.apply(x), -row.limit, row.limit)
    if row.norm is not None:
      x = row.norm * x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return part._replace(x=x.astype(np.float32, copy=False))

  return made(public), made(private), made(test)


def center(row: Row, x: np.ndarray, seed: int, *, noisy: bool) -> np.ndarray:
  """What is subtracted from every row: the private mean, or nothing.

  One person adds at most `mean_bound` to the sum, and n is public.
  """
  count = x.shape[1]
  if row.mean_noise is None:
    return np.zeros(count, np.float32)
  weights = np.minimum(1.0, row.mean_bound / np.maximum(np.linalg.norm(x, axis=1), 1e-12))
  total = np.einsum("i,ij->j", weights, x, dtype=np.float64)
  if noisy:
    sigma = grid.sigma_for(noise_multiplier=row.mean_noise, sensitivity=row.mean_bound, count=count)
    total = grid.gaussian(total, sigma=sigma, source=np.random.default_rng(seed).bytes)
  return (total / len(x)).astype(np.float32)


def recipe(row: Row, epsilon: float | str, size: int, features: int) -> training.DpSgdConfig:
  """The training's settings; "plain" is the last budget's recipe without noise."""
  at = row.epsilons.index(epsilon) if epsilon != "plain" else -1
  steps = row.steps[at]
  config = training.DpSgdConfig(
    learning_rate=row.learning_rates[at],
    l2_clip=row.l2_clip,
    noise_multiplier=0.0,
    steps=steps,
    batch_size=row.batch_size,
    optimizer=training.named_optimizer(row.optimizer, row.schedule, steps=steps),
  )
  if epsilon == "plain":
    return config
  sampler = config.sampler(size)
  noise = calibrated(
    epsilon=float(epsilon),
    delta=row.delta,
    sampling_rate=sampler.rate,
    steps=steps,
    dataset_size=size,
    max_batch=sampler.max_batch,
  )
  config = dataclasses.replace(config, noise_multiplier=noise)
  if row.mean_noise is None:
    return config
  mean = _grid.grid_gaussian(noise_multiplier=row.mean_noise, distance=grid.distance(features))
  noise = noise_beside(mean, config.event(size), float(epsilon), row.delta)
  return dataclasses.replace(config, noise_multiplier=noise)


@functools.cache
def noise_beside(
  other: accounting.Event, steps: accounting.DpSgd, epsilon: float, delta: float
) -> float:
  """The noise multiplier of `steps`, raised by 0.1% until the budget pays for `other` too."""
  while accounting.composed_guarantee([other, steps], delta=delta).epsilon > epsilon:
    steps = dataclasses.replace(steps, noise_multiplier=1.001 * steps.noise_multiplier)
  return steps.noise_multiplier


def write_page(rows: dict[str, Row], folder: pathlib.Path) -> None:
  """Writes the page's table; rows that the folder lacks stay as they are."""
  told = [*accuracy_table.HEAD]
  for name, row in rows.items():
    path = folder / f"{name}.json"
    if path.is_file():
      told += accuracy_table.lines(row, json.loads(path.read_text()))
    else:
      told += pages.lines_of(PAGE, "table", row.title)
  pages.write_table(PAGE, "table", told)


if __name__ == "__main__":
  main()
