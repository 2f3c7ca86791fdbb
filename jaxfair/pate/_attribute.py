"""Privacy of one attribute: what is asked of the data, what it costs.

Neighbors differ in the group of one person; features and labels are public.
One person's group lies in one teacher's part, so it moves one vote, provided
that who goes where does not depend on the groups.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from jaxfair import _notebook, accounting, checks, data
from jaxfair.accounting._guarantee import round_up
from jaxfair.data._splitting import shuffled
from jaxfair.pate._rules import GnMax
from jaxfair.types import ArrayLike, Examples, Groups, Key

# A partition at random is refused with this probability, on either side.
FALSE_ALARM = 1e-7
# So few people may be the largest of all in some feature by chance.
FEW = 10
# People looked at first, for features that may tell a group.
LOOK = 2000


@dataclasses.dataclass(frozen=True)
class AtTheseVotes:
  """A sanitized epsilon of votes, as it is published; see `accounting.sanitized_epsilon`.

  Attributes:
    epsilon: bounds what answers and this figure reveal about the votes that were cast.
    delta: the delta it goes with.
    confidence: probability with which the figure is a bound.
  """

  epsilon: float
  delta: float
  confidence: float

  def __str__(self) -> str:
    return (
      f"epsilon {round_up(self.epsilon)}, delta {round_up(self.delta)} at the votes that were "
      f"cast; a figure with noise, which holds with confidence {self.confidence:g}"
    )


@dataclasses.dataclass(frozen=True)
class Protection:
  """What a release protects, and what it does not.

  Attributes:
    guarantee: epsilon and delta, about whom.
    protected: in words.
    not_protected: in words; to be told along with the guarantee.
    for_release: whether the noise came from the operating system; None while
      nothing has been drawn.
    at_votes: a smaller epsilon for the votes that were cast, if one was bought; the price of it is
      part of `guarantee`, which holds for any votes.
  """

  guarantee: accounting.PrivacyGuarantee
  protected: tuple[str, ...]
  not_protected: tuple[str, ...]
  for_release: bool | None = None
  at_votes: AtTheseVotes | None = None

  def __str__(self) -> str:
    return "\n".join([str(self.guarantee), *(f"{name}: {what}" for name, what in self.told())])

  def _repr_html_(self) -> str:
    return _notebook.facts(str(self.guarantee), self.told())

  def told(self) -> list[tuple[str, str]]:
    """What must be told along with the guarantee, by kind."""
    lines = [("sanitized", str(self.at_votes))] if self.at_votes else []
    lines += [("protected", what) for what in self.protected]
    lines += [("NOT protected", what) for what in self.not_protected]
    if self.for_release is False:
      lines += [("for study only", "the noise came from a seed")]
    return lines


def vote_sigma(*, epsilon: float, delta: float, queries: int) -> float:
  """The noise on votes at which all queries' answers are (epsilon, delta)-DP.

  One attribute moves two counts of every query by one: sqrt(2 queries) in L2.
  The bound holds for discrete and for continuous noise.
  """
  checks.integer("queries", queries, low=1)
  return accounting.discrete_gaussian_sigma(
    epsilon=epsilon, delta=delta, sensitivity=math.sqrt(2 * queries)
  )


def vote_guarantee(
  *, sigma: float | Sequence[float], queries: int, delta: float
) -> accounting.PrivacyGuarantee:
  """What answers to all queries cost, for one person's group changed.

  Several sigmas mean that all queries were answered that often, each time with
  fresh noise.
  """
  checks.integer("queries", queries, low=1)
  sigmas = [sigma] if isinstance(sigma, float | int) else sigma
  return accounting.composed_guarantee(
    [accounting.Repeated(GnMax(one).answer, queries) for one in sigmas],
    delta=delta,
    relation=accounting.Relation.ATTRIBUTE,
    unit="one person",
  )


def deal(
  people: Examples, num_teachers: int, *, num_groups: int, key: Key, rows: ArrayLike | None = None
) -> Examples:
  """Disjoint parts, one per teacher, that do not depend on the groups.

  Args:
    people: with their private groups.
    num_teachers: k.
    num_groups: G.
    key: deals them out, by their number alone.
    rows: [k, n] a partition of your own, as row numbers; it must have been
      made without the groups.

  Returns:
    Examples with leaves [k, n, ...].

  Raises:
    ArgumentError: if groups can be read off a feature, if a group is in no
      part, or if `rows` overlaps or follows the groups.

  Privacy:
    A split stratified by the attribute moves people between parts when one
    attribute changes: two teachers, up to 2 sqrt(2) in L2, four times the
    cost. That a given partition is not stratified is tested (chi-squared, one
    false alarm in ten million), not proved: with fewer than about six
    teachers stratified ones pass. Leave `rows` out to be certain. What is
    refused depends on the groups, and epsilon does not cover a refusal: it
    is for those who hold them.
  """
  check_people(people, num_groups)
  if rows is None:
    parts = data.partition(people, num_teachers, key=key)
  else:
    check_rows(rows, people, num_teachers, num_groups)
    parts = people.take(np.asarray(rows))
  check_groups(parts.group, num_groups)
  return parts


def check_people(people: Examples, num_groups: int) -> None:
  """Raises if the groups are among the features.

  A feature of which one threshold tells a group from all others is the group
  itself, or a code of it.
  """
  checks.integer("num_groups", num_groups, low=2)
  checks.same_length(**people._asdict())
  checks.ids("people.group", people.group, num_groups)
  group = np.asarray(people.group)
  x = np.asarray(people.x).reshape(len(group), -1)
  x = x.astype(np.result_type(x, np.float32), copy=False)
  # What tells a group exactly does so among any of the people: the first few
  # rule out nearly every feature.
  few = slice(LOOK)
  left = _telling(x[few], group[few], num_groups).any(axis=0)
  if not left.any():
    return
  sizes = np.bincount(group, minlength=num_groups)
  counted = np.minimum(sizes, len(group) - sizes) >= FEW
  apart = _telling(x[:, left], group, num_groups) & counted[:, None]
  for own in np.flatnonzero(apart.any(axis=1)):
    feature = np.flatnonzero(left)[np.argmax(apart[own])]
    raise checks.ArgumentError(
      f"feature {feature} of x separates group {own} from the others exactly: the "
      "private attribute is an input of the model; drop that column"
    )


def _telling(x: np.ndarray, group: np.ndarray, num_groups: int) -> np.ndarray:
  """[G, d] whether one threshold on a feature tells a group from all others.

  Nobody there tells as well as everybody: a group without people is told.
  """
  low = np.full((num_groups, x.shape[1]), np.inf)
  high = -low
  for own in range(num_groups):
    members = x[group == own]
    low[own] = members.min(axis=0, initial=np.inf)
    high[own] = members.max(axis=0, initial=-np.inf)
  told = np.empty(low.shape, bool)
  for own in range(num_groups):
    others = np.arange(num_groups) != own
    told[own] = low[own] > high[others].max(axis=0)
    told[own] |= high[own] < low[others].min(axis=0)
  return told


def check_groups(group: Groups, num_groups: int) -> None:
  """Raises if no teacher has seen one of the groups."""
  sizes = np.bincount(np.asarray(group).ravel(), minlength=num_groups)
  missing = np.flatnonzero(sizes == 0)
  checks.require(
    missing.size == 0,
    f"group {missing.tolist()} is in no teacher's part, so nobody could vote "
    "or be fair for it; leave it out of num_groups, merge it with another, or "
    "use more of the people",
  )


def check_rows(
  rows: ArrayLike | None, people: Examples, num_teachers: int, num_groups: int
) -> None:
  """Raises if a partition overlaps or follows the groups."""
  rows = np.asarray(rows)
  checks.require(
    rows.ndim == 2 and len(rows) == num_teachers and rows.dtype.kind in "iu",
    f"rows has shape {rows.shape}; pass [{num_teachers}, n] row numbers, one line per teacher",
  )
  checks.require(
    bool(rows.size and rows.min() >= 0 and rows.max() < people.size),
    f"rows must lie in 0..{people.size - 1}",
  )
  checks.require(
    np.unique(rows).size == rows.size,
    "rows contains a person twice, but a person may be in only one teacher's part; assign "
    "everybody once",
  )
  group = np.asarray(people.group)[rows]
  counts = np.stack([np.bincount(g, minlength=num_groups) for g in group])
  counts = counts[:, counts.sum(axis=0) > 0]
  if counts.shape[0] < 2 or counts.shape[1] < 2:
    return
  expected = counts.mean(axis=0)  # parts have equal sizes
  statistic = float(np.sum((counts - expected) ** 2 / expected))
  freedom = (counts.shape[0] - 1) * (counts.shape[1] - 1)
  low = stats.chi2.cdf(statistic, freedom)
  high = stats.chi2.sf(statistic, freedom)
  checks.require(
    min(low, high) > FALSE_ALARM,
    "rows looks "
    + ("stratified" if low < high else "sorted")
    + " by the private attribute (chi-squared "
    f"{statistic:.3g} at {freedom} degrees of freedom), so one attribute could change two "
    "teachers; assign people without looking at it, or leave rows out",
  )


def draw_queries(size: int, queries: int, *, key: Key) -> np.ndarray:
  """[queries] rows of people to ask about, drawn without looking at them."""
  checks.integer("queries", queries, low=1, high=size)
  return shuffled(key, size)[:queries]
