"""Bias of 16,641 shares under noise: time, memory, and two bars.

1. Title I, every district, 10^4 Laplace draws: under 20 s and 2 GiB.
2. Linear proxy with a public total and output perturbation: at 10^6 plain
   draws on 200 districts, alpha cannot be told from 0.

  JAXFAIR_DATA=folder python benchmarks/decisions.py [--quick]
"""

import argparse
import resource
import time

import jax
import numpy as np

from jaxfair import data, decisions
from jaxfair.decisions import _curvature


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--quick", action="store_true", help="a tenth of it all")
  share = 10 if parser.parse_args().quick else 1
  x = data.load("title_one", group="state").examples.x.astype(np.float64)
  every_district(x[:, 0], x[:, 1], 10_000 // share)
  traces(x[:, 0], x[:, 1])
  fair(x[::83, 0][:200], x[::83, 1][:200], 1_000_000 // share)


def every_district(counts: np.ndarray, weights: np.ndarray, draws: int) -> None:
  release = decisions.LaplaceRelease.for_epsilon(0.1)
  problem = decisions.allotment(weights)
  wall, cpu = time.perf_counter(), time.process_time()
  found = decisions.simulate(problem, counts, release=release, draws=draws, key=jax.random.key(0))
  wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
  print(f"{len(counts)} districts, {draws} draws, compilation included")
  print(f"  {wall:.1f} s wall, {cpu:.1f} s CPU, peak {peak:.2f} GiB")
  met = wall < 20 and peak < 2
  print(f"  bar: under 20 s and 2 GiB: {'met' if met else 'MISSED'}")
  predicted = _curvature.second_order_bias(
    _curvature.allotment_trace(counts, weights=weights), variance=release.variance
  )
  score = (found.bias - predicted) / found.standard_error
  weight = found.standard_error**-2
  slope = np.sum(weight * predicted * found.bias) / np.sum(weight * predicted**2)
  print(f"  simulated over second-order bias: {slope:.4f}")
  print(f"  within 1.96 standard errors: {np.mean(np.abs(score) < 1.96):.4f}")
  plain = np.sqrt(found.variance / found.draws)
  gain = np.median(plain / found.standard_error)
  print(f"  error without the linear control: {gain:.0f} times as large")


def traces(counts: np.ndarray, weights: np.ndarray) -> None:
  start = time.perf_counter()
  found = _curvature.decision_trace(decisions.allotment(weights), counts)
  seconds = time.perf_counter() - start
  exact = _curvature.allotment_trace(counts, weights=weights)
  away = np.max(np.abs(found - exact)) / np.max(np.abs(exact))
  print(f"Hessian traces of all {len(counts)} shares, without the formula")
  print(f"  {seconds:.1f} s, relative error {away:.1g}")


def fair(counts: np.ndarray, weights: np.ndarray, draws: int) -> None:
  total, highest = float(weights @ counts), float(weights.max())
  problem = decisions.allotment(weights)
  mechanisms = {
    "linear proxy, public total": decisions.linear_proxy(weights=weights, total=total, epsilon=0.1),
    "output perturbation": decisions.output_perturbation(
      weights=weights, max_weight=highest, lower_total=0.9 * total, epsilon=0.1
    ),
  }
  print(f"{len(counts)} districts, {draws} draws without the linear control")
  for name, mechanism in mechanisms.items():
    start = time.perf_counter()
    found = decisions.simulate_mechanism(
      mechanism, problem, counts, draws=draws, key=jax.random.key(1), control=False
    )
    low, high = found.alpha_interval()
    print(
      f"  {name}: alpha in [{low:.2g}, {high:.2g}], "
      f"{time.perf_counter() - start:.1f} s; bar: 0 is inside: "
      f"{'met' if low == 0 else 'MISSED'}"
    )


if __name__ == "__main__":
  main()
