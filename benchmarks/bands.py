"""Whether noise that several steps share pays: DP-SGD with bands against plain DP-SGD.

First what the closed form predicts: the noise on the sum of all steps so far, in the mean square
over steps, over that of plain DP-SGD with the same batches, steps and budget. Then trainings: each
number of bands has its own best rate, chosen on a draw of the people that is not reported, and five
other draws are.

  python benchmarks/bands.py [--only adult] [--seeds 5] [--folder runs/bands] [--docs]

Results are kept as JSON in a folder, so that a run may be cut. `--docs` writes the tables of
docs/private_training.md and docs/accuracy.md.
"""

import argparse
import dataclasses
import functools
import json
import pathlib

import jax
import numpy as np
import pages

from jaxfair import accounting, data, models, training
from jaxfair.privacy._bands import band_weights, noise_of_sums
from jaxfair.types import Examples, Model

ROOT = pathlib.Path(__file__).parent.parent
DELTA = 1e-5
CHOICE = 100  # the draw that rates are chosen on
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0)  # of the learning rate
BANDS = (1, 4, 16, 64)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
# People, batch size and steps of the settings whose gain is predicted.
PREDICTED = ((16_000, 64, 4000), (30_000, 512, 1000), (16_000, 512, 1000), (60_000, 8192, 150))

HEAD = [
  "| set | batch, steps | epsilon | bands | accuracy "
  "| over one band, paired (± its standard error) "
  "| predicted noise |",
  "|---|---|---|---|---|---|---|",
]


@dataclasses.dataclass(frozen=True)
class Set:
  """A data set: sizes of the public, private and test part, rate, steps, batch size, network."""

  title: str
  people: str
  parts: tuple[int, int, int]
  rate: float
  steps: int
  batch_size: int
  hidden: tuple[int, ...] = ()
  scattering: bool = False
  bands: tuple[int, ...] = BANDS
  epsilons: tuple[float, ...] = (1.0, 8.0)


SETS = {
  "adult": Set(
    "Adult, MLP of 32", "adult", (1650, 33000, 10000), 0.1, 1000, 256, (32,), bands=(1, 4)
  ),
  "adult_large": Set(
    "Adult, MLP of 32", "adult", (1650, 33000, 10000), 1.0, 150, 8192, (32,), bands=(1, 4)
  ),
  "fashion_mnist": Set(
    "Fashion-MNIST, logistic regression on scattering",
    "fashion_mnist",
    (1000, 16000, 10000),
    1.0,
    1000,
    64,
    scattering=True,
  ),
  "fashion_mnist_large": Set(
    "Fashion-MNIST, logistic regression on scattering",
    "fashion_mnist",
    (1000, 16000, 10000),
    2.0,
    250,
    1024,
    scattering=True,
    bands=(1, 4, 15),
    epsilons=(1.0,),
  ),
}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--only", choices=tuple(SETS))
  parser.add_argument("--seeds", type=int, default=5)
  parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "runs" / "bands")
  parser.add_argument("--docs", action="store_true", help="write the tables of the docs")
  chosen = parser.parse_args()
  chosen.folder.mkdir(parents=True, exist_ok=True)
  if not chosen.docs:
    for name in [chosen.only] if chosen.only else [*SETS]:
      run(name, chosen.folder / f"{name}.json", seeds=chosen.seeds)
  measured = [line for name in SETS for line in lines(name, chosen.folder / f"{name}.json")]
  tables = {"accuracy": HEAD + measured, "private_training": predictions()}
  for page, told in tables.items():
    print("\n".join(told), end="\n\n")
    if chosen.docs:
      pages.write_table(ROOT / "docs" / f"{page}.md", "bands table", told)


def predictions() -> list[str]:
  """The table of predicted noise, each with the best number of bands."""
  told = [
    f"| people, batch, steps | {' | '.join(f'epsilon {epsilon:g}' for epsilon in EPSILONS)} |"
  ]
  told.append("|---" * (1 + len(EPSILONS)) + "|")
  for size, batch, steps in PREDICTED:
    able = [bands for bands in (2, 4, 8, 16, 32, 64) if bands * batch <= size]
    cells = []
    for epsilon in EPSILONS:
      noise = {bands: relative_noise(size, batch, steps, epsilon, bands) for bands in able}
      best = min(noise, key=lambda bands: noise[bands])
      cells.append(f"{noise[best]:.2f} ({best})")
    told.append(f"| {size:,}, {batch:,}, {steps:,} | {' | '.join(cells)} |")
  return told


def relative_noise(size: int, batch: int, steps: int, epsilon: float, bands: int) -> float:
  """Noise on the sums of steps over that of one band, in the mean square over steps."""
  each, one = (total_noise(size, batch, steps, epsilon, many) for many in (bands, 1))
  return each / one


@functools.cache
def total_noise(size: int, batch: int, steps: int, epsilon: float, bands: int) -> float:
  """Noise on the sums of steps over the clip bound."""
  noise = accounting.calibrate_dp_sgd(
    epsilon=epsilon, delta=DELTA, sampling_rate=batch / size, steps=steps, bands=bands
  )
  return noise * float(np.sqrt(np.mean(noise_of_sums(band_weights(bands, steps), steps) ** 2)))


def run(name: str, path: pathlib.Path, *, seeds: int) -> None:
  """Adds what is missing in the file: accuracies in percent, and the rate of each setting."""
  found = json.loads(path.read_text()) if path.is_file() else {}
  own = SETS[name]
  people = data.load(own.people)
  if own.scattering:
    people = models.embed(people, models.scattering())
  for epsilon in own.epsilons:
    for bands in own.bands:
      told = f"{epsilon:g} {bands}"
      if f"{told} rate" not in found:
        tried = {f: accuracy(own, people, epsilon, bands, f, CHOICE) for f in FACTORS}
        found[f"{told} rate"] = max(tried, key=lambda factor: tried[factor])
      for seed in range(seeds):
        if f"{told} {seed}" not in found:
          factor = found[f"{told} rate"]
          found[f"{told} {seed}"] = accuracy(own, people, epsilon, bands, factor, seed)
          print(name, told, factor, seed, found[f"{told} {seed}"], flush=True)
        path.write_text(json.dumps(found))


def accuracy(
  own: Set, people: data.Dataset, epsilon: float, bands: int, factor: float, seed: int
) -> float:
  """Of one training, in percent of the test part."""
  private, test = parts(own, people, seed)
  draft = training.DpSgdConfig(
    learning_rate=own.rate * factor,
    steps=own.steps,
    batch_size=own.batch_size,
    bands=bands,
    optimizer=training.named_optimizer("momentum", "constant", steps=own.steps),
  )
  config = training.calibrate(draft, private.size, epsilon=epsilon, delta=DELTA)
  model = network(own.hidden, people.num_classes)
  key = jax.random.fold_in(jax.random.key(2026), seed)
  params = training.dp_sgd(model, models.cross_entropy, private, config, key=key).params
  return 100 * float((np.asarray(models.predict(model, params, test.x)) == test.y).mean())


@functools.cache
def network(hidden: tuple[int, ...], num_classes: int) -> Model:
  """The network of a set."""
  return models.mlp([*hidden], num_classes) if hidden else models.logistic(num_classes)


def parts(own: Set, people: data.Dataset, seed: int) -> tuple[Examples, Examples]:
  """The private and the test people of one draw, scaled by the public ones."""
  drawn = data.split_rows(people.size, own.parts, key=jax.random.key(seed))
  x = people.examples.x
  scaler = None if own.scattering else data.fit_scaler(np.asarray(x[np.sort(drawn[0])]))

  def made(rows: np.ndarray) -> Examples:
    part = people.examples.take(np.sort(rows))
    if scaler is None:  # features of images, whose rows all have about the same length
      return part._replace(x=part.x / np.linalg.norm(part.x, axis=1, keepdims=True))
    return part._replace(x=np.asarray(np.clip(scaler.apply(part.x), -5, 5), np.float32))

  return made(drawn[1]), made(drawn[2])


def lines(name: str, path: pathlib.Path) -> list[str]:
  """The set's lines of the table, one for each budget and number of bands."""
  found, own = json.loads(path.read_text()) if path.is_file() else {}, SETS[name]

  def values(epsilon: float, bands: int) -> np.ndarray:
    known = (found.get(f"{epsilon:g} {bands} {seed}") for seed in range(100))
    return np.array([value for value in known if value is not None])

  told = []
  for epsilon in own.epsilons:
    base = values(epsilon, 1)
    for bands in own.bands:
      each = values(epsilon, bands)
      if len(each) < 2 or len(each) != len(base):
        continue
      gain = each - base
      error = gain.std(ddof=1) / np.sqrt(len(gain))
      over = "" if bands == 1 else f"{gain.mean():+.2f} ± {error:.2f}"
      noise = relative_noise(own.parts[1], own.batch_size, own.steps, epsilon, bands)
      told.append(
        f"| {own.title} | {own.batch_size:,}, {own.steps:,} | {epsilon:g} | {bands} "
        f"| {each.mean():.2f} ± {each.std(ddof=1):.2f} | {over} | {noise:.2f} |"
      )
  return told


if __name__ == "__main__":
  main()
