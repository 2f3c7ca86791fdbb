"""What the FairPATE paper says about its frontier, and what is drawn.

Claims with a place test the paper at its own charge, whose epsilon is no guarantee; the same with
sound charges is ours. "Similar" is read as less than two points apart.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxfair import experiments as ex
from jaxfair import frontier
from jaxfair.experiments import _claims
from jaxfair.experiments._frontiers import Comparison, compare_points, settings_cube
from jaxfair.fairness import _intervals
from jaxfair.studies.fairpate.charging import PAPER, SOUND
from jaxfair.studies.fairpate.common import METHODS

PLACEMENTS = AFTER, INSIDE = "fair_dp_sgd", "fair_dp_sgd_inside"
TIGHTEST, WIDEST = _claims.or_missing(min), _claims.or_missing(max)  # some have no margin
ALIKE, LITTLE = 0.9, 0.02  # a correlation; a loss of two points of accuracy


def derive(table: ex.Table) -> ex.Table:
  """Adds the margin's name, whether it was kept, and the share served.

  served is the share of all people who are answered correctly.
  """
  if "max_gap" not in table:
    return table
  margins = table["max_gap"]
  return table.plus(
    margin=[f"margin {m:g}" if m == m else "no margin" for m in margins],
    room=margins - table["gap"],
    broken=table["raw_gap"] - margins,
    narrowed=table["raw_gap"] - table["gap"],
    kept=table["accuracy"] - table["raw_accuracy"],
    served=table["accuracy"] * table["coverage"],
    setting="epsilon {epsilon:g} lam {lam:g}",
    region="epsilon {epsilon:g} margin {max_gap:g}",
  )


def best_lam(value: str, *methods: str) -> Callable[[ex.Table], ex.Table]:
  """For `of`: of these methods only the lam with the largest mean.

  It is chosen on the rows that are judged, which favors the methods.
  """

  def chosen(table: ex.Table) -> ex.Table:
    for method in methods:
      own = _claims.narrowed(table, {"method": method})
      means = {lam: float(np.nanmean(part[value])) for (lam,), part in own.split("lam")}
      best = max(means, key=lambda lam: means[lam])
      table = table.keep((table["method"] != method) | (table["lam"] == best))
    return table

  return chosen


def _rows(method: str, charge: str) -> dict[str, Any]:
  return {"method": method, "charge": charge if METHODS[method].voted else SOUND}


def _over(
  value: str, rival: str, charge: str = PAPER, first: str = "fairpate"
) -> _claims.Statistic:
  """FairPATE minus a rival, paired over seeds."""
  return ex.difference(value, _rows(first, charge), _rows(rival, charge))


def _best(check: _claims.Check, value: str, *rivals: str) -> _claims.Check:
  """The check with each rival's best lam, of the paper's charge where there are two."""
  drop = {name for name in rivals if METHODS[name].voted}

  def one_charge(table: ex.Table) -> ex.Table:
    voted = np.isin(table["method"], list(drop)) & (table["charge"] != PAPER)
    return best_lam(value, *rivals)(table.keep(~voted))

  return check.of(one_charge)


def _high(epsilons: Sequence[float]) -> tuple[float, ...]:
  return tuple(epsilon for epsilon in epsilons if epsilon >= np.median(epsilons))


def _tight(check: _claims.Check) -> _claims.Check:
  return check.at(epsilon=_high, max_gap=TIGHTEST)


def _similar(difference: _claims.Statistic) -> _claims.Check:
  return difference.between(-LITTLE, LITTLE)


def _placements(value: str, first: str, second: str) -> _claims.Check:
  both = ex.difference(value, {"method": first}, {"method": second}) > 0
  return both.in_each("setting").at(method=PLACEMENTS)


def _of_two_sets(
  told: str, pick: Callable[[Comparison], _intervals.Interval | None]
) -> _claims.Statistic:
  """A statistic of FairPATE's frontiers on the two data sets of a run."""

  def estimate(table: ex.Table, level: float) -> _claims.Estimate:
    if level != _claims.LEVEL:
      raise _claims.CannotTellError("frontiers are compared at 95% only")
    sets, rows = table.unique("data"), table.where(method="fairpate", charge=PAPER)
    if len(sets) < 2:
      raise _claims.CannotTellError("the run is about one data set")
    points, settings = [], []
    for name in sets:
      places, cube = settings_cube(rows.where(data=name), ("epsilon", "max_gap"))
      own = frontier.points(cube, missing="drop")
      if not len(own.rows) or own.values.shape[1] < 2:
        raise _claims.CannotTellError(f"too few seeds or settings of {name}")
      points.append(own)
      settings.append([tuple(places[i].items()) for i in own.rows])
    found = pick(compare_points(*points, *settings))
    if found is None:
      raise _claims.CannotTellError("the sets have no settings in common")
    value, low, high = map(float, (found.estimate, found.low, found.high))
    if not np.isfinite([value, low, high]).all():
      raise _claims.CannotTellError("the sets have no limits in common")
    return _claims.Estimate(f"{told}, {sets[0]} and {sets[1]}", value, low, high)

  return _claims.Statistic(estimate)


CORRELATION = _of_two_sets(
  "correlation of the surfaces of best accuracy", lambda found: found.shapes.correlation
)
REGRET = _of_two_sets(
  "accuracy that settings chosen on the first give away on the second",
  lambda found: found.transfer and found.transfer.regret,
)
PRE, IN = "pate_s_pre", "pate_s_in"
VOTED = {"method": "fairpate", "charge": PAPER}
HIGH_LOW = "Over the larger half of the epsilons, at the tightest margin,"
LOOSE = "At the largest epsilon and the widest margin"
CLAIMS = {
  f"accuracy over pre-processing: {HIGH_LOW} FairPATE's students are more accurate than "
  "PATE-S_pre's [Fig. 2]": _tight(_over("accuracy", PRE) > 0),
  "similar elsewhere: At the widest margin and every epsilon FairPATE's and PATE-S_pre's students "
  "are less than two points of accuracy apart [Fig. 2, other regions]": _similar(
    _over("accuracy", PRE)
  )
  .in_each("epsilon")
  .at(method=("fairpate", PRE), max_gap=max),
  f"similar where loose: {LOOSE} FairPATE's and PATE-S_pre's students are less than two points of "
  "accuracy apart [RQ1, loose constraint]": _similar(_over("accuracy", PRE)).at(
    epsilon=max, max_gap=max
  ),
  "labels over pre-processing: At the tightest margin and some epsilon FairPATE gives more labels "
  "than PATE-S_pre [RQ1, saved budget]": (
    (_over("answered", PRE) > 0).in_some("epsilon").at(method=("fairpate", PRE), max_gap=min)
  ),
  "coverage over pre-processing: At the tightest margin and most epsilons FairPATE's students "
  "answer a larger share of people than PATE-S_pre's [RQ1, coverage]": (
    (_over("coverage", PRE) > 0).in_most("epsilon").at(method=("fairpate", PRE), max_gap=min)
  ),
  "most regions, pre-processing: In most settings of epsilon and margin FairPATE's students are "
  "more accurate than PATE-S_pre's [RQ1, most regions]": (
    (_over("accuracy", PRE) > 0).in_most("region").at(method=("fairpate", PRE))
  ),
  "most regions, in-processing: In most settings of epsilon and margin FairPATE's students are "
  "more accurate than PATE-S_in's with the best lam [RQ1, most regions]": (
    _best(_over("accuracy", IN) > 0, "accuracy", IN).in_most("region").at(method=("fairpate", IN))
  ),
  "some region: In some setting of epsilon and margin FairPATE's students are more accurate than "
  "PATE-S_pre's [Section 1, up to 5%]": (
    (_over("accuracy", PRE) > 0).in_some("region").at(method=("fairpate", PRE))
  ),
  f"coverage of pre-processing: {HIGH_LOW} PATE-S_pre's students answer a larger share of people "
  "than FairPATE's [Table 1, coverage]": _tight(_over("coverage", PRE) < 0),
  f"accuracy over in-processing: {HIGH_LOW} FairPATE's students are more accurate than "
  "PATE-S_in's with the best lam [RQ1, PATE-S_in]": _tight(
    _best(_over("accuracy", IN) > 0, "accuracy", IN)
  ),
  f"coverage over in-processing: {HIGH_LOW} FairPATE's students answer a larger share of people "
  "than PATE-S_in's with the lam of the best accuracy [RQ1, PATE-S_in]": _tight(
    _best(_over("coverage", IN) > 0, "accuracy", IN)
  ),
  f"in-processing where loose: {LOOSE} FairPATE's and PATE-S_in's students are less than two "
  "points of accuracy apart [RQ1, PATE-S_in]": _best(
    _similar(_over("accuracy", IN)), "accuracy", IN
  ).at(epsilon=max, max_gap=max),
  f"fair, the most accurate: {HIGH_LOW} FairPATE is more accurate than FairDP-SGD, PATE-S_pre and "
  "PATE-S_in, each with its best lam [Table 1]": _tight(
    _claims.every(
      {
        rival: _best(_over("accuracy", rival) > 0, "accuracy", *lam)
        for rival, lam in ((INSIDE, (INSIDE,)), (PRE, ()), (IN, (IN,)))
      }
    )
  ),
  "private, FairDP-SGD: At the smallest epsilon and the widest margin FairDP-SGD with its best lam "
  "is more accurate than FairPATE [Table 1, private]": _best(
    _over("accuracy", INSIDE) < 0, "accuracy", INSIDE
  ).at(epsilon=min, max_gap=max),
  "FairPATE over FairDP-SGD: At the largest epsilon FairPATE is more accurate than FairDP-SGD with "
  "the best lam, over all margins [RQ2]": _best(
    _over("accuracy", INSIDE) > 0, "accuracy", INSIDE
  ).at(epsilon=max),
  "FairDP-SGD at low budgets: At the smallest epsilon FairPATE and FairDP-SGD with its best lam "
  "are less than two points of accuracy apart, over all margins [RQ2, low budgets]": _best(
    _similar(_over("accuracy", INSIDE)), "accuracy", INSIDE
  ).at(epsilon=min),
  **{
    f"{value} over FairDP-SGD, low violation: {HIGH_LOW} FairPATE has the higher {value}, with the "
    "lam of FairDP-SGD that is most accurate [RQ2, low violation]": _tight(
      _best(_over(value, INSIDE) > 0, "accuracy", INSIDE)
    )
    for value in ("accuracy", "coverage")
  },
  "same shape: FairPATE's frontiers of two data sets for one task have very similar shapes: their "
  f"surfaces correlate above {ALIKE} [Fig. 4; RQ3]": CORRELATION > ALIKE,
  "specified elsewhere: Settings of FairPATE can be specified on another data set of the kind: "
  f"they give away less than {LITTLE} of accuracy [RQ3]": REGRET < LITTLE,
  "epsilon buys accuracy: FairPATE's accuracy rises with epsilon [Fig. 3]": (
    ex.trend("accuracy", "epsilon") > 0
  ).at(**VOTED),
  "a wider margin buys coverage: FairPATE's coverage rises with the margin [Fig. 3, coverage]": (
    ex.trend("coverage", "max_gap") > 0
  ).at(**VOTED),
  f"post-processing narrows the gap: {HIGH_LOW} the gap of those whom FairPATE answers is below "
  "that of its student on everybody [Fig. 7]": _tight((ex.mean("narrowed") > 0).at(**VOTED)),
  f"post-processing keeps accuracy: {HIGH_LOW} FairDP-SGD loses less than a point of accuracy by "
  "abstaining [Fig. 8]": _tight((ex.mean("kept") > -0.01).at(method=INSIDE, lam=min)),
  "the penalty narrows the gap: Without abstention FairDP-SGD's gap falls as lam grows "
  "[Appendix B, penalty]": (ex.trend("raw_gap", "lam") < 0).at(method=INSIDE, epsilon=max),
  "the penalty costs accuracy: Without abstention FairDP-SGD's accuracy falls as lam grows "
  "[Appendix B, penalty]": (ex.trend("raw_accuracy", "lam") < 0).at(method=INSIDE, epsilon=max),
  "the student breaks it without: At the tightest margin and every epsilon PATE-S_pre's students, "
  "who learn from labels within it, break it when they answer everybody [Fig. 9]": (
    (ex.mean("broken") > 0).in_each("epsilon").at(**VOTED | {"method": PRE}, max_gap=min)
  ),
  "abstention keeps it: With abstention the gap of those answered is below the margin, for "
  "PATE-S_pre and every epsilon and margin [Fig. 9, post-processor]": (
    (ex.mean("room") > 0).in_each("region").at(**VOTED | {"method": PRE})
  ),
  "abstention keeps the margin: With abstention the mean gap of those answered is below the "
  "margin, for every method [Section 3.3]": (ex.mean("room") > 0)
  .in_each("method")
  .at(max_gap=ex.but(np.nan), method=ex.but("fairpate_calibrated")),
  "calibration narrows the gap: At the largest epsilon, calibration on public people narrows the "
  "gap of everybody [Fig. 10]": (_over("raw_gap", "fairpate_calibrated") > 0).at(epsilon=max),
  "calibration costs little: At the largest epsilon, calibration on public people costs less than "
  "2% of accuracy [Fig. 10]": (_over("raw_accuracy", "fairpate_calibrated") < 0.02).at(epsilon=max),
  f"sound, accuracy over pre-processing: {HIGH_LOW} with sound charges, FairPATE's students are "
  "more accurate than PATE-S_pre's": _tight(_over("accuracy", PRE, SOUND) > 0),
  f"sound, labels over pre-processing: {HIGH_LOW} with sound charges, FairPATE gives its students "
  "more labels than PATE-S_pre": _tight(_over("answered", PRE, SOUND) > 0),
  f"publishable, accuracy: {HIGH_LOW} PATE with scores, whose epsilon may be published, is at "
  "least as accurate as FairPATE at the paper's charge": _tight(
    _over("accuracy", "fair_soft_pate") < 0.01
  ),
  f"publishable, coverage: {HIGH_LOW} PATE with scores answers at least the share of people that "
  "FairPATE answers at the paper's charge": _tight(_over("coverage", "fair_soft_pate") < 0.01),
  "accuracy, after the noise or inside: At every epsilon and lam, FairDP-SGD with the penalty "
  "after the noise is more accurate than with it inside the clip, everybody answered": _placements(
    "raw_accuracy", AFTER, INSIDE
  ),
  "gap, after the noise or inside: At every epsilon and lam, FairDP-SGD with the penalty after the "
  "noise has a smaller gap than with it inside the clip, everybody answered": _placements(
    "raw_gap", INSIDE, AFTER
  ),
  f"both, after the noise or inside: {HIGH_LOW} FairDP-SGD with the penalty after the noise "
  "answers more people correctly than with it inside the clip, each with its best lam": _tight(
    _best(_over("served", INSIDE, first=AFTER) > 0, "served", *PLACEMENTS)
  ),
}

OVER_LAM = "Where a method has several weights lam, the mean over them."
PLACED = "FairDP-SGD with its penalty after the noise and inside the clip, everybody answered."
BROKEN = "Of everybody. Above the margin, the labels kept it and the student does not."
KEPT = "Of the people answered: below the margin, unless the cold start broke it."
FIGURES = (
  *(
    ex.lines(f"{y}: {title}", f"{y} ~ epsilon, method | margin", OVER_LAM, log="x", zero=y == "gap")
    for y, title in (
      ("accuracy", "Accuracy of the people answered"),
      ("coverage", "Share of people answered"),
      ("gap", "Disparity of the people answered"),
      ("raw_accuracy", "Accuracy without abstention"),
      ("raw_gap", "Disparity without abstention"),
    )
  ),
  *(
    ex.lines(
      f"{name}: Disparity over the margin, {how} abstention",
      f"{y} ~ max_gap, method | epsilon",
      told,
    )
    for name, how, y, told in (
      ("margin", "without", "raw_gap", BROKEN),
      ("margin_kept", "with", "gap", KEPT),
    )
  ),
  *(
    ex.lines(told, f"{y} ~ lam, method | epsilon", PLACED, where={"method": PLACEMENTS})
    for told, y in (
      ("lam_accuracy: Accuracy over the penalty", "raw_accuracy"),
      ("lam_gap: Disparity over the penalty", "raw_gap"),
    )
  ),
)
