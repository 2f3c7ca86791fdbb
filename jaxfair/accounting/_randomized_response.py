"""Randomized response, composed in closed form.

dp-accounting 0.6.0 ignores how often a randomized response is repeated, so it
is not used.
"""

import math

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.accounting._guarantee import delta_in_range

# Beyond this many responses the table of the composition outgrows its use.
MAX_COUNT = 2000


def randomized_response_keep(*, epsilon: float, categories: int) -> float:
  """The chance to report the truth: e^epsilon / (e^epsilon + k - 1)."""
  checks.positive("epsilon", epsilon)
  checks.integer("categories", categories, low=2)
  return 1 / (1 + (categories - 1) * math.exp(-epsilon))


def randomized_response_epsilon(
  *, epsilon: float, categories: int, count: int, delta: float = 0.0
) -> float:
  """The epsilon of several responses about the same person, exactly.

  One response has loss +epsilon with probability p, -epsilon with p e^-epsilon
  and else 0, where p = e^epsilon / (e^epsilon + k - 1). Several have loss
  j epsilon with a trinomial probability P(j), and
  delta(e) = sum_j P(j) (1 - e^(e - j epsilon))_+ is inverted in closed form.

  Args:
    epsilon: epsilon of one response.
    categories: k, the number of possible answers.
    count: responses about the same person, each free to depend on the
      earlier ones.
    delta: 0 gives count * epsilon.

  Returns:
    epsilon at this delta, for one person's value replaced by another.
  """
  checks.positive("epsilon", epsilon)
  checks.integer("categories", categories, low=2)
  checks.integer("count", count, low=1)
  delta_in_range(delta, zero=True)
  total = count * epsilon
  if delta == 0 or count > MAX_COUNT:
    return total
  log_p = _log_loss_probabilities(epsilon, categories, count)
  losses = epsilon * np.arange(-count, count + 1)
  # Of all events, the likeliest under P relative to Q are "loss > j epsilon":
  # delta(e) = max_j A_j - e^e B_j, their probabilities under P and Q.
  log_a = np.logaddexp.accumulate(log_p[::-1])
  log_b = np.logaddexp.accumulate((log_p - losses)[::-1])
  over = log_a > math.log(delta)
  rest = log_a[over] + np.log(-np.expm1(math.log(delta) - log_a[over]))
  exact = float(np.max(rest - log_b[over], initial=0.0))
  # The sums above are good to about count roundings.
  return min(total, exact + 1e-13 * count * max(1.0, epsilon))


def _log_loss_probabilities(epsilon: float, categories: int, count: int) -> np.ndarray:
  """[2 count + 1] log-probabilities of the losses -count..count (x epsilon)."""
  keep = randomized_response_keep(epsilon=epsilon, categories=categories)
  truthful = special.expit(epsilon)  # of the two answers that tell them apart
  telling = min(1.0, keep / truthful) if categories > 2 else 1.0
  out = np.full(2 * count + 1, -np.inf)
  told, up = np.tril_indices(count + 1)
  if categories == 2:
    told, up = np.full(count + 1, count), np.arange(count + 1)
  log_p = _log_binomial(told, count, telling) + _log_binomial(up, told, truthful)
  np.logaddexp.at(out, 2 * up - told + count, log_p)
  return out


def _log_binomial(k: np.ndarray, n: np.ndarray | int, p: float) -> np.ndarray:
  ways = special.gammaln(n + 1) - special.gammaln(k + 1)
  ways = ways - special.gammaln(n - k + 1)
  return ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)
