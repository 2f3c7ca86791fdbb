"""Time of rival ways to do one job, measured side by side.

Variants run in turn, round after round, so that whatever else the machine does
hits all of them alike; medians over rounds are compared, as ratios.
"""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np


class Timing(NamedTuple):
  """Seconds of one call: median and quartiles over rounds."""

  median: float
  low: float
  high: float


def use_all_cores() -> None:
  """One JAX device per core, as `jaxfair` has it; before the first array."""
  import jax

  jax.config.update("jax_num_cpu_devices", os.cpu_count())


def compare(
  jobs: Mapping[str, Callable[[], object]],
  *,
  rounds: int = 11,
  calls: int = 1,
  clock: Callable[[], float] = time.process_time,
) -> dict[str, Timing]:
  """Times every job in interleaved rounds, after one call to warm up.

  Args:
    jobs: name -> a function that does the work and waits for its end.
    rounds: how many.
    calls: how often a job is called per round.
    clock: CPU time by default; `time.perf_counter` for throughput.
  """
  for job in jobs.values():
    job()
  seconds: dict[str, list[float]] = {name: [] for name in jobs}
  for _ in range(rounds):
    for name, job in jobs.items():
      start = clock()
      for _ in range(calls):
        job()
      seconds[name].append((clock() - start) / calls)
  return {name: _summary(values) for name, values in seconds.items()}


def report(found: Mapping[str, Timing], base: str, title: str) -> None:
  """Prints milliseconds and ratios to `base`."""
  print(f"\n{title}")
  width = max(map(len, found))
  for name, timing in found.items():
    ratio = timing.median / found[base].median
    low, high = (1e3 * end for end in (timing.low, timing.high))
    print(
      f"  {name:<{width}}  {1e3 * timing.median:9.3f} ms [{low:.3f}, {high:.3f}]  {ratio:7.2f}x"
    )


def matmul_peak(size: int = 1024, rounds: int = 7) -> float:
  """FLOP per CPU second of a large float32 matrix product, the floor."""
  import jax
  import jax.numpy as jnp

  matrix = jnp.ones((size, size))
  product = jax.jit(lambda a: a @ a)
  times = compare({"product": lambda: product(matrix).block_until_ready()}, rounds=rounds, calls=3)
  return 2 * size**3 / times["product"].median


def _summary(values: list[float]) -> Timing:
  low, high = np.quantile(values, [0.25, 0.75])
  return Timing(statistics.median(values), float(low), float(high))
