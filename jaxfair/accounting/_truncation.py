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

Over a mesh, people are dealt to L blocks of consecutive rows, shards, as equal in size as can be,
and every shard has a cap of m. G now says that fewer than m others come in every shard in every
step, with the blocks of D and with those of D'. Where x is taken out, the people behind it move up
by one row, and the ends of the blocks, s n / L rounded down, move by at most one: a shard of D and
the same shard of D' together hold at most two people more than either. Hence

  Pr[not G] <= steps L Pr[Binomial(ceil(n / L) + 2, q) >= m]

The L tails are summed: one cap of L m on everybody would practically never act, while each of the
caps of m does. Given G no cap acts, so it does not matter who is kept when one does, and shards may
also be joined and capped together: B blocks cost B tails of ceil(n / B) + 2 people, and
`joint_max_batch` gives the cap for which that is no more than what the L shards were charged.
"""

import math

from scipy import special

from jaxfair import checks


def truncation_delta(
  *, dataset_size: int, sampling_rate: float, max_batch: int, steps: int, shards: int | None = None
) -> float:
  """The delta that capping batches adds: steps Pr[Binomial(n, q) >= m].

  Args:
    dataset_size: n; neighbors may have one person more.
    sampling_rate: q.
    max_batch: the cap, m.
    steps: number of batches that are drawn.
    shards: number of blocks of people with a cap of m each, whose tails are summed; None: one cap.

  Returns:
    An upper bound, at most 1; derived in the module's docstring.
  """
  _check(dataset_size, sampling_rate, steps, shards)
  checks.integer("max_batch", max_batch, low=1)
  log_tail = _log_tails(dataset_size, sampling_rate, max_batch, shards)
  return min(1.0, math.exp(math.log(steps) + log_tail))


def max_batch_for(
  *,
  dataset_size: int,
  sampling_rate: float,
  steps: int,
  delta_share: float,
  shards: int | None = None,
) -> int:
  """The smallest cap on batches whose cost is at most a given share of delta.

  Args:
    dataset_size: n.
    sampling_rate: q.
    steps: number of batches that are drawn.
    delta_share: bound on `truncation_delta`; 1e-3 * delta hardly changes epsilon and gives a cap
      about six standard deviations above q n.
    shards: number of blocks of people that have a cap each; None: one cap for everybody.

  Returns:
    The cap, from 1 to n + 1, or to ceil(n / shards) + 3; computed from public numbers only.
  """
  _check(dataset_size, sampling_rate, steps, shards)
  checks.number("delta_share", delta_share, low=0.0, high=1.0, open_low=True, open_high=True)
  target = math.log(delta_share) - math.log(steps)
  return _smallest_cap(dataset_size, sampling_rate, shards, target)


def joint_max_batch(
  *, dataset_size: int, sampling_rate: float, max_batch: int, shards: int, blocks: int
) -> int:
  """The cap on the people of several shards together that costs no more than theirs.

  Args:
    dataset_size: n.
    sampling_rate: q.
    max_batch: m, the cap of each shard that is charged.
    shards: number of shards, L.
    blocks: number of blocks that the shards are joined to, B; it divides L.

  Returns:
    The smallest M with B Pr[Bin(ceil(n / B) + 2, q) >= M] <= L Pr[Bin(ceil(n / L) + 2, q) >= m].
  """
  checks.require(shards % blocks == 0, f"{blocks=} must divide {shards=}")
  target = _log_tails(dataset_size, sampling_rate, max_batch, shards)
  return _smallest_cap(dataset_size, sampling_rate, blocks, target)


def _smallest_cap(n: int, q: float, shards: int | None, target: float) -> int:
  """The smallest cap whose tails sum up to at most exp(target)."""
  low, high = 0, _largest_block(n, shards) + 1  # the tails are above target, within target
  while high - low > 1:
    middle = (low + high) // 2
    if _log_tails(n, q, middle, shards) > target:
      low = middle
    else:
      high = middle
  return high


def _log_tails(n: int, q: float, m: int, shards: int | None) -> float:
  """log of the probability that a cap acts in one step, summed over the shards."""
  tail = log_binomial_tail(_largest_block(n, shards), q, m)
  return tail + math.log(shards or 1)


def _largest_block(n: int, shards: int | None) -> int:
  """How many others may compete with a person for a place below a cap."""
  return n if shards is None else -(-n // shards) + 2


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


def _check(dataset_size: int, sampling_rate: float, steps: int, shards: int | None = None) -> None:
  checks.integer("dataset_size", dataset_size, low=1)
  checks.number("sampling_rate", sampling_rate, low=0.0, high=1.0, open_low=True)
  checks.integer("steps", steps, low=1)
  if shards is not None:
    checks.integer("shards", shards, low=1, high=dataset_size)
