"""Vote accounting once more, in 60-digit arithmetic and by brute force."""

import itertools

import mpmath
import numpy as np
from scipy import special


def log_tail(x):
  """ln Pr[N(0, 1) >= x]."""
  return mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2)


def gnmax_q(row, sigma):
  """The union bound on a wrong label, term by term."""
  row = [int(v) for v in row]
  winner = row.index(max(row))
  total = mpmath.mpf(0)
  for i, votes in enumerate(row):
    if i != winner:
      gap = mpmath.mpf(row[winner] - votes)
      total += mpmath.erfc(gap / (2 * mpmath.mpf(sigma))) / 2
  return min(total, 1 - mpmath.mpf(1) / len(row))


def confident_rdp(q, sigma_squared, order):
  """Theorem 6 at the orders of Proposition 10, as the paper states them."""
  order, variance = mpmath.mpf(order), mpmath.mpf(sigma_squared)
  flat = order / variance
  mu2 = mpmath.sqrt(variance * mpmath.log(1 / q))
  mu1 = mu2 + 1
  if mu2 <= 1 or order > mu1:
    return flat
  eps1, eps2 = mu1 / variance, mu2 / variance
  limit = mpmath.exp((mu2 - 1) * eps2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2
  if q > limit:
    return flat
  a = (1 - q) / (1 - (q * mpmath.exp(eps2)) ** ((mu2 - 1) / mu2))
  b = mpmath.exp(eps1) / q ** (1 / (mu1 - 1))
  total = (1 - q) * a ** (order - 1) + q * b ** (order - 1)
  return min(flat, mpmath.log(total) / (order - 1))


def histograms(teachers, classes):
  """Every way the teachers can vote, as [many, classes]."""
  rows = [
    np.bincount(ids, minlength=classes)
    for ids in itertools.combinations_with_replacement(range(classes), teachers)
  ]
  return np.array(rows)


def neighbors(row):
  """The histograms one changed vote away."""
  found = []
  for i, j in itertools.permutations(range(len(row)), 2):
    if row[i] > 0:
      moved = np.array(row)
      moved[i] -= 1
      moved[j] += 1
      found.append(moved)
  return found


def renyi(log_p, log_q, order):
  """Divergence of order a between two finite distributions, from logs."""
  terms = order * np.asarray(log_p) - (order - 1) * np.asarray(log_q)
  return special.logsumexp(terms) / (order - 1)
