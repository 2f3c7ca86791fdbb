"""What the thesis says about sharing money by noisy counts, and what is drawn."""

from typing import Any

import numpy as np

from jaxfair import experiments as ex
from jaxfair.experiments import Claim, Figure

COUNTS, CLIPPED, TEMPERED = "noisy counts", "non-negative", "tempered"
PUBLIC, PRIVATE = "linear proxy, public total", "linear proxy, private total"
OUTPUTS = "output perturbation"
METHODS = (COUNTS, CLIPPED, TEMPERED, PUBLIC, PRIVATE, OUTPUTS)
BEST = "best"
SUMMARY = {"row": "summary"}
UNFAIR = SUMMARY | {"heat": ("", BEST), "method": (COUNTS, CLIPPED, TEMPERED, PRIVATE)}


def _at_most_noise(statistic: ex.Statistic) -> ex.Statistic:
  """Of the summaries at the smallest epsilon."""
  return statistic.at(epsilon=min, **SUMMARY)


def _difference(value: str, first: str, second: str) -> ex.Check:
  pair = ({"method": first}, {"method": second})
  return _at_most_noise(ex.difference(value, *pair)) > 0


def _ratio(value: str, first: str, second: str) -> ex.Statistic:
  """The largest ratio of two methods' means, over epsilons."""

  def largest(table: ex.Table) -> float:
    ratios = [
      float(np.mean(a) / np.mean(b))
      for _, part in table.split("epsilon")
      if len(a := part.where(method=first)[value]) and len(b := part.where(method=second)[value])
    ]
    return max(ratios, default=np.nan)

  told = f"largest {value} of {first} over {second}"
  return ex.exact(told, largest).at(heat=("", BEST), **SUMMARY)


def _told_from_0(method: str) -> ex.Statistic:
  """The largest lower end of alpha's interval."""
  told = f"alpha of {method}: what is told apart from 0"
  largest = ex.exact(told, lambda table: table["alpha_low"].max())
  return largest.at(method=method, **SUMMARY)


def _least_fall(table: ex.Table) -> float:
  """The least ratio of alphas of neighbouring epsilons."""
  means = {key[0]: float(part["alpha"].mean()) for key, part in table.split("epsilon")}
  if len(means) < 2:
    raise ex.CannotTellError("fewer than two epsilons")
  ordered = np.array([means[epsilon] for epsilon in sorted(means)])
  return float((ordered[:-1] / ordered[1:]).min())


def _cooler(heat: str) -> ex.Statistic:
  """How much fairer the best temperature is than another one."""
  other = {"method": CLIPPED} if heat == "" else {"method": TEMPERED, "heat": heat}
  return ex.difference("alpha", other, {"method": TEMPERED, "heat": BEST})


def _hottest(table: ex.Table) -> dict[str, ex.Check]:
  heats = [heat for heat in table.unique("heat") if heat not in ("", BEST)]
  if not heats:
    raise ex.CannotTellError("no other temperature was run")
  top = max(heats, key=float)
  return {top: _at_most_noise(_cooler(top)) > 0}


FALL = ex.exact("least ratio of alphas of neighbouring epsilons", _least_fall)
GAIN = ex.mean("small_minus_large")
SLOPE = ex.mean("predicted_slope").at(epsilon=max, **SUMMARY, method=COUNTS)

CLAIMS = (
  Claim(
    "small gain",
    "With non-negative counts small districts gain and large ones lose",
    (_at_most_noise(GAIN) > 0).at(method=CLIPPED),
    "Fig. 2.2",
  ),
  Claim(
    "small lose",
    "Without post-processing it is the other way round: by its curvature large districts gain",
    (_at_most_noise(GAIN) < 0).at(method=COUNTS),
  ),
  Claim("epsilon", "Less privacy is fairer", (FALL > 1).at(method=CLIPPED, **SUMMARY), "Fig. 2.2"),
  Claim(
    "second order",
    "The second-order bias is the simulated one, to 2%",
    SLOPE.between(0.98, 1.02),
    "Section 2.6.1",
  ),
  Claim(
    "proxy fair",
    "The linear proxy with a public total is fair",
    _told_from_0(PUBLIC) < 1e-12,  # rounding in float64 is not unfairness
    "Fig. 2.5",
  ),
  Claim(
    "proxy nearly fair",
    "With a private total the linear proxy is fairer than noisy counts",
    _difference("alpha", COUNTS, PRIVATE),
    "Fig. 2.5",
  ),
  Claim("outputs fair", "Output perturbation is fair", _told_from_0(OUTPUTS) < 1e-12, "Fig. 2.5"),
  Claim(
    "outputs err",
    "Output perturbation errs more than noisy counts",
    _difference("mean_error", OUTPUTS, COUNTS),
    "Fig. 2.5",
  ),
  Claim(
    "proxy errs alike",
    "The linear proxy with a public total errs as noisy counts do, within 10%",
    _ratio("mean_error", PUBLIC, COUNTS) < 1.1,
    "Fig. 2.5",
  ),
  Claim(
    "private proxy errs alike",
    "The linear proxy with a private total errs as noisy counts do, within 10%",
    _ratio("mean_error", PRIVATE, COUNTS) < 1.1,
    "Fig. 2.5",
  ),
  Claim(
    "tempering",
    "At the temperature that is best for counts the allotment is fairer, whatever epsilon",
    (_cooler("").at(**SUMMARY) > 0).in_each("epsilon"),
    "Fig. 2.7",
  ),
  Claim(
    "tempering is free",
    "and it errs as plain non-negativity does, within 10%",
    _ratio("mean_error", TEMPERED, CLIPPED) < 1.1,
    "Fig. 2.7",
  ),
  Claim("too hot", "Too much heat is less fair again", ex.every(_hottest, **SUMMARY), "Fig. 2.6"),
  Claim(
    "cost of clipping",
    "Non-negativity raises the cost of privacy",
    _difference("cost", CLIPPED, COUNTS),
    "Fig. 2.8",
  ),
  Claim(
    "cost of the proxy",
    "The linear proxy with a private total lowers it",
    _difference("cost", COUNTS, PRIVATE),
    "Fig. 2.8",
  ),
)


def _points(name: str, title: str, y: str, y_title: str, caption: str, **where: Any) -> Figure:
  return Figure(
    name,
    title,
    "district_size",
    y,
    "point",
    "method",
    "epsilon",
    caption,
    "children in district",
    y_title,
    log_x=True,
    where={"row": "district", **where},
    reference=0.0,
  )


FIGURES = (
  _points(
    "bias_by_size",
    "Who gains and who loses, by size",
    "gain",
    "expected dollars a year",
    "Each point a district. Above 0 the noise pays on average, below it takes (Fig. 2.2).",
    method=(COUNTS, CLIPPED),
  ),
  _points(
    "shape",
    "The same, relative to the largest gain or loss",
    "relative_gain",
    "gain / largest",
    "Clipping pays small districts, curvature large ones, and tempering turns clipping around.",
    method=(COUNTS, CLIPPED, TEMPERED),
    heat=("", BEST),
  ),
  Figure(
    "alpha",
    "Unfairness by method",
    "epsilon",
    "alpha",
    "line",
    "method",
    log_x=True,
    log_y=True,
    where=UNFAIR,
    caption="Largest minus smallest bias, as a share of the money (Figs 2.5, 2.7). The other "
    "methods have none but rounding errors.",
  ),
  Figure(
    "error",
    "Mean absolute error by method",
    "epsilon",
    "mean_error",
    "line",
    "method",
    log_x=True,
    log_y=True,
    y_title="dollars a year",
    where=SUMMARY | {"heat": ("", BEST)},
    caption="What a district's money is off by in a single release.",
  ),
  Figure(
    "temperature",
    "What tempering does to small and large districts",
    "children",
    "bin_misallocated",
    "line",
    "heat",
    "epsilon",
    log_x=True,
    log_y=True,
    y_title="dollars a year",
    where={"row": "bin", "method": (CLIPPED, TEMPERED)},
    caption="Mean |bias| by size (Fig. 2.6). No heat is plain non-negativity; numbers are in "
    "(noise scale)^2.",
  ),
  Figure(
    "cost",
    "Cost of privacy",
    "method",
    "cost",
    facet="epsilon",
    log_y=True,
    y_title="dollars a year",
    where=UNFAIR,
    caption="What must be added so that nobody loses on average (Fig. 2.8). The other methods "
    "cost nothing.",
  ),
)
