"""Exact laws of small mechanisms, and the delta that they really have.

A law is an array of probabilities, one for each outcome. Everything here is a
sum over all outcomes, or an integral to more digits than any test asks for.
"""

import functools
import itertools
import math

import numpy as np
from scipy import special

from helpers.vote_references import histograms, neighbors

GRID = np.linspace(-9.0, 9.0, 721)  # of a standard normal: exact to 1e-12


def delta_of(p, q, epsilon):
  """The least delta at epsilon between two laws, the larger of both ways."""
  p, q = np.asarray(p).ravel(), np.asarray(q).ravel()
  ratio = math.exp(epsilon)
  return max(np.maximum(p - ratio * q, 0).sum(), np.maximum(q - ratio * p, 0).sum())


def worst_delta(law, rows, epsilon, rounds=1):
  """The largest delta of `law(votes)` over all neighbors of all rows.

  `rounds` queries have the same votes, which one teacher changes alike.
  """
  laws = {tuple(row): law(row) for row in rows}
  found = 0.0
  for row, mine in laws.items():
    for other in neighbors(row):
      pair = repeated(mine, laws[tuple(other)], rounds)
      found = max(found, delta_of(*pair, epsilon))
  return found


def repeated(p, q, rounds):
  """Both laws of so many independent rounds, by how often each outcome came."""
  counts = histograms(rounds, len(p))
  ways = special.gammaln(rounds + 1) - special.gammaln(counts + 1).sum(axis=1)
  logs = [special.xlogy(counts, law).sum(axis=1) for law in (p, q)]
  return [np.exp(ways + log) for log in logs]


def every_row(teachers, classes):
  """All votes of so many teachers."""
  return histograms(teachers, classes)


@functools.lru_cache
def discrete_gaussian(sigma):
  """Values and probabilities."""
  reach = math.ceil(9 * sigma) + 1
  values = np.arange(-reach, reach + 1)
  law = np.exp(-(values**2) / (2 * sigma**2))
  return values, law / law.sum()


@functools.lru_cache
def discrete_laplace(scale):
  """Values and probabilities."""
  reach = math.ceil(30 * scale) + 1
  values = np.arange(-reach, reach + 1)
  law = np.exp(-np.abs(values) / scale)
  return values, law / law.sum()


def argmax_law(row, noise):
  """Probabilities of the labels of a noisy argmax on the integers.

  Ties are broken fairly: 1 / (1 + others that tie) is the integral of t^others
  over t in [0, 1], which a product over classes sums up exactly.
  """
  values, law = noise
  row = np.asarray(row)
  size = int(values[-1])
  score = np.arange(row.min() - size, row.max() + size + 1)
  mass = np.zeros((len(row), len(score)))
  for i, votes in enumerate(row):
    start = votes - row.min()
    mass[i, start : start + len(law)] = law
  below = np.cumsum(mass, axis=1) - mass
  nodes, weights = special.roots_legendre(len(row))
  found = np.zeros(len(row))
  for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
    reached = below + t * mass
    for i in range(len(row)):
      others = np.delete(reached, i, axis=0).prod(axis=0)
      found[i] += weight * (mass[i] * others).sum()
  return found


def gnmax_law(row, sigma, *, discrete=False):
  """Probabilities of the labels of GNMax."""
  if discrete:
    return argmax_law(row, discrete_gaussian(sigma))
  row = np.asarray(row, float)
  density = np.exp(-(GRID**2) / 2)
  density /= density.sum()
  gaps = row[:, None, None] - row[None, :, None] + sigma * GRID
  below = special.ndtr(gaps / sigma)
  return np.array(
    [(density * np.delete(below[i], i, axis=0).prod(axis=0)).sum() for i in range(len(row))]
  )


def pass_law(row, threshold, sigma, *, discrete=False):
  """Probabilities that the threshold test fails, and that it passes."""
  largest = max(row)
  if discrete:
    values, law = discrete_gaussian(sigma)
    passes = law[largest + values >= threshold].sum()
  else:
    passes = special.ndtr((largest - threshold) / sigma)
  return np.array([1 - passes, passes])


def confident_law(row, threshold, sigma_threshold, sigma, *, discrete=False):
  """Probabilities of no answer and of each label of Confident-GNMax."""
  fails, passes = pass_law(row, threshold, sigma_threshold, discrete=discrete)
  labels = gnmax_law(row, sigma, discrete=discrete)
  return np.concatenate([[fails], passes * labels])


def capped_laws(p, q, rounds, cap):
  """Both laws of all answers, where no label is given after `cap` of them.

  p and q are laws of one query: no answer first, then the labels. After the
  cap nothing is looked at.
  """
  states = {0: (np.ones(1), np.ones(1))}  # by the number of answers so far
  ended = []
  for _ in range(rounds):
    after = {}
    for given, pair in states.items():
      if given == cap:
        ended.append(pair)
        continue
      none = [law * one[0] for law, one in zip(pair, (p, q), strict=True)]
      some = [np.outer(law, one[1:]).ravel() for law, one in zip(pair, (p, q), strict=True)]
      for count, new in ((given, none), (given + 1, some)):
        old = after.get(count, (np.zeros(0), np.zeros(0)))
        after[count] = tuple(np.concatenate(two) for two in zip(old, new, strict=True))
    states = after
  ended += states.values()
  return [np.concatenate(side) for side in zip(*ended, strict=True)]


def sequences(choices, length):
  """[choices^length, length] every sequence of so many choices."""
  return np.array(list(itertools.product(range(choices), repeat=length)))


def rank_law(row, sigma):
  """{ranks: probability} of three noisy counts, 0 for the largest.

  The value of the class in the middle decides on both others.
  """
  row = np.asarray(row, float)
  density = np.exp(-(GRID**2) / 2)
  density /= density.sum()
  found = {}
  for first, middle, last in itertools.permutations(range(3)):
    value = row[middle] + sigma * GRID
    above = special.ndtr((row[first] - value) / sigma)
    below = special.ndtr((value - row[last]) / sigma)
    ranks = [0, 0, 0]
    ranks[first], ranks[middle], ranks[last] = 0, 1, 2
    found[tuple(ranks)] = (density * above * below).sum()
  return found
