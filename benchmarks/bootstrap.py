"""Bootstrap intervals of group metrics: jaxfair against fairlearn.

Both compute 95% intervals of accuracy, selection rate, true and false positive
rate, by group and overall, for the same 20,000 people from 200 bootstrap draws.
CPU time of the process, in one run; jaxfair's first call includes compilation.

  python benchmarks/bootstrap.py [--quick]
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import fairlearn.metrics as peer
import jax
import numpy as np
from sklearn.metrics import accuracy_score

from jaxfair import fairness
from jaxfair.fairness import _intervals

BAR_SECONDS = 1.0


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--rows", type=int, default=20_000)
  parser.add_argument("--draws", type=int, default=200)
  parser.add_argument(
    "--quick",
    action="store_true",
    help="fairlearn makes a tenth of the draws; its time is scaled up",
  )
  arguments = parser.parse_args()
  y_true, y_pred, group = people(arguments.rows)
  jax.block_until_ready(jax.numpy.zeros(1))  # start the backend first

  def ours(seed: int) -> _intervals.Interval:
    return fairness.bootstrap(
      fairness.by_group,
      y_true,
      y_pred,
      sensitive_features=group,
      num_draws=arguments.draws,
      key=jax.random.key(seed),
    )

  scale = 10 if arguments.quick else 1

  def theirs() -> Any:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      return peer.MetricFrame(
        metrics={
          "accuracy": accuracy_score,
          "selection_rate": peer.selection_rate,
          "true_positive_rate": peer.true_positive_rate,
          "false_positive_rate": peer.false_positive_rate,
        },
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=group,
        n_boot=max(arguments.draws // scale, 1),
        ci_quantiles=[0.025, 0.975],
        random_state=0,
      )

  first, interval = cpu_seconds(lambda: ours(0))
  again = float(np.median([cpu_seconds(lambda s=s: ours(s))[0] for s in (1, 2, 3)]))
  peer_seconds, frame = cpu_seconds(theirs)
  peer_seconds *= arguments.draws / max(arguments.draws // scale, 1)

  print(f"{arguments.rows} rows, {arguments.draws} draws, CPU seconds")
  print(f"  jaxfair, first call   {first:9.3f}")
  print(f"  jaxfair, next calls   {again:9.4f}")
  told = " (scaled up)" if arguments.quick else ""
  print(f"  fairlearn             {peer_seconds:9.3f}{told}")
  print(f"  fairlearn / jaxfair   {peer_seconds / first:9.1f} first call")
  print(f"                        {peer_seconds / again:9.0f} next calls")
  print("  95% intervals of the accuracy by group (jaxfair; fairlearn):")
  low, high = frame.by_group_ci
  for g in range(len(low)):
    print(
      f"    group {g}: [{interval.low.groups.accuracy[g]:.4f}, "
      f"{interval.high.groups.accuracy[g]:.4f}]; "
      f"[{low['accuracy'][g]:.4f}, {high['accuracy'][g]:.4f}]"
    )
  verdict = "met" if first <= BAR_SECONDS else "MISSED"
  print(f"  bar: at most {BAR_SECONDS:g} s with compilation: {verdict}")


def people(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Predictions that are right more often in some groups than in others."""
  rng = np.random.default_rng(0)
  group = rng.choice(4, size=rows, p=[0.6, 0.25, 0.1, 0.05])
  y_true = rng.integers(0, 2, rows)
  wrong = rng.random(rows) < 0.1 + 0.05 * group
  return y_true, np.where(wrong, 1 - y_true, y_true), group


def cpu_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
  start = time.process_time()
  result = function()
  return time.process_time() - start, result


if __name__ == "__main__":
  main()
