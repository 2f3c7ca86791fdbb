"""What a mechanism costs when one outcome is nearly certain.

Let a mechanism be (a, a / sigma^2)-RDP at every order a, and on this data give
another outcome than its likeliest with probability at most q. Then for
m = sigma sqrt(ln 1/q), the two higher orders m and m + 1, and every order
a <= m + 1,

  (a - 1) r_a = ln( (1 - q) A^(a-1) + q B^(a-1) )
  A = (1 - q) / (1 - (q e^(m / sigma^2))^(1 - 1/m))
  B = e^((m + 1) / sigma^2) q^(-1/m)

as long as m > 1 and ln q <= (m - 1) m / sigma^2 - m ln((m+1)/m * m/(m-1)).
With q = e^(-m^2 / sigma^2) all exponents are polynomials in m, which is how
they are computed: nothing is lost for q down to e^(-10^6) and beyond.

The bound holds at these votes and in one direction: it bounds the divergence
of what was released from what a neighbour would release, not the reverse.

Reference:
  Papernot et al. (2018), "Scalable private learning with PATE", Theorem 6 and
  Proposition 10.
"""

import numpy as np

# Rows at a time, so that the [rows, orders] temporaries stay in the cache.
BLOCK = 1024


def confident_rdp(
  log_q: np.ndarray, *, sigma: float, orders: np.ndarray
) -> np.ndarray:
  """The better of the bound above and a / sigma^2, per query and order.

  Args:
    log_q: [n] logarithms, at most 0.
    sigma: of a mechanism that is (a, a / sigma^2)-RDP without looking.
    orders: [orders], each above 1.

  Returns:
    [n, orders].
  """
  variance = sigma**2
  flat = orders / variance
  out = np.empty((log_q.size, orders.size))
  out[:] = flat
  m = sigma * np.sqrt(-log_q)  # mu_2; mu_1 is one more
  rows = np.flatnonzero(m > 1)
  inner = m[rows]
  limit = (inner - 1) * inner / variance - inner * (
    np.log1p(1 / inner) + np.log1p(1 / (inner - 1))
  )
  rows = rows[log_q[rows] <= limit]
  for start in range(0, rows.size, BLOCK):
    block = rows[start : start + BLOCK]
    found = _bound(log_q[block], m[block], variance, orders)
    allowed = orders <= (m[block] + 1)[:, None]
    out[block] = np.where(allowed, np.minimum(found, flat), flat)
  return out


def _bound(
  log_q: np.ndarray, m: np.ndarray, variance: float, orders: np.ndarray
) -> np.ndarray:
  excess = orders - 1
  log_likely = _log1mexp(-log_q)  # ln(1 - q)
  log_spread = _log1mexp((m - 1) ** 2 / variance)
  usual = log_likely[:, None] * orders
  usual -= log_spread[:, None] * excess
  rare = ((2 * m + 1) / variance)[:, None] * excess
  rare += log_q[:, None]
  # ln(e^usual + e^rare) as np.logaddexp has it, in a third of the time.
  larger = np.maximum(usual, rare)
  usual -= rare
  np.abs(usual, out=usual)
  np.negative(usual, out=usual)
  np.exp(usual, out=usual)
  np.log1p(usual, out=usual)
  larger += usual
  larger /= excess
  return np.maximum(larger, 0.0, out=larger)


def _log1mexp(x: np.ndarray) -> np.ndarray:
  """ln(1 - e^-x) for x > 0, to full precision at both ends."""
  small = np.minimum(x, np.log(2))
  large = np.maximum(x, np.log(2))
  return np.where(
    x < np.log(2), np.log(-np.expm1(-small)), np.log1p(-np.exp(-large))
  )
