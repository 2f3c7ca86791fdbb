"""Votes as scores: what one teacher says of all queries is one vector of length one.

A teacher that names a class for every query may change all of these votes, and is charged for it.
Here a teacher has a fixed length to spend over all queries and classes together, and spends it
where it is sure. One Gaussian release of the sum answers every query at once, however many there
are; what is made of it afterwards (labels, students, margins between groups) is free.
"""

import dataclasses
import math
import os
from typing import NamedTuple

import numpy as np

from jaxfair import accounting, checks
from jaxfair.accounting import _grid
from jaxfair.pate._public_space import PublicSpace
from jaxfair.privacy import exact, grid
from jaxfair.privacy._exact_coins import BitSource
from jaxfair.types import Examples

LENGTH = 2**30  # grid steps in a vector of length one
COUNT = 2**26  # grid steps in one person of the class counts
CHUNK = 128  # teachers whose scores are computed together
COUNT_SHARE = 0.02  # share of the price that the class counts take


class NoisyScores(NamedTuple):
  """What is released about the teachers and their people.

  Attributes:
    scores: [n, C] noisy sums of the teachers' vectors.
    class_counts: [C] noisy numbers of people of each class.
  """

  scores: np.ndarray
  class_counts: np.ndarray


def score_votes(parts: Examples, space: PublicSpace, *, num_classes: int) -> np.ndarray:
  """The sum of the teachers' vectors, in whole steps of `LENGTH`.

  s_i(x, c) = (z(x) - mean z) . (mu_ic - mean_c mu_ic),   u_i = s_i / ||s_i||

  Teacher i is the classifier by nearest class means mu_ic of its part, in coordinates z in which
  the public people have nearly unit covariance. Its estimate is linear in its people, so that the
  mean of many teachers with a few people each is as good as few teachers with many.

  Args:
    parts: disjoint people with leaves [k, p, ...], from `data.partition`.
    space: coordinates of the public people, who are the queries.
    num_classes: C.

  Returns:
    [n, C] int64. A teacher with fewer than two classes, or with a value that is not finite,
    contributes zero, and so does a class that its part lacks.

  Privacy:
    A teacher's integers depend on its own part alone, and their length is at most `LENGTH`, which
    is tested in exact arithmetic: rounding is towards zero, and a vector that is too long after
    all contributes nothing. Replacing one person changes one part, hence the sum by at most
    2 LENGTH in L2. Not for release without noise.
  """
  teachers = len(parts.y)
  checks.require(
    teachers * LENGTH < 2**62, f"{teachers} teachers are too many for 64-bit sums of scores"
  )
  people, labels = np.asarray(parts.x), np.asarray(parts.y)
  people = people.reshape(*labels.shape, -1)
  directions = space.scoring()
  total = np.zeros((num_classes, len(space.coordinates)), np.int64)
  for start in range(0, teachers, CHUNK):
    own = slice(start, start + CHUNK)
    with np.errstate(over="ignore", invalid="ignore"):  # such teachers contribute zero
      scored = _contrasts(people[own], labels[own], num_classes) @ directions
    for scores in scored:
      total += _unit_vector(scores)
  return total.T


@dataclasses.dataclass(frozen=True)
class ScoreNoise:
  """Noise on the sum of scores and on the class counts, as one Gaussian release.

  Attributes:
    noise_multiplier: z. Scores have noise of 2 LENGTH z / sqrt(1 - a), counts of people
      sqrt(2) z / sqrt(a), with a = COUNT_SHARE.

  Privacy:
    Replacing one person moves the sum of scores by at most 2 LENGTH (`score_votes`), and two
    class counts by one. In units of their noise that is a distance of at most
    sqrt((1 - a) + a) / z = 1 / z in L2: one Gaussian mechanism with noise multiplier z, for any
    votes. Values are integers and the noise is discrete, so nothing below a step is left of them;
    its distance from a rounded continuous Gaussian is part of the event.
  """

  noise_multiplier: float

  def __post_init__(self) -> None:
    checks.positive("noise_multiplier", self.noise_multiplier)

  @property
  def sigma_scores(self) -> int:
    """Noise of the scores, in steps; rounded up."""
    return math.ceil(2 * LENGTH * self.noise_multiplier / math.sqrt(1 - COUNT_SHARE))

  @property
  def sigma_counts(self) -> int:
    """Noise of the class counts, in steps; rounded up."""
    return math.ceil(math.sqrt(2) * COUNT * self.noise_multiplier / math.sqrt(COUNT_SHARE))

  def distance(self, queries: int, num_classes: int) -> float:
    """Total variation between the noise and a rounded continuous Gaussian."""
    scores = grid.distance(queries * num_classes, steps=self.sigma_scores)
    return scores + grid.distance(num_classes, steps=self.sigma_counts)

  def event(self, queries: int, num_classes: int) -> accounting.Event:
    """The price of scores and counts together."""
    distance = self.distance(queries, num_classes)
    return _grid.grid_gaussian(noise_multiplier=self.noise_multiplier, distance=distance)

  def release(
    self, votes: np.ndarray, class_counts: np.ndarray, *, source: BitSource = os.urandom
  ) -> NoisyScores:
    """Adds the noise, once, to sums of `score_votes` and to the counts of all private people."""
    counts = np.asarray(class_counts).astype(np.int64) * COUNT
    scores = exact.discrete_gaussian(votes, sigma=self.sigma_scores, source=source)
    noisy = exact.discrete_gaussian(counts, sigma=self.sigma_counts, source=source)
    return NoisyScores(scores / LENGTH, noisy / COUNT)


def score_noise(budget: accounting.Budget, queries: int, num_classes: int) -> ScoreNoise:
  """The least noise whose price is within the budget, by the accountant's own figure."""
  epsilon, delta = budget
  first = _grid.grid_sigma(epsilon=epsilon, delta=delta, distance=0.0)
  checks.require(
    first * 2 * LENGTH < 2**39,
    f"epsilon={epsilon:g} is too small for scores: their noise exceeds the grid; use votes",
  )
  noise = ScoreNoise(first)
  while _epsilon(noise.event(queries, num_classes), delta) > epsilon:
    noise = ScoreNoise(noise.noise_multiplier * 1.001)
  return noise


def _epsilon(event: accounting.Event, delta: float) -> float:
  relation = accounting.Relation.REPLACE_ONE
  return accounting.composed_guarantee([event], delta=delta, relation=relation).epsilon


def _contrasts(x: np.ndarray, y: np.ndarray, num_classes: int) -> np.ndarray:
  """[k, C, d] each teacher's class means minus their average; 0 for a class that it lacks."""
  member = (y[:, None] == np.arange(num_classes)[:, None]).astype(np.float64)  # [k, C, p]
  sizes = member.sum(axis=2, keepdims=True)
  known = sizes > 0
  means = member @ x.astype(np.float64) / np.maximum(sizes, 1)
  center = means.sum(axis=1, keepdims=True) / known.sum(axis=1, keepdims=True)
  return (means - center) * known


def _unit_vector(scores: np.ndarray) -> np.ndarray:
  """Whole steps of the vector scaled to length one, at most; zero if it cannot be."""
  largest = np.max(np.abs(scores), initial=0.0)
  if not np.isfinite(largest) or largest == 0:
    return np.zeros(scores.shape, np.int64)
  scaled = scores / largest  # so that no square overflows or vanishes
  steps = np.trunc(scaled / np.linalg.norm(scaled) * (LENGTH * (1 - 2.0**-30))).astype(np.int64)
  # Exact: entries are at most LENGTH and the float norm is nearly right, so 64 bits hold the sum.
  within = int(np.sum(steps * steps)) <= LENGTH**2
  return steps if within else np.zeros_like(steps)
