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
of what was released from what a neighbor would release, not the reverse.

Reference:
  Papernot et al. (2018), "Scalable private learning with PATE", Theorem 6 and
  Proposition 10.
"""

import numpy as np

# Rows at a time, so that the [rows, orders] temporaries stay in the cache.
BLOCK = 1024


def confident_rdp(log_q: np.ndarray, *, sigma: float, orders: np.ndarray) -> np.ndarray:
  """The better of the bound above and a / sigma^2, per query and order.

  Args:
    log_q: [n] logarithms, at most 0.
    sigma: of a mechanism that is (a, a / sigma^2)-RDP without looking.
    orders: [orders], each above 1.

  Returns:
    [n, orders].
  """
  # Many queries of the same teachers have the same votes, or the same gaps.
  distinct, own = np.unique(log_q, return_inverse=True)
  return np.take(_rdp_of(distinct, sigma, orders), own, axis=0)


def _rdp_of(log_q: np.ndarray, sigma: float, orders: np.ndarray) -> np.ndarray:
  flat = orders / sigma**2
  m = sigma * np.sqrt(-log_q)  # mu_2; mu_1 is one more
  rows = _applicable(log_q, m, sigma**2)
  if rows.size == 0:
    return np.tile(flat, (log_q.size, 1))
  out = np.empty((log_q.size, orders.size))
  out[:] = flat
  terms = _Terms(log_q[rows], m[rows], sigma**2)
  space = np.empty((3, min(BLOCK, rows.size), orders.size))
  for start in range(0, rows.size, BLOCK):
    block = slice(start, start + BLOCK)
    found = terms.bound(block, orders, space)
    np.minimum(found, flat, out=found)
    beyond = orders > (m[rows[block]] + 1)[:, None]
    np.copyto(found, flat, where=beyond)
    out[rows[block]] = found
  return out


def _applicable(log_q: np.ndarray, m: np.ndarray, variance: float) -> np.ndarray:
  """Rows whose q is small enough."""
  rows = np.flatnonzero(m > 1)
  inner = m[rows]
  limit = (inner - 1) * inner / variance - inner * (np.log1p(1 / inner) + np.log1p(1 / (inner - 1)))
  return rows[log_q[rows] <= limit]


class _Terms:
  """Both terms of the bound, as lines in a - 1 whose exponentials add up."""

  def __init__(self, log_q: np.ndarray, m: np.ndarray, variance: float):
    log_likely = _log1mexp(-log_q)  # ln(1 - q)
    log_spread = _log1mexp((m - 1) ** 2 / variance)
    self.usual = log_likely[:, None], (log_likely - log_spread)[:, None]
    self.rare = log_q[:, None], ((2 * m + 1) / variance)[:, None]

  def bound(self, rows: slice, orders: np.ndarray, space: np.ndarray) -> np.ndarray:
    """ln(e^usual + e^rare) / (a - 1); into `space`, which saves a fifth."""
    excess = orders - 1
    start, slope = (part[rows] for part in self.usual)
    found, rare, apart = space[:, : len(start)]
    np.multiply(slope, excess, out=found)
    found += start
    start, slope = (part[rows] for part in self.rare)
    np.multiply(slope, excess, out=rare)
    rare += start
    # np.logaddexp is slower: only exp alone is vectorized.
    np.subtract(found, rare, out=apart)
    np.maximum(found, rare, out=found)
    np.abs(apart, out=apart)
    np.negative(apart, out=apart)
    np.exp(apart, out=apart)
    np.log1p(apart, out=apart)
    found += apart
    found /= excess
    return np.maximum(found, 0.0, out=found)


def _log1mexp(x: np.ndarray) -> np.ndarray:
  """ln(1 - e^-x) for x > 0, to full precision at both ends."""
  small = np.minimum(x, np.log(2))
  large = np.maximum(x, np.log(2))
  return np.where(x < np.log(2), np.log(-np.expm1(-small)), np.log1p(-np.exp(-large)))
