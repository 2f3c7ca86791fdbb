"""Data-dependent cost of noisy labels: all queries at once against loops.

100,000 queries of 250 teachers on 10 classes, 50 orders. Two loops price one
query at a time: one transcribes the formulas and takes one order at a time,
the other has NumPy do the orders, as the published analysis of PATE does. Both
are held against 300 times. CPU time of the process, in interleaved rounds; the
loops run on a sample and their time is scaled up.

  python benchmarks/vote_accounting.py [--queries N] [--sample N]
"""

import argparse
import math
from typing import Any

import numpy as np
import timing
from scipy import stats

from jaxfair.accounting import _pate_gnmax, _rdp

TEACHERS, CLASSES, SIGMA = 250, 10, 40.0
BAR_RATIO, BAR_SECONDS = 300.0, 0.5
ORDERS = np.array(_rdp.DEFAULT_ORDERS[:150:3])


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--queries", type=int, default=100_000)
  parser.add_argument("--sample", type=int, default=300)
  parser.add_argument("--rounds", type=int, default=5)
  arguments = parser.parse_args()
  counts = votes(arguments.queries)
  sample = counts[: arguments.sample]

  def at_once() -> np.ndarray:
    return _pate_gnmax.gnmax_rdp(counts, sigma=SIGMA, orders=ORDERS)

  def loop() -> np.ndarray:
    return np.array([one_query(row, ORDERS) for row in sample])

  def loops() -> np.ndarray:
    found = []
    for row in sample:
      log_q = one_log_q(row)  # once a query, to be fair
      found.append([one_bound(log_q, order) for order in ORDERS])
    return np.array(found)

  together = at_once()[: len(sample)].not_for_release
  one_by_one = loop()
  apart = np.max(np.abs(together / one_by_one - 1))
  share = np.mean(one_by_one < ORDERS / SIGMA**2)

  found = timing.compare(
    {"all at once": at_once, "loop over queries": loop, "loop over queries and orders": loops},
    rounds=arguments.rounds,
  )
  scale = len(counts) / len(sample)
  for name in list(found)[1:]:
    found[name] = timing.Timing(*(scale * value for value in found[name]))
  timing.report(
    found,
    "all at once",
    f"{len(counts)} queries x {CLASSES} classes x {len(ORDERS)} orders "
    f"(loops scaled up from {len(sample)} queries)",
  )
  seconds = found["all at once"].median
  print(f"largest relative difference {apart:.1e}; {share:.0%} of the entries")
  alike = 1 - len(np.unique(np.sort(counts), axis=0)) / len(counts)
  print(f"are below what holds for any votes; {alike:.0%} of the queries")
  print("repeat the votes of another, up to their order")
  for name in list(found)[1:]:
    ratio = found[name].median / seconds
    told = "reached" if ratio >= BAR_RATIO else "not reached"
    print(f"{name}: {ratio:.0f}x slower; {BAR_RATIO:.0f}x {told}")
  told = "met" if seconds < BAR_SECONDS else "NOT met"
  print(f"{seconds:.3f} CPU s; bar of {BAR_SECONDS} s {told}")


def votes(queries: int) -> np.ndarray:
  """From unanimous to contested."""
  rng = np.random.default_rng(0)
  share = np.maximum(1 - 0.15 * rng.exponential(size=queries), 0.2)
  first = rng.binomial(TEACHERS, share)
  rest = rng.multinomial(TEACHERS - first, np.full(CLASSES - 1, 1 / (CLASSES - 1)))
  return np.concatenate([first[:, None], rest], axis=1)


def one_query(row: np.ndarray, orders: Any) -> Any:
  """Divergences of one label at one order or several."""
  return one_bound(one_log_q(row), orders)


def one_log_q(row: np.ndarray) -> float:
  winner = np.argmax(row)
  gaps = np.delete(row[winner] - row, winner)
  log_tails = stats.norm.logsf(gaps, scale=math.sqrt(2) * SIGMA)
  top = max(log_tails)  # SciPy's logsumexp would take as long as all the rest
  log_q = top + math.log(sum(np.exp(log_tails - top)))
  return min(log_q, math.log1p(-1 / len(row)))


def one_bound(log_q: float, orders: Any) -> Any:
  """Theorem 6 and Proposition 10 of Papernot et al. (2018)."""
  variance = SIGMA**2
  flat = orders / variance
  mu2 = math.sqrt(-log_q * variance)
  mu1 = mu2 + 1
  if mu2 <= 1:
    return flat
  eps1, eps2 = mu1 / variance, mu2 / variance
  limit = (mu2 - 1) * eps2 - mu2 * (math.log1p(1 / (mu1 - 1)) + math.log1p(1 / (mu2 - 1)))
  if log_q > limit or -log_q <= eps2:
    return flat
  log_likely = math.log1p(-math.exp(log_q))
  spread = math.log1p(-math.exp((log_q + eps2) * (1 - 1 / mu2)))
  log_a = (orders - 1) * (log_likely - spread)
  log_b = (orders - 1) * (eps1 - log_q / (mu1 - 1))
  total = np.logaddexp(log_likely + log_a, log_q + log_b)
  bound = np.minimum(flat, total / (orders - 1))
  return np.where(mu1 >= orders, bound, flat)


if __name__ == "__main__":
  main()
