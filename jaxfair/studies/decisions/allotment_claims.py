"""What the thesis says about allotments and rules, as checks on a table."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxfair.experiments.table import Table
from jaxfair.studies.claims import Check, difference_above, mean_above
from jaxfair.studies.protocol import Claim, Finding

SUMMARY = {"row": "summary"}


def at_least_epsilon(make: Callable[[Mapping[str, Any]], Check]) -> Check:
  """The check at the smallest epsilon of the table: the most noise."""

  def check(table: Table) -> Finding:
    least = float(np.nanmin(table["epsilon"]))
    return make(SUMMARY | {"epsilon": least})(table)

  return check


def _difference(value: str, first: str, second: str, **more: Any) -> Check:
  return at_least_epsilon(
    lambda where: difference_above(
      value,
      first={**where, "method": first, **more},
      second={**where, "method": second},
    )
  )


def _ratio_below(value: str, first: str, second: str, most: float) -> Check:
  """At every epsilon the ratio of means stays below a bound."""

  def check(table: Table) -> Finding:
    statistic = f"largest {value} of {first} over {second}"
    rows = table.where(**SUMMARY, heat=("", "best"))
    ratios = []
    for _, part in rows.split("epsilon"):
      a = part.where(method=first)[value]
      b = part.where(method=second)[value]
      if len(a) and len(b):
        ratios.append(float(np.mean(a) / np.mean(b)))
    if not ratios:
      return Finding(statistic, why="the methods were not run")
    top = max(ratios)
    return Finding(statistic, top, min(ratios), top, top < most)

  return check


def _not_told_from_0(method: str) -> Check:
  def check(table: Table) -> Finding:
    statistic = f"alpha of {method}: what is told apart from 0"
    rows = table.where(**SUMMARY, method=method)
    if not len(rows):
      return Finding(statistic, why=f"{method} was not run")
    # Rounding in float64 is not unfairness.
    top, high = float(rows["alpha_low"].max()), float(rows["alpha_high"].max())
    return Finding(statistic, top, 0.0, high, top < 1e-12)

  return check


def _falls(table: Table) -> Finding:
  """Alpha falls as epsilon grows."""
  statistic = "least ratio of alphas of neighbouring epsilons"
  rows = table.where(**SUMMARY, method="non-negative")
  means = {
    key[0]: float(part["alpha"].mean()) for key, part in rows.split("epsilon")
  }
  if len(means) < 2:
    return Finding(statistic, why="fewer than two epsilons")
  ordered = np.array([means[e] for e in sorted(means)])
  ratios = ordered[:-1] / ordered[1:]
  return Finding(
    statistic, float(ratios.min()), float(ratios.min()), float(ratios.max()),
    bool(ratios.min() > 1),
  )  # fmt: skip


def _slope(table: Table) -> Finding:
  """The second-order bias is the simulated one where noise is small."""
  most = float(np.nanmax(table["epsilon"]))
  statistic = "simulated over second-order bias at the largest epsilon"
  if "predicted_slope" not in table:
    return Finding(statistic, why="noisy counts were not run")
  rows = table.where(**SUMMARY, epsilon=most, method="noisy counts")
  found = mean_above("predicted_slope", 0.0)(rows)
  if found.holds is None:
    return found
  return Finding(
    statistic, found.value, found.low, found.high,
    bool(found.low > 0.98 and found.high < 1.02),
  )  # fmt: skip


def _tempering(table: Table) -> Finding:
  """At every epsilon: the worst of them is told."""
  found = []
  for epsilon in table.unique("epsilon"):
    where = SUMMARY | {"epsilon": epsilon}
    check = difference_above(
      "alpha",
      first=where | {"method": "non-negative"},
      second=where | {"method": "tempered", "heat": "best"},
    )
    found.append(check(table))
  known = [one for one in found if one.holds is not None]
  return min(known, key=lambda one: one.low) if known else found[0]


def _hottest(table: Table) -> Finding:
  """Too much heat is less fair than the best."""
  heats = [h for h in table.unique("heat") if h not in ("", "best")]
  if not heats:
    return Finding("alpha of the hottest", why="no other temperature was run")
  top = max(heats, key=float)
  return at_least_epsilon(
    lambda where: difference_above(
      "alpha",
      first={**where, "method": "tempered", "heat": top},
      second={**where, "method": "tempered", "heat": "best"},
    )
  )(table)


ALLOTMENTS = (
  Claim(
    "small gain",
    "With non-negative counts small districts gain and large ones lose",
    at_least_epsilon(
      lambda where: mean_above(
        "small_minus_large", where={**where, "method": "non-negative"}
      )
    ),
    "Fig. 2.2",
  ),
  Claim(
    "small lose",
    "Without post-processing it is the other way round: by its curvature "
    "large districts gain",
    at_least_epsilon(
      lambda where: _negative(
        "small_minus_large", {**where, "method": "noisy counts"}
      )
    ),
  ),
  Claim("epsilon", "Less privacy is fairer", _falls, "Fig. 2.2"),
  Claim(
    "second order",
    "The second-order bias is the simulated one, to 2%",
    _slope,
    "Section 2.6.1",
  ),
  Claim(
    "proxy fair",
    "The linear proxy with a public total is fair",
    _not_told_from_0("linear proxy, public total"),
    "Fig. 2.5",
  ),
  Claim(
    "proxy nearly fair",
    "With a private total the linear proxy is fairer than noisy counts",
    _difference("alpha", "noisy counts", "linear proxy, private total"),
    "Fig. 2.5",
  ),
  Claim(
    "outputs fair",
    "Output perturbation is fair",
    _not_told_from_0("output perturbation"),
    "Fig. 2.5",
  ),
  Claim(
    "outputs err",
    "Output perturbation errs more than noisy counts",
    _difference("mean_error", "output perturbation", "noisy counts"),
    "Fig. 2.5",
  ),
  Claim(
    "proxy errs alike",
    "The linear proxy with a public total errs as noisy counts do, within 10%",
    _ratio_below(
      "mean_error", "linear proxy, public total", "noisy counts", 1.1
    ),
    "Fig. 2.5",
  ),
  Claim(
    "private proxy errs alike",
    "The linear proxy with a private total errs as noisy counts do, within 10%",
    _ratio_below(
      "mean_error", "linear proxy, private total", "noisy counts", 1.1
    ),
    "Fig. 2.5",
  ),
  Claim(
    "tempering",
    "At the temperature that is best for counts the allotment is fairer, "
    "whatever epsilon",
    _tempering,
    "Fig. 2.7",
  ),
  Claim(
    "tempering is free",
    "and it errs as plain non-negativity does, within 10%",
    _ratio_below("mean_error", "tempered", "non-negative", 1.1),
    "Fig. 2.7",
  ),
  Claim("too hot", "Too much heat is less fair again", _hottest, "Fig. 2.6"),
  Claim(
    "cost of clipping",
    "Non-negativity raises the cost of privacy",
    _difference("cost", "non-negative", "noisy counts"),
    "Fig. 2.8",
  ),
  Claim(
    "cost of the proxy",
    "The linear proxy with a private total lowers it",
    _difference("cost", "noisy counts", "linear proxy, private total"),
    "Fig. 2.8",
  ),
)


def _negative(value: str, where: Mapping[str, Any]) -> Check:
  """The mean over seeds is below 0: its 95% interval is."""

  def check(table: Table) -> Finding:
    found = mean_above(value, where=where)(table)
    if found.holds is None:
      return found
    return Finding(
      found.statistic, found.value, found.low, found.high, found.high < 0
    )

  return check
