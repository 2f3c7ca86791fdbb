"""What a whole run of PATE costs: the events to charge, and a diagnosis."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from jaxfair import checks
from jaxfair.accounting import events as ev
from jaxfair.accounting import votes
from jaxfair.accounting.guarantee import DataDependentEpsilon
from jaxfair.accounting.pate_gnmax import gnmax_rdp
from jaxfair.accounting.pate_threshold import threshold_rdp
from jaxfair.accounting.rdp import DEFAULT_ORDERS, rdp_to_epsilon


def pate_events(
  *,
  sigma: float,
  num_answered: int,
  num_asked: int | None = None,
  sigma_threshold: float | None = None,
) -> tuple[ev.Event, ...]:
  """What to charge for so many labels, without looking at the votes.

  A label is 1/sigma^2-zCDP, a threshold test 1/(2 sigma_threshold^2)-zCDP.

  Args:
    sigma: standard deviation of the noise on each count.
    num_answered: queries that passed the test, whether their label was
      released or refused afterwards.
    num_asked: queries whose votes were compared with the threshold.
    sigma_threshold: of the test; None where every query is answered.

  Returns:
    Events for a ledger, `composed_guarantee` or `composed_epsilon`. They hold
    for continuous and for discrete Gaussian noise.

  Privacy:
    Where the number of answers depends on the votes, fix a cap on it
    beforehand, stop there, and charge the cap.
  """
  sigma = votes.noise_sigma(sigma)
  checks.integer("num_answered", num_answered, low=0)
  both = (num_asked is None) == (sigma_threshold is None)
  checks.require(
    both, "num_asked and sigma_threshold go together; pass both or neither"
  )
  found: list[ev.Event] = []
  if num_answered:
    found.append(ev.Repeated(ev.ZCdp(1 / sigma**2), num_answered))
  if num_asked is not None:
    sigma_test = votes.noise_sigma(sigma_threshold, name="sigma_threshold")
    checks.integer(
      "num_asked", num_asked, low=num_answered,
      remedy="every answered query was asked",
    )  # fmt: skip
    if num_asked:
      found.append(ev.Repeated(ev.ZCdp(0.5 / sigma_test**2), num_asked))
  return tuple(found)


def pate_diagnosis(
  counts: Any,
  *,
  sigma: float,
  delta: float,
  threshold: float | None = None,
  sigma_threshold: float | None = None,
  answered: Any = None,
  orders: Sequence[float] | np.ndarray = DEFAULT_ORDERS,
  conversion: Literal["tight", "mironov"] = "tight",
  discrete: bool = False,
) -> DataDependentEpsilon:
  """The data-dependent epsilon of a run: for your own eyes.

  Args:
    counts: [n, classes] votes on every query that was asked.
    sigma: standard deviation of the noise on each count.
    delta: in (0, 1).
    threshold: T of Confident-GNMax; None where every query is answered.
    sigma_threshold: standard deviation of the test's noise.
    answered: [n] which queries passed the test. None charges a label for
      every query, which is an upper bound.
    orders: a, each above 1.
    conversion: as in `rdp_to_epsilon`.
    discrete: whether all noise is discrete Gaussian.

  Privacy:
    It is computed from the votes, holds for them alone, and in one direction:
    see `gnmax_rdp`. `sanitised_epsilon` gives a figure that can be published.
  """
  table = votes.vote_table(counts)
  mask = answered_mask(table, threshold, sigma_threshold, answered)
  total = gnmax_rdp(
    table[mask], sigma=sigma, orders=orders, discrete=discrete
  ).sum(axis=0)
  if threshold is not None and sigma_threshold is not None:
    total = total + threshold_rdp(
      table, threshold=threshold, sigma=sigma_threshold, orders=orders,
      discrete=discrete,
    ).sum(axis=0)  # fmt: skip
  found = rdp_to_epsilon(total, orders, delta=delta, conversion=conversion)
  assert isinstance(found, DataDependentEpsilon)
  return found


def answered_mask(
  table: np.ndarray,
  threshold: float | None,
  sigma_threshold: float | None,
  answered: Any,
) -> np.ndarray:
  """[n] bools, after checking that the arguments make sense together."""
  checks.require(
    (threshold is None) == (sigma_threshold is None),
    "threshold and sigma_threshold go together; pass both or neither",
  )
  if answered is None:
    return np.ones(len(table), dtype=bool)
  mask = np.asarray(answered)
  checks.require(
    threshold is not None,
    "answered is for Confident-GNMax; pass threshold and sigma_threshold too",
  )
  checks.require(
    mask.dtype == bool and mask.shape == (len(table),),
    f"answered holds {mask.dtype} of shape {mask.shape}; pass one bool for "
    f"each of the {len(table)} queries",
  )
  return mask
