"""DP-SGD on people who are larger than memory: time and memory as their number grows.

  python benchmarks/growth.py [--rows 10000000] [--columns 100] [--folder FOLDER] [--rounds 5]
    [--steps 100]

Writes a file of float32 features in chunks (4 GB by default), trains some steps on 10^5, 10^6, ...
rows of it as a `data.Source` and on the first 10^5 in memory, and deletes it. Every training draws
other rows. Figures:

- time of the steps by number of people, over that of the people in memory;
- the floor: a loop that reads as many rows of the file and does nothing else. No training that maps
  nothing is faster than the floor and the training in memory together, in CPU time;
- resident memory while the whole file is trained on: anonymous (the process's own) and mapped file
  pages, which are cache that the system can take back.
"""

import argparse
import itertools
import os
import pathlib
import tempfile
import threading
import time

import jax
import numpy as np
import timing

from jaxfair import data, models, training
from jaxfair.types import Examples

BATCH, CHUNK = 256, 100_000
SEEDS = itertools.count()
NETWORKS = {"logistic regression": models.logistic(2), "MLP 64-64": models.mlp((64, 64), 2)}


def write(folder: pathlib.Path, rows: int, columns: int) -> None:
  """x.npy and y.npy, a chunk at a time."""
  draw = np.random.default_rng(0)
  x = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, (rows, columns))
  y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int32, (rows,))
  for first in range(0, rows, CHUNK):
    part = slice(first, min(first + CHUNK, rows))
    x[part] = draw.standard_normal((part.stop - first, columns), np.float32)
    y[part] = x[part, 0] > 0
    x.flush()
  y.flush()


def train(model, people, steps: int) -> None:
  """Returns when the steps are done."""
  config = training.DpSgdConfig(steps=steps, batch_size=BATCH)
  key = jax.random.key(next(SEEDS))
  found = training.dp_sgd(model, models.cross_entropy, people, config, key=key)
  jax.block_until_ready(found.params)


def floor(x: np.memmap, n: int, steps: int) -> None:
  """Reads as many of the first n rows as the steps do, in order of the file."""
  size = x.strides[0]
  rows = np.sort(np.random.default_rng(next(SEEDS)).integers(0, n, BATCH * steps))
  file = os.open(x.filename, os.O_RDONLY)
  for place in (x.offset + size * rows).tolist():
    os.pread(file, size, place)
  os.close(file)


def resident() -> dict[str, float]:
  """MB of this process, by kind."""
  lines = pathlib.Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
  fields = dict(line.split(":", 1) for line in lines if ":" in line)
  return {name: int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon", "RssFile")}


def peak(job) -> dict[str, float]:
  """The largest resident memory while the job runs, looked at every 5 ms."""
  most, done = resident(), threading.Event()

  def watch() -> None:
    while not done.wait(0.005):
      for name, value in resident().items():
        most[name] = max(most[name], value)

  watcher = threading.Thread(target=watch)
  watcher.start()
  job()
  done.set()
  watcher.join()
  return most


def main() -> None:
  """Prints the figures."""
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--rows", type=int, default=10**7)
  parser.add_argument("--columns", type=int, default=100)
  parser.add_argument("--folder", type=pathlib.Path, default=None)
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--steps", type=int, default=100)
  chosen = parser.parse_args()
  steps = chosen.steps
  with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
    folder = pathlib.Path(name)
    write(folder, chosen.rows, chosen.columns)
    size = (folder / "x.npy").stat().st_size / 2**20
    x, y = (np.load(folder / f"{leaf}.npy", mmap_mode="r") for leaf in "xy")
    sizes = [n for n in (10**5, 10**6, 10**7) if n <= chosen.rows]
    sources = {n: data.open_source(x[:n], y[:n]) for n in sizes}
    before, whole = resident(), sources[sizes[-1]]
    for label, model in NETWORKS.items():
      most = peak(lambda model=model: train(model, whole, steps))
      print(
        f"{label}, {whole.size:,} people of {size:,.0f} MB: resident at most "
        + ", ".join(f"{kind} {value:,.0f} MB" for kind, value in most.items())
        + f" (before: {before['VmRSS']:,.0f} MB)"
      )
    few = jax.tree.map(jax.numpy.asarray, sources[sizes[0]].take(np.arange(sizes[0])))
    held, base = Examples(*few), f"in memory, {sizes[0]:,}"
    for label, model in NETWORKS.items():
      jobs = {base: lambda model=model: train(model, held, steps)}
      for n in sizes:
        jobs[f"source, {n:,}"] = lambda model=model, n=n: train(model, sources[n], steps)
        jobs[f"floor, {n:,}"] = lambda n=n: floor(x, n, steps)
      for clock in (time.process_time, time.perf_counter):
        found = timing.compare(jobs, rounds=chosen.rounds, clock=clock)
        kind = "CPU time" if clock is time.process_time else "elapsed time"
        timing.report(found, base, f"{label}: {kind} of {steps} steps of {BATCH}")
        both = found[base].median + found[f"floor, {sizes[-1]:,}"].median
        last = found[f"source, {sizes[-1]:,}"].median
        print(
          f"  speed of {sizes[-1]:,} over memory {found[base].median / last:.0%}, over memory and "
          f"floor together {both / last:.0%}; time over that of {sizes[0]:,}: "
          f"{last / found[f'source, {sizes[0]:,}'].median:.2f}"
        )


if __name__ == "__main__":
  main()
