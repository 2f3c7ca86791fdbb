"""What a public cap on Poisson batches costs.

The sampler: everyone joins a batch with probability q; of more than m people a
uniformly random subset of m is kept. Take neighbors D' and D = D' + {x}, or x
against its replacement, and draw the *other* people's coins first. They are
the same for both, and as long as fewer than m others come in every step (call
that G) the cap never acts: given G, the run is plain Poisson sampling of x, to
which the accountant's (epsilon, delta) applies whatever the others do. Hence

  Pr[M(D) in S] <= Pr[G] (e^epsilon Pr[M(D') in S | G] + delta) + Pr[not G]
                <= e^epsilon Pr[M(D') in S] + delta + Pr[not G]

and the same with D and D' exchanged. If the larger of the neighbors has n + 1
people there are at most n others:

  Pr[not G] <= steps Pr[Binomial(n, q) >= m]                (truncation_delta)

The usual argument compares each side to its own untruncated run instead, and
pays total variation twice, once multiplied by e^epsilon:

  delta' = delta + (1 + e^epsilon) steps Pr[Binomial(n + 1, q) > m]
                                                       (total_variation_delta)

It assumes nothing about the mechanism, and is never needed here.
"""

import math

from scipy import special

from jaxfair import checks


def truncation_delta(
  *, dataset_size: int, sampling_rate: float, max_batch: int, steps: int
) -> float:
  """The delta that capping batches adds: steps Pr[Binomial(n, q) >= m].

  Args:
    dataset_size: n; neighbors may have one person more.
    sampling_rate: q.
    max_batch: the cap, m.
    steps: number of batches that are drawn.

  Returns:
    An upper bound, at most 1; derived in the module's docstring.
  """
  _check(dataset_size, sampling_rate, steps)
  checks.integer("max_batch", max_batch, low=1)
  log_tail = log_binomial_tail(dataset_size, sampling_rate, max_batch)
  return min(1.0, math.exp(math.log(steps) + log_tail))


def total_variation_delta(
  *, dataset_size: int, sampling_rate: float, max_batch: int, steps: int, epsilon: float
) -> float:
  """The same by total variation: (1 + e^epsilon) steps Pr[Bin(n + 1, q) > m].

  Holds for any mechanism on the batches; for comparison.
  """
  _check(dataset_size, sampling_rate, steps)
  checks.integer("max_batch", max_batch, low=1)
  checks.non_negative("epsilon", epsilon)
  log_tail = log_binomial_tail(dataset_size + 1, sampling_rate, max_batch + 1)
  log_factor = math.log(steps) - float(special.log_expit(-epsilon))
  return math.exp(min(0.0, log_factor + log_tail))


def max_batch_for(
  *, dataset_size: int, sampling_rate: float, steps: int, delta_share: float
) -> int:
  """The smallest cap on batches whose price stays within a share of delta.

  Args:
    dataset_size: n.
    sampling_rate: q.
    steps: number of batches that are drawn.
    delta_share: what `truncation_delta` may come to; 1e-3 * delta is hardly
      felt in epsilon and a cap some six deviations above q n.

  Returns:
    The cap, from 1 to n + 1; computed from public numbers only.
  """
  _check(dataset_size, sampling_rate, steps)
  checks.number("delta_share", delta_share, low=0.0, high=1.0, open_low=True, open_high=True)
  target = math.log(delta_share) - math.log(steps)
  low, high = 0, dataset_size + 1  # the tail is above target, within target
  while high - low > 1:
    middle = (low + high) // 2
    if log_binomial_tail(dataset_size, sampling_rate, middle) > target:
      low = middle
    else:
      high = middle
  return high


def log_binomial_tail(n: int, q: float, m: int) -> float:
  """An upper bound on log Pr[Binomial(n, q) >= m], exact above 1e-300."""
  if m <= 0:
    return 0.0
  if m > n:
    return -math.inf
  tail = float(special.betainc(m, n - m + 1, q))
  if tail > 1e-300:
    return math.log(tail) + 1e-10  # betainc is good to about 1e-12
  # Chernoff: -n KL(m/n || q), for m/n above q.
  rate = m / n
  miss = (1 - rate) * (math.log1p(-rate) - math.log1p(-q)) if rate < 1 else 0.0
  return -n * (rate * math.log(rate / q) + miss)


def _check(dataset_size: int, sampling_rate: float, steps: int) -> None:
  checks.integer("dataset_size", dataset_size, low=1)
  checks.number("sampling_rate", sampling_rate, low=0.0, high=1.0, open_low=True)
  checks.integer("steps", steps, low=1)
