"""Lower bounds on epsilon from attack scores, with a stated confidence.

An attack gives every run of a mechanism one number. If the mechanism is
(epsilon, delta)-DP, then for every set of scores S

  Pr[S | with] <= e^epsilon Pr[S | without] + delta,   and the reverse.

Counting how often the scores of each neighbor fall into S bounds both
probabilities, and so epsilon from below. S is chosen on one part of the runs
and counted on the rest, so the confidence holds however it was chosen.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.accounting import _gaussian
from jaxfair.types import Number, PerPersonLike

Method = Literal["threshold", "gaussian"]
MIN_RUNS = 8


class EpsilonBound(NamedTuple):
  """What an audit showed: epsilon is at least this much.

  Attributes:
    epsilon: the lower bound; 0 says nothing.
    delta: the delta it goes with.
    confidence: probability with which the procedure gives a true bound.
    method: "threshold" assumes nothing; "gaussian" a Gaussian trade-off curve.
    num_runs: runs of each neighbor, those that chose the attack included.
    threshold: the score that separates the two guesses.
  """

  epsilon: float
  delta: float
  confidence: float
  method: Method
  num_runs: int
  threshold: float


def epsilon_lower_bound(
  scores_without: PerPersonLike,
  scores_with: PerPersonLike,
  *,
  delta: float,
  confidence: float = 0.95,
  method: Method = "threshold",
  selection: float = 0.5,
) -> EpsilonBound:
  """Bounds epsilon from below by the scores of an attack on two neighbors.

  epsilon >= log((Pr[S | one] - delta) / Pr[S | other])            (threshold)
  mu >= Phi^-1(Pr[S | one]) - Phi^-1(Pr[S | other])                 (gaussian)

  S is "above t" or "below t", for either order of the neighbors. The first
  part of the runs chooses; on the others both probabilities are replaced by
  the pessimistic ends of exact (Clopper-Pearson) intervals, each of which
  fails with probability (1 - confidence) / 2.

  Args:
    scores_without: [n] scores of independent runs on one neighbor.
    scores_with: [m] scores of independent runs on the other. Infinite scores
      are allowed, NaN is not.
    delta: delta of the claim that is audited; fixed before looking at the scores.
    confidence: confidence level of the bound.
    method: which assumption; see below.
    selection: share of the runs that choose S.

  Returns:
    The bound.

  Assumptions:
    "threshold" assumes independent runs and nothing else: if the bound exceeds
    a claimed epsilon, the hypothesis "these runs come from an (epsilon,
    delta)-DP mechanism" is rejected at level 1 - confidence.
    "gaussian" rejects another hypothesis: that the two neighbors are mu-GDP,
    i.e. that *every* test of one against the other with false positive rate a
    misses with probability at least Phi(Phi^-1(1 - a) - mu), for some mu below
    the bound found. The epsilon is that of mu at delta. It refutes a claim of
    mu-GDP (the Gaussian mechanism, DP-SGD on full batches, compositions of
    those). It does not refute a claim of (epsilon, delta)-DP alone, nor one
    for sampled batches, whose trade-off curves are not Gaussian.

  Reference:
    Clopper & Pearson (1934); Jagielski, Ullman & Oprea (2020) for thresholds;
    Nasr et al. (2023) for Gaussian trade-off curves.
  """
  check_bound(delta, confidence, method)
  checks.number("selection", selection, low=0.0, high=1.0, open_low=True, open_high=True)
  without = _scores("scores_without", scores_without)
  present = _scores("scores_with", scores_with)
  cuts = [math.ceil(selection * len(s)) for s in (without, present)]
  alpha = (1 - confidence) / 2
  value = _VALUES[method]
  rest = _Runs(without[cuts[0] :], present[cuts[1] :])
  chosen_on = _Runs(without[: cuts[0]], present[: cuts[1]])
  test = _choose(chosen_on, delta, alpha, value)
  low, high = _ends(test, rest, alpha)
  found = max(0.0, float(value(low, high, delta)))
  epsilon = _gaussian_epsilon(found, delta) if method == "gaussian" else found
  return EpsilonBound(
    epsilon, delta, confidence, method, min(len(without), len(present)), test.threshold
  )


def check_bound(delta: float, confidence: float, method: str) -> None:
  """Raises for impossible settings of a bound, before any run."""
  checks.one_of("method", method, _VALUES)
  checks.number(
    "delta",
    delta,
    low=0.0,
    high=1.0,
    open_low=method == "gaussian",
    open_high=True,
    remedy="pass the delta of the claim that is audited",
  )
  checks.number("confidence", confidence, low=0.0, high=1.0, open_low=True, open_high=True)


def clopper_pearson_low(count: Number, total: Number, alpha: float) -> np.ndarray:
  """A lower bound on a probability; too high with chance at most alpha."""
  count = np.asarray(count, float)
  found = special.betaincinv(np.maximum(count, 1e-9), total - count + 1, alpha)
  return np.where(count > 0, found, 0.0)


def clopper_pearson_high(count: Number, total: Number, alpha: float) -> np.ndarray:
  """An upper bound on a probability; too low with chance at most alpha."""
  missed = np.asarray(total - count, float)
  found = special.betainccinv(count + 1.0, np.maximum(missed, 1e-9), alpha)
  return np.where(missed > 0, found, 1.0)


class _Runs(NamedTuple):
  """Scores of both neighbors."""

  without: np.ndarray
  present: np.ndarray


class _Test(NamedTuple):
  """S, and which neighbor it is likelier under.

  Attributes:
    threshold: t.
    above: S is {score > t}, else {score <= t}.
    present_first: S is likelier with the person, else without.
  """

  threshold: float
  above: bool
  present_first: bool


def _choose(runs: _Runs, delta: float, alpha: float, value: Callable[..., np.ndarray]) -> _Test:
  """The test whose bound is surely large, not the one that was lucky.

  Every candidate is given the bound that it would have if all candidates had
  to hold at once. An extreme threshold that few runs speak for loses.
  """
  thresholds = _candidates(runs)
  level = alpha / (4 * len(thresholds))
  totals = [len(scores) for scores in runs]
  counts = [
    total - np.searchsorted(np.sort(scores), thresholds, side="right")
    for scores, total in zip(runs, totals, strict=True)
  ]
  best, found = -math.inf, _Test(float(thresholds[0]), True, True)
  for above in (True, False):
    for one in (1, 0):
      low, high = (
        end(counts[i] if above else totals[i] - counts[i], totals[i], level)
        for end, i in ((clopper_pearson_low, one), (clopper_pearson_high, 1 - one))
      )
      promised = value(low, high, delta)
      at = int(np.argmax(promised))
      if promised[at] > best:
        best = float(promised[at])
        found = _Test(float(thresholds[at]), above, one == 1)
  return found


def _candidates(runs: _Runs) -> np.ndarray:
  """Thresholds between scores: dense in both tails, where epsilon shows."""
  pooled = np.unique(np.concatenate(runs))
  if len(pooled) == 1:
    return pooled
  # Half way, so that a gap between the neighbors stays a gap in new runs.
  finite = np.clip(pooled, -1e300, 1e300)
  between = (finite[:-1] + finite[1:]) / 2
  tail = np.unique(np.geomspace(1, len(between), 400).astype(int)) - 1
  return between[np.union1d(tail, len(between) - 1 - tail)]


def _ends(test: _Test, runs: _Runs, alpha: float) -> tuple[Any, Any]:
  """Lower end for the likelier neighbor, upper end for the other one."""
  counts = []
  for scores in runs:
    above = int(np.sum(scores > test.threshold))
    counts.append(above if test.above else len(scores) - above)
  one, other = (1, 0) if test.present_first else (0, 1)
  return (
    clopper_pearson_low(counts[one], len(runs[one]), alpha),
    clopper_pearson_high(counts[other], len(runs[other]), alpha),
  )


def _log_ratio(low: Number, high: Number, delta: float) -> np.ndarray:
  with np.errstate(divide="ignore"):
    return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def _separation(low: Number, high: Number, delta: float) -> np.ndarray:
  """mu of a Gaussian trade-off curve through this point."""
  del delta
  found = special.ndtri(low) - special.ndtri(high)
  # 0 against 1 gives infinity minus infinity: nothing was learned.
  return np.where(np.isfinite(found), found, -np.inf)


_VALUES = {"threshold": _log_ratio, "gaussian": _separation}


def _gaussian_epsilon(mu: float, delta: float) -> float:
  if mu == 0:
    return 0.0
  found = _gaussian.gaussian_epsilon(sigma=1 / mu, delta=delta)
  return found * (1 - 1e-8)  # that one rounds up, a lower bound rounds down


def _scores(name: str, values: PerPersonLike) -> np.ndarray:
  scores = np.asarray(values, dtype=np.float64)
  checks.require(scores.ndim == 1, f"{name} has shape {scores.shape}; pass one score per run")
  checks.require(
    len(scores) >= MIN_RUNS,
    f"{name} holds {len(scores)} runs; an audit needs at least {MIN_RUNS}, and thousands for a "
    "useful bound",
  )
  checks.require(
    not np.isnan(scores).any(),
    f"{name} has {int(np.isnan(scores).sum())} NaN scores; give such runs a meaningful score, "
    "such as infinity",
  )
  return scores
