"""What a whole run of PATE costs: the events to charge, and a diagnosis."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from jaxfair import checks
from jaxfair.accounting import _events as ev
from jaxfair.accounting import _votes
from jaxfair.accounting._guarantee import DataDependentEpsilon
from jaxfair.accounting._pate_gnmax import gnmax_rdp
from jaxfair.accounting._pate_threshold import threshold_rdp
from jaxfair.accounting._rdp import DEFAULT_ORDERS, rdp_to_epsilon


def pate_events(
  *,
  sigma: float,
  num_queries: int,
  sigma_threshold: float | None = None,
  max_answers: int | None = None,
) -> tuple[ev.Event, ...]:
  """The event to charge for the labels of `num_queries` queries; it holds for any votes.

  A label is 1/sigma^2-zCDP, a threshold test 1/(2 sigma_threshold^2)-zCDP.

  Args:
    sigma: standard deviation of the noise on each count.
    num_queries: number of queries whose votes may be read.
    sigma_threshold: of Confident-GNMax's test; None where every query gets a
      label without one.
    max_answers: a cap on the labels that was fixed before the first one and
      at which answering stopped. None charges a label for every query.

  Returns:
    Events for a ledger, `composed_guarantee` or `composed_epsilon`. They hold
    for continuous and for discrete Gaussian noise.

  Privacy:
    The number of queries that pass the test depends on the votes, so a charge for those
    that passed is not a guarantee: if few happened to pass, it
    leaves out what the same votes could have released. Without a cap every
    query is one mechanism that may release a label: it is charged for test
    and label. With a cap the charges add up to at most num_queries tests and
    max_answers labels along every sequence of answers, which is a privacy
    filter with a fixed budget.

  Reference:
    Feldman & Zrnic (2021), Theorem 3.1.
  """
  sigma = _votes.noise_sigma(sigma)
  checks.integer("num_queries", num_queries, low=0)
  labels = answer_cap(num_queries, tested=sigma_threshold is not None, max_answers=max_answers)
  found: list[ev.Event] = []
  if labels:
    found.append(ev.Repeated(ev.ZCdp(1 / sigma**2), labels))
  if sigma_threshold is not None and num_queries:
    sigma_test = _votes.noise_sigma(sigma_threshold, name="sigma_threshold")
    found.append(ev.Repeated(ev.ZCdp(0.5 / sigma_test**2), num_queries))
  return tuple(found)


def pate_diagnosis(
  counts: ArrayLike,
  *,
  sigma: float,
  delta: float,
  threshold: float | None = None,
  sigma_threshold: float | None = None,
  max_answers: int | None = None,
  orders: Sequence[float] | np.ndarray = DEFAULT_ORDERS,
  conversion: Literal["tight", "mironov"] = "tight",
  discrete: bool = False,
) -> DataDependentEpsilon:
  """The data-dependent epsilon of a run; not for release.

  Args:
    counts: [n, classes] votes on every query that may be asked.
    sigma: standard deviation of the noise on each count.
    delta: in (0, 1).
    threshold: T of Confident-GNMax; None where every query is answered.
    sigma_threshold: standard deviation of the test's noise.
    max_answers: cap on the labels that was fixed beforehand. None charges a
      label for every query.
    orders: a, each above 1.
    conversion: as in `rdp_to_epsilon`.
    discrete: whether all noise is discrete Gaussian.

  Privacy:
    It is computed from the votes, and holds only for these votes and in one direction:
    see `gnmax_rdp`. `sanitized_epsilon` gives a figure that can be published.
    With a cap, the `max_answers` costliest labels bound what any sequence of
    answers adds up to. Which queries passed is not used: it was one outcome
    of many, and a bound on the divergence is about all of them.
  """
  table = _votes.vote_table(counts)
  check_threshold(threshold, sigma_threshold)
  cap = answer_cap(len(table), tested=threshold is not None, max_answers=max_answers)
  labels = gnmax_rdp(table, sigma=sigma, orders=orders, discrete=discrete)
  total = np.sort(labels, axis=0)[len(table) - cap :].sum(axis=0)
  if threshold is not None and sigma_threshold is not None:
    total = total + threshold_rdp(
      table, threshold=threshold, sigma=sigma_threshold, orders=orders, discrete=discrete
    ).sum(axis=0)
  found = rdp_to_epsilon(total, orders, delta=delta, conversion=conversion)
  assert isinstance(found, DataDependentEpsilon)
  return found


def answer_cap(num_queries: int, *, tested: bool, max_answers: int | None) -> int:
  """The number of labels to charge, after checking the cap."""
  if max_answers is None:
    return num_queries
  checks.require(
    tested,
    "max_answers is for Confident-GNMax; pass threshold and sigma_threshold "
    "too, or ask fewer queries",
  )
  checks.integer("max_answers", max_answers, low=0)
  return min(max_answers, num_queries)


def check_threshold(threshold: float | None, sigma_threshold: float | None) -> None:
  """Raises unless both numbers of the test are given, or neither."""
  checks.require(
    (threshold is None) == (sigma_threshold is None),
    "threshold and sigma_threshold go together; pass both or neither",
  )
