"""Preprocessing as part of the guarantee: declared, public, or bought with noise.

A scaler that is fitted on private people reveals something about them to anyone who sees the
model. Ranges are therefore declared, taken from public people, or released with noise and
charged like any other release.
"""

import dataclasses
import math
import os
from collections.abc import Sequence

import numpy as np

from jaxfair import accounting, checks, data
from jaxfair.accounting import Relation, _composition, _zcdp
from jaxfair.data import Encoder
from jaxfair.data._columns import Categorical, Numeric
from jaxfair.data._scaling import Scale, Scaler
from jaxfair.methods._counting import count
from jaxfair.privacy import exact
from jaxfair.types import Features, Source

# Numbers are first placed between powers of two, up to their sign.
_POWERS = 2.0 ** np.arange(-20, 41)
MAGNITUDES = np.concatenate([-_POWERS[::-1], _POWERS])
STEPS = (4, 64)  # fewest and most bins between the bounds that the first histogram gives
LIMIT = 5.0  # standard deviations; scaled features are cut off there


@dataclasses.dataclass(frozen=True, eq=False)
class Preprocessing:
  """How features are processed before a method sees them, and what that reveals.

  Attributes:
    encoder: encodes people; if categories were bought, it has fewer of them than
      the original encoder.
    kept: [d'] which features of the original encoder are left. Not for release: the places tell
      how many categories were left out between those that were bought.
    scaler: applied to the features that are left.
    assumed_public: sentences on what is not covered by the guarantee.
    event: what was released about the private people; None for nothing.
  """

  encoder: Encoder
  kept: np.ndarray
  scaler: Scaler
  assumed_public: tuple[str, ...]
  event: accounting.Event | None = None

  @classmethod
  def declared(cls, encoder: Encoder) -> "Preprocessing":
    """Scales numbers by their declared ranges to [-1, 1]; categories stay 0 or 1.

    A missing number becomes the middle of its range.
    """
    free = [c.name for c in _numbers(encoder) if not _has_range(c)]
    checks.require(
      not free,
      f"no range is declared for {', '.join(free)}; pass "
      f"ranges={{{free[0] if free else ''!r}: (low, high)}}, a public table, or pay for a "
      "private scaler",
    )
    center, factor = _identity(encoder)
    for place, column in _number_places(encoder):
      center[place], factor[place] = _by_range(column)
    return cls(encoder, _all(encoder), _scaler(center, factor, 1.0), encoder.assumed_public())

  @classmethod
  def public(cls, encoder: Encoder, x: Features, scale: Scale = "standard") -> "Preprocessing":
    """Fits the scaler on the features of public people, encoded by the same encoder."""
    told = f"the means and spreads of all features were taken from {len(x)} public people"
    scaler = data.fit_scaler(x, scale)
    return cls(encoder, _all(encoder), scaler, (*encoder.assumed_public(), told))

  def apply(self, x: Features) -> np.ndarray:
    """Selects and scales features that the encoder before this one made."""
    return self.scaler.apply(x[:, self.kept])


@dataclasses.dataclass(frozen=True)
class PreprocessingPlan:
  """A scaler and categories that are bought from private people, priced.

  Attributes:
    encoder: how the people are encoded now.
    noise_multiplier: z of each histogram.
    relation: which data sets count as neighbors.
    categories_delta: the chance that a category of one person is released; 0
      takes the categories of the encoder as public.
  """

  encoder: Encoder
  noise_multiplier: float
  relation: Relation
  categories_delta: float = 0.0

  def __post_init__(self) -> None:
    checks.positive("noise_multiplier", self.noise_multiplier)
    checks.number("categories_delta", self.categories_delta, low=0.0, high=1.0, open_high=True)

  @property
  def event(self) -> accounting.Event | None:
    """What `buy` is charged as, before it is called; None if it buys nothing."""
    parts: list[accounting.Event] = []
    if self.numbers:
      parts += 2 * [accounting.ZCdp(self._rho(len(self.numbers)))]
    if self.categories:
      new = 2 if self.relation.substitutes else 1
      parts += [
        accounting.ZCdp(self._rho(len(self.categories))),
        accounting.ApproxDp(0.0, min(1.0, new * self.categories_delta)),
      ]
    return accounting.Composed(tuple(parts)) if parts else None

  @property
  def numbers(self) -> tuple[str, ...]:
    """Columns of numbers without a declared range."""
    return tuple(c.name for c in _numbers(self.encoder) if not _has_range(c))

  @property
  def categories(self) -> tuple[str, ...]:
    """Columns of words whose values were taken from the people themselves."""
    if not self.categories_delta:
      return ()
    columns = [c for c in self.encoder.columns if isinstance(c, Categorical)]
    return tuple(c.name for c in columns if c.origin == "data")

  @property
  def marked(self) -> Encoder:
    """The encoder, with the origin of every column that is bought."""
    bought = {*self.numbers, *self.categories}
    columns = tuple(
      dataclasses.replace(column, origin="bought") if column.name in bought else column
      for column in self.encoder.columns
    )
    return dataclasses.replace(self.encoder, columns=columns)

  def buy(self, x: Features | Source, *, source: exact.BitSource = os.urandom) -> Preprocessing:
    """Releases means, spreads and categories of the private people, with noise.

    Args:
      x: [n, d] features of the private people, as `encoder` made them; or people on disk, who are
        read twice, a block at a time, since the second histograms depend on the first ones.
      source: source of random bits; the operating system by default.

    Returns:
      Numbers without a declared range are scaled to zero mean and unit variance, nearly, and cut
      off at `LIMIT`; those with a range to [-1, 1]; categories stay 0 or 1.

    Privacy:
      Numbers: a histogram over a public grid of magnitudes, then one of equal bins between the
      bounds that the first one gave. In either, a person is in one bin at most for
      each of the k columns, and in none where the number is missing: adding or removing a person
      moves the counts by sqrt(k) in L2, replacing one by sqrt(2 k). Discrete Gaussian noise of
      parameter sigma on these integers is (L2 / sigma)^2 / 2-zCDP (Canonne, Kamath & Steinke
      2020, Theorem 4), also where the second grid depends on the first release.

      Categories: values that nobody has get no noise, so a new value could be noticed. Let D have
      values that its neighbor D' has not. On the values that both have, the noisy counts are
      rho-zCDP as above. Each of the at most k new values has the count 1 and is released with
      probability at most categories_delta / k: the noise N is sub-Gaussian, so
      Pr[N >= t] <= exp(-t^2 / (2 sigma^2)), and the threshold is 1 + t with
      t = sigma sqrt(2 ln(k / categories_delta)) rounded up. With p the chance that a new value
      is released, the laws are P = (1 - p) P' + p R and Q = Q', P' and Q' the laws on common
      values, R disjoint from both. For every epsilon the hockey-stick divergence of P from Q is at
      most p + (1 - p) H for H that of P' from Q'; that of Q from P is at most the same, since
      Q' - e^epsilon (1 - p) P' = p Q' + (1 - p) (Q' - e^epsilon P'). This is the divergence of
      P' and Q' composed with a (0, p)-DP mechanism, so by Blackwell's theorem the release is
      dominated by `event`. Where a person is replaced both data sets have new values, and the two
      chances add up.

      Everything else is post-processing. Counts are sums of integers over people, so reading
      people by blocks gives the same counts, and the same noise is added to them once.
    """
    center, factor = _identity(self.encoder)
    for place, column in _number_places(self.encoder):
      if _has_range(column):
        center[place], factor[place] = _by_range(column)
    bought = [p for p, c in _number_places(self.encoder) if c.name in self.numbers]
    found = count(x, len(center), dict.fromkeys(bought, MAGNITUDES))
    if bought:
      center[bought], factor[bought] = self._scales(x, bought, found.histograms, source)
    encoder, kept = self._with_categories(found.present, source)
    return Preprocessing(
      encoder,
      kept,
      _scaler(center[kept], factor[kept], LIMIT),
      encoder.assumed_public(),
      self.event,
    )

  def _scales(
    self,
    x: Features | Source,
    places: Sequence[int],
    magnitudes: list[np.ndarray],
    source: exact.BitSource,
  ) -> tuple[np.ndarray, np.ndarray]:
    """[k] means and [k] inverse standard deviations, from two noisy histograms of each column."""
    sigma = self._sigma(len(places))
    coarse = exact.discrete_gaussian(np.stack(magnitudes), sigma=sigma, source=source)
    grids = [_second_grid(noisy, sigma) for noisy in coarse]
    inner = {place: grid[1:-1] for place, grid in zip(places, grids, strict=True)}
    width, found = len(self.encoder.feature_names), []
    for counts, grid in zip(count(x, width, inner).histograms, grids, strict=True):
      fine = exact.discrete_gaussian(counts, sigma=sigma, source=source)
      found.append(_mean_and_deviation(fine, grid, sigma))
    mean, deviation = np.array(found).T
    return mean, 1 / deviation

  def _with_categories(
    self, present: np.ndarray, source: exact.BitSource
  ) -> tuple[Encoder, np.ndarray]:
    """The encoder with the categories that enough people have, and the features left."""
    sigma, threshold = self._sigma(len(self.categories)), self._threshold()
    kept, columns, place = [], [], 0
    for column in self.marked.columns:
      width = len(column.values) if isinstance(column, Categorical) else 1
      places = np.arange(place, place + width)
      place += width
      if isinstance(column, Categorical) and column.name in self.categories:
        counts = present[places]
        noisy = exact.discrete_gaussian(counts, sigma=sigma, source=source)
        common = (counts > 0) & (noisy >= threshold)
        values = tuple(v for v, c in zip(column.values, common, strict=True) if c)
        column = dataclasses.replace(column, values=values)
        places = places[common]
      columns.append(column)
      kept.append(places)
    return dataclasses.replace(self.encoder, columns=tuple(columns)), np.concatenate(kept)

  def _threshold(self) -> int:
    """The noisy count from which a category is released."""
    k = len(self.categories)
    if not k:
      return 0
    tail = self._sigma(k) * math.sqrt(2 * math.log(k / self.categories_delta))
    return 1 + math.ceil(tail * (1 + 1e-12))

  def _moves(self, columns: int) -> int:
    """The square of what a neighbor may move the counts of histograms by, in L2."""
    return columns * (2 if self.relation.substitutes else 1)

  def _sigma(self, columns: int) -> float:
    """The noise on counts, rounded up to a quarter: exact draws of short numbers are faster."""
    return math.ceil(4 * self.noise_multiplier * math.sqrt(self._moves(columns))) / 4

  def _rho(self, columns: int) -> float:
    sensitivity = math.sqrt(self._moves(columns))
    return _zcdp.discrete_gaussian_rho(sigma=self._sigma(columns), sensitivity=sensitivity)


def plan_preprocessing(
  encoder: Encoder,
  *,
  epsilon: float,
  delta: float,
  relation: Relation = Relation.ADD_OR_REMOVE_ONE,
  buy_categories: bool = True,
) -> PreprocessingPlan:
  """Plans the noisy release, within (epsilon, delta), of what the encoder does not declare.

  Args:
    encoder: of the private people.
    epsilon: above 0; a tenth of the whole budget is a good start.
    delta: in (0, 1).
    relation: which data sets count as neighbors.
    buy_categories: False takes the categories of the encoder as public.

  Returns:
    The plan; `plan.event` is None where nothing has to be bought.
  """
  share = delta / (4 if relation.substitutes else 2) if buy_categories else 0.0
  free = PreprocessingPlan(encoder, 1.0, relation, share)
  if free.event is None:
    return free
  rho = accounting.zcdp_budget(epsilon=epsilon, delta=delta / 2 if free.categories else delta)
  parts = 2 * bool(free.numbers) + bool(free.categories)
  plan = dataclasses.replace(free, noise_multiplier=math.sqrt(parts / (2 * rho)))
  # The accountants compose the delta of the categories less tightly than by a sum.
  while _epsilon(plan, delta) > epsilon:
    plan = dataclasses.replace(plan, noise_multiplier=1.01 * plan.noise_multiplier)
  return plan


def _second_grid(noisy: np.ndarray, sigma: float) -> np.ndarray:
  """Edges of equal bins over the magnitudes that are seen; the fullest one if none is.

  There are as many bins as leave each with 8 sigma people on average.
  """
  # In 123 bins of noise alone, one above 5 sigma has a chance below 4e-5.
  seen = np.flatnonzero(noisy > 5 * sigma)
  seen = seen if seen.size else np.array([noisy.argmax()])
  edges = np.concatenate([[2 * MAGNITUDES[0]], MAGNITUDES, [2 * MAGNITUDES[-1]]])
  steps = np.clip(noisy[seen].sum() // (8 * sigma), *STEPS)
  return np.linspace(edges[seen[0]], edges[seen[-1] + 1], int(steps) + 1)


def _mean_and_deviation(noisy: np.ndarray, grid: np.ndarray, sigma: float) -> tuple[float, float]:
  """Of people spread evenly within each bin; bins that are mostly noise count as empty."""
  seen = np.where(noisy > 2 * sigma, noisy, 0)
  if not seen.any():
    seen[noisy.argmax()] = 1
  shares, middles = seen / seen.sum(), (grid[1:] + grid[:-1]) / 2
  mean = shares @ middles
  variance = shares @ (middles - mean) ** 2 + (grid[1] - grid[0]) ** 2 / 12
  return float(mean), math.sqrt(variance)


def _epsilon(plan: PreprocessingPlan, delta: float) -> float:
  assert plan.event is not None
  return _composition.composed_epsilon(
    [plan.event], delta=delta, relation=plan.relation, accountant="rdp"
  )


def _numbers(encoder: Encoder) -> list[Numeric]:
  return [column for column in encoder.columns if isinstance(column, Numeric)]


def _has_range(column: Numeric) -> bool:
  return column.low is not None and column.high is not None


def _by_range(column: Numeric) -> tuple[float, float]:
  assert column.low is not None
  assert column.high is not None
  return (column.low + column.high) / 2, 2 / (column.high - column.low)


def _number_places(encoder: Encoder) -> list[tuple[int, Numeric]]:
  """Each column of numbers, with the place of its feature."""
  names = encoder.feature_columns
  return [(names.index(column.name), column) for column in _numbers(encoder)]


def _all(encoder: Encoder) -> np.ndarray:
  return np.arange(len(encoder.feature_names))


def _identity(encoder: Encoder) -> tuple[np.ndarray, np.ndarray]:
  width = len(encoder.feature_names)
  return np.zeros(width), np.ones(width)


def _scaler(center: np.ndarray, factor: np.ndarray, limit: float) -> Scaler:
  short = center.astype(np.float32)
  return Scaler(short, factor.astype(np.float32), short, limit)
