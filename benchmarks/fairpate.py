"""FairPATE's query phase: a whole grid, one run beside PATE's, and loops.

    python benchmarks/fairpate.py [--settings 2000] [--seeds 10]

1. A grid of thresholds, noises, margins and budgets over 1,500 queries, as one
   program, against a Python loop over the queries of one setting, scaled up.
2. One query phase (100 teachers vote, votes are aggregated) with and without
   the fairness rule.
"""

import argparse
import time

import jax
import numpy as np
import timing

from jaxfair import models, pate
from jaxfair.pate import _aggregation, _fair_grid

QUERIES, TEACHERS, CLASSES, GROUPS, FEATURES = 1500, 100, 2, 5, 100


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--settings", type=int, default=2000)
  parser.add_argument("--seeds", type=int, default=10)
  parser.add_argument("--classes", type=int, default=CLASSES)
  parser.add_argument("--rounds", type=int, default=7)
  options = parser.parse_args()
  timing.use_all_cores()
  counts, groups = _votes(options.classes)
  _grid(counts, groups, options)
  _beside_pate(groups, options)


def _grid(counts, groups, options):
  rng = np.random.default_rng(1)
  settings = _fair_grid.FairQuerySettings(
    threshold=rng.uniform(40, 90, options.settings),
    sigma_threshold=rng.uniform(20, 60, options.settings),
    sigma_answer=rng.uniform(5, 30, options.settings),
    max_gap=rng.uniform(0.01, 0.2, options.settings),
    min_count=np.full(options.settings, 50.0),
    max_rho=rng.uniform(0.1, 4.0, options.settings),
  )
  keys = jax.random.split(jax.random.key(0), options.seeds)

  def grid():
    jax.block_until_ready(
      _fair_grid.fair_query_grid(counts, groups, settings, num_groups=GROUPS, keys=keys)
    )

  wall, start = time.perf_counter(), time.process_time()
  grid()
  cold = time.process_time() - start, time.perf_counter() - wall
  wall, start = time.perf_counter(), time.process_time()
  grid()
  warm = time.process_time() - start, time.perf_counter() - wall
  start = time.process_time()
  for seed in range(3):
    _loop(counts, groups, *(value[seed] for value in settings), seed)
  loop = (time.process_time() - start) / 3
  many = options.settings * options.seeds
  print(
    f"{options.settings} settings x {options.seeds} seeds x {QUERIES} queries, "
    f"{options.classes} classes, {GROUPS} groups\n"
    f"  with compilation {cold[0]:.1f} CPU s, {cold[1]:.1f} s on the clock\n"
    f"  without          {warm[0]:.1f} CPU s, {warm[1]:.1f} s on the clock\n"
    f"  loop over queries: {1e3 * loop:.1f} CPU ms for one setting and seed, "
    f"{many * loop:.0f} s for all: {many * loop / warm[0]:.0f}x"
  )


def _loop(counts, groups, threshold, sigma_test, sigma, gap, cold, rho, seed):
  """Algorithm 1 with the guard of the whole table, one query at a time."""
  rng = np.random.default_rng(seed)
  table = np.zeros((GROUPS, counts.shape[1]))
  labels, spent = [], 0.0
  for votes, group in zip(counts, groups, strict=True):
    if spent + 0.5 / sigma_test**2 + 1 / sigma**2 > rho:
      break
    spent += 0.5 / sigma_test**2
    if votes.max() + rng.normal(0, sigma_test) < threshold:
      labels.append(-1)
      continue
    spent += 1 / sigma**2
    winner = np.argmax(votes + rng.normal(0, sigma, votes.size))
    after = table.copy()
    after[group, winner] += 1
    if table[group].sum() >= cold:
      old, new = _disparity(table), _disparity(after)
      judged = (table.sum(1) >= cold)[:, None]
      worst = old[judged[:, 0]].max()
      if (judged & (new >= gap) & (new > worst)).any():
        labels.append(-1)
        continue
    table = after
    labels.append(winner)
  return labels, table


def _disparity(table):
  sizes = table.sum(1, keepdims=True)
  rest, many = table.sum(0) - table, sizes.sum() - sizes
  return table / np.maximum(sizes, 1) - rest / np.maximum(many, 1)


def _beside_pate(groups, options):
  rng = np.random.default_rng(2)
  model = models.mlp((64, 64), CLASSES)
  x = rng.normal(size=(QUERIES, FEATURES)).astype(np.float32)
  keys = jax.random.split(jax.random.key(3), TEACHERS)
  teachers = jax.vmap(lambda key: model.init(key, x[0]))(keys)
  noise = {"threshold": 50, "sigma_threshold": 40.0, "sigma_answer": 15.0}

  def votes():
    found = pate.predict_votes(model, teachers, x)
    return pate.vote_counts(found, CLASSES, num_teachers=TEACHERS)

  def plain():
    found = _aggregation.confident_gnmax(votes(), **noise, key=jax.random.key(0))
    jax.block_until_ready(found)

  def fair():
    found = pate.fair_gnmax(
      votes(), groups, num_groups=GROUPS, max_gap=0.05, min_count=50, **noise, key=jax.random.key(0)
    )
    jax.block_until_ready(found)

  found = timing.compare({"PATE": plain, "FairPATE": fair}, rounds=options.rounds, calls=5)
  timing.report(found, "PATE", f"query phase, {TEACHERS} teachers, {QUERIES} queries")


def _votes(num_classes):
  rng = np.random.default_rng(0)
  truth = rng.integers(0, num_classes, QUERIES)
  groups = rng.integers(0, GROUPS, QUERIES)
  right = rng.binomial(TEACHERS, rng.beta(6, 2, QUERIES))
  rest = np.full(num_classes, 1 / num_classes)
  counts = np.stack([rng.multinomial(TEACHERS - r, rest) for r in right])
  counts[np.arange(QUERIES), truth] += right
  return counts, groups


if __name__ == "__main__":
  main()
