"""Rules that release answers: exact noise on the host, and what it costs.

Each rule is a frozen value: it names the events to charge, and draws from a
source of random bits. Noise is discrete, so that no floating-point rounding
of private counts is ever seen.
"""

import dataclasses
import math
from typing import Any, ClassVar, Protocol

import numpy as np

from jaxfair import accounting, checks
from jaxfair.accounting import _zcdp
from jaxfair.privacy import _exact_coins, exact
from jaxfair.privacy._exact_coins import BitSource


class Rule(Protocol):
  """How votes become answers.

  Attributes:
    name: name in logs.
    soft: whether an answer is a value for each class, not one label.
  """

  name: ClassVar[str]
  soft: ClassVar[bool]

  @property
  def test(self) -> accounting.Event | None:
    """Charged for every query that is asked; None if all are answered."""

  @property
  def answer(self) -> accounting.Event:
    """Charged for every query that is answered."""

  def passes(self, counts: np.ndarray, source: BitSource) -> np.ndarray:
    """[n] whether each query will be answered."""

  def answers(self, counts: np.ndarray, source: BitSource) -> np.ndarray:
    """[n] labels, or [n, C] values, of queries that passed."""


class _Untested:
  """A rule that answers every query."""

  test = None
  soft: ClassVar[bool] = False

  def passes(self, counts: np.ndarray, source: BitSource) -> np.ndarray:
    """All of them, without looking."""
    del source
    return np.ones(len(counts), bool)


@dataclasses.dataclass(frozen=True)
class GnMax(_Untested):
  """argmax_c n_c + N(0, sigma^2), with discrete Gaussian noise.

  Privacy:
    1/sigma^2-zCDP per label: (a, a / sigma^2)-RDP at every order a.
  """

  sigma: float
  name: ClassVar[str] = "gnmax"

  def __post_init__(self) -> None:
    _number(self, "sigma", low=0.0, open_low=True)

  @property
  def answer(self) -> accounting.Event:
    """One vote moves two counts by one."""
    return _discrete_gaussian(self.sigma, math.sqrt(2))

  def answers(self, counts: np.ndarray, source: BitSource) -> np.ndarray:
    """[n] labels."""
    noisy = exact.discrete_gaussian(counts, sigma=self.sigma, source=source)
    return fair_argmax(noisy, source)


@dataclasses.dataclass(frozen=True)
class ConfidentGnMax:
  """GNMax for queries with max_c n_c + N(0, sigma_threshold^2) >= threshold.

  Privacy:
    The test costs 1/(2 sigma_threshold^2)-zCDP, and an answer
    1/sigma_answer^2 on top.
  """

  threshold: float
  sigma_threshold: float
  sigma_answer: float
  name: ClassVar[str] = "confident-gnmax"
  soft: ClassVar[bool] = False

  def __post_init__(self) -> None:
    _number(self, "threshold")
    _number(self, "sigma_threshold", low=0.0, open_low=True)
    _number(self, "sigma_answer", low=0.0, open_low=True)

  @property
  def test(self) -> accounting.Event:
    """One vote moves the largest count by one at most."""
    return _discrete_gaussian(self.sigma_threshold, 1.0)

  @property
  def answer(self) -> accounting.Event:
    """One vote moves two counts by one."""
    return _discrete_gaussian(self.sigma_answer, math.sqrt(2))

  def passes(self, counts: np.ndarray, source: BitSource) -> np.ndarray:
    """[n] whether the noisy largest count reaches the threshold."""
    largest = counts.max(axis=1)
    noisy = exact.discrete_gaussian(largest, sigma=self.sigma_threshold, source=source)
    return noisy >= self.threshold

  def answers(self, counts: np.ndarray, source: BitSource) -> np.ndarray:
    """[n] labels, with fresh noise."""
    return GnMax(self.sigma_answer).answers(counts, source)


@dataclasses.dataclass(frozen=True)
class LaplaceMax(_Untested):
  """argmax_c n_c + discrete Laplace noise.

  Privacy:
    2 / scale-DP per label. Charged as such: the loss distribution of the
    continuous law, which is a little smaller, is not the discrete one's.
  """

  scale: float
  name: ClassVar[str] = "laplace-max"

  def __post_init__(self) -> None:
    _number(self, "scale", low=0.0, open_low=True)

  @property
  def answer(self) -> accounting.Event:
    """One vote moves the counts by 2 in L1."""
    return accounting.PureDp(math.nextafter(2 / self.scale, math.inf))

  def answers(self, counts: np.ndarray, source: BitSource) -> np.ndarray:
    """[n] labels."""
    noisy = exact.discrete_laplace(counts, scale=self.scale, source=source)
    return fair_argmax(noisy, source)


@dataclasses.dataclass(frozen=True)
class NoisyVotes(_Untested):
  """The whole histogram n_c + N(0, sigma^2): soft labels, times k.

  Privacy:
    1/sigma^2-zCDP per query, however strongly the teachers agree. Dividing
    by k and projecting to the simplex are free.
  """

  sigma: float
  name: ClassVar[str] = "noisy-votes"
  soft: ClassVar[bool] = True

  def __post_init__(self) -> None:
    _number(self, "sigma", low=0.0, open_low=True)

  @property
  def answer(self) -> accounting.Event:
    """One vote moves two counts by one."""
    return _discrete_gaussian(self.sigma, math.sqrt(2))

  def answers(self, counts: np.ndarray, source: BitSource) -> np.ndarray:
    """[n, C] noisy counts."""
    return exact.discrete_gaussian(counts, sigma=self.sigma, source=source)


def described(rule: Any) -> dict[str, Any]:
  """The rule as JSON values."""
  return {"name": rule.name, **dataclasses.asdict(rule)}


def fair_argmax(values: np.ndarray, source: BitSource) -> np.ndarray:
  """[n] one of the largest of each row, each with exactly the same chance."""
  best = values == values.max(axis=1, keepdims=True)
  tied = best.sum(axis=1)
  drawn = np.zeros(len(values), np.int64)
  for many in np.unique(tied[tied > 1]):
    rows = np.flatnonzero(tied == many)
    drawn[rows] = _exact_coins.below(source, int(many), rows.size)
  place = np.cumsum(best, axis=1) - 1
  return np.argmax(best & (place == drawn[:, None]), axis=1)


def _number(rule: Any, name: str, **bounds: Any) -> None:
  checks.number(name, getattr(rule, name), **bounds)
  object.__setattr__(rule, name, float(getattr(rule, name)))


def _discrete_gaussian(sigma: float, sensitivity: float) -> accounting.Event:
  rho = _zcdp.discrete_gaussian_rho(sigma=sigma, sensitivity=sensitivity)
  return accounting.ZCdp(rho)
