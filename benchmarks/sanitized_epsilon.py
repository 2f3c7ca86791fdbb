"""What a sanitized epsilon gains over one that holds for any votes.

Made-up votes: the share of teachers that agree falls off exponentially from
one, around a mean; the others vote at random. Prints the table of
docs/pate_accounting.md.

  python benchmarks/sanitized_epsilon.py
"""

import jax
import numpy as np

from jaxfair import accounting
from jaxfair.accounting import _composition

DELTA = 1e-6
KEYS = 5
# queries, teachers, classes, sigma, mean share that agrees
SETTINGS = (
  (1000, 250, 10, 40.0, 0.9),
  (1000, 250, 2, 40.0, 0.9),
  (200, 150, 2, 50.0, 0.9),
  (5000, 5000, 10, 100.0, 0.9),
  (5000, 250, 10, 20.0, 0.95),
)


def main() -> None:
  for queries, teachers, classes, sigma, consensus in SETTINGS:
    counts = votes(queries, teachers, classes, consensus)
    events = accounting.pate_events(sigma=sigma, num_queries=queries)
    flat = _composition.composed_epsilon(events, delta=DELTA)
    own = accounting.pate_diagnosis(counts, sigma=sigma, delta=DELTA)
    plan = accounting.plan_sanitizing(
      num_queries=queries,
      num_teachers=teachers,
      num_classes=classes,
      sigma=sigma,
      delta=DELTA,
      consensus=consensus,
    )
    told = "no plan pays | |"
    if plan is not None:
      shown = [
        accounting.sanitized_epsilon(
          counts, sigma=sigma, delta=DELTA, plan=plan, key=jax.random.key(seed)
        )
        for seed in range(KEYS)
      ]
      figures = [one.epsilon for one in shown]
      together = shown[0].guarantee.epsilon
      told = f"{min(figures):.2f} to {max(figures):.2f} | {together:.2f} |"
    print(
      f"| {queries} | {teachers} | {classes} | {sigma:g} | {flat:.2f} | "
      f"{own.not_for_release:.3f} | {told}"
    )


def votes(queries: int, teachers: int, classes: int, consensus: float) -> np.ndarray:
  rng = np.random.default_rng(0)
  spread = rng.exponential(size=queries)
  share = np.maximum(1 - (1 - consensus) * spread, 0.3)
  first = rng.binomial(teachers, share)
  others = np.full(classes - 1, 1 / (classes - 1))
  rest = rng.multinomial(teachers - first, others)
  return np.concatenate([first[:, None], rest], axis=1)


if __name__ == "__main__":
  main()
