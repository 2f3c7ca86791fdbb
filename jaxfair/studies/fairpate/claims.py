"""What the FairPATE paper says about its frontier, and what is drawn."""

from collections.abc import Callable

import numpy as np

from jaxfair import experiments as ex
from jaxfair.experiments import _claims

PLACEMENTS = ("fair_dp_sgd", "fair_dp_sgd_inside")
TIGHTEST = _claims.or_missing(min)  # plain PATE has no margin


def derive(table: ex.Table) -> ex.Table:
  """Adds the margin's name, whether it was kept, and the share served.

  served is the share of all people who are answered correctly.
  """
  if "max_gap" not in table:
    return table
  margins = table["max_gap"]
  settings = zip(table["epsilon"], table["lam"], strict=True)
  return table.plus(
    margin=[f"margin {m:g}" if m == m else "no margin" for m in margins],
    room=margins - table["gap"],
    broken=table["raw_gap"] - margins,
    served=table["accuracy"] * table["coverage"],
    setting=[f"epsilon {epsilon:g} lam {lam:g}" for epsilon, lam in settings],
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


def _better(value: str, first: str, second: str, by: float = 0.0) -> _claims.Check:
  """Paired over seeds, one method exceeds another."""
  return ex.difference(value, {"method": first}, {"method": second}) > by


def _over_best(value: str, rival: str) -> _claims.Check:
  return _better(value, "fairpate", rival).of(best_lam(value, rival))


def _tight(check: _claims.Check) -> _claims.Check:
  return check.in_each("epsilon").at(max_gap=TIGHTEST)


def _placements(value: str, first: str, second: str) -> _claims.Check:
  check = _better(value, first, second).in_each("setting")
  return check.at(method=PLACEMENTS)


AFTER, INSIDE = PLACEMENTS
CLAIMS = {
  "accuracy over pre-processing: At the tightest margin and every epsilon, FairPATE's students are "
  "more accurate than PATE-S_pre's [RQ1, Fig. 2, Table 1]": _tight(
    _better("accuracy", "fairpate", "pate_s_pre")
  ),
  "coverage over pre-processing: At the tightest margin and every epsilon, FairPATE's students "
  "answer a larger share of people than PATE-S_pre's [RQ1, Fig. 2]": _tight(
    _better("coverage", "fairpate", "pate_s_pre")
  ),
  "labels over pre-processing: At the tightest margin and every epsilon, FairPATE gives more "
  "labels than PATE-S_pre, because a refusal before the argmax saves budget [RQ1, appendix "
  "A]": _tight(_better("answered", "fairpate", "pate_s_pre")),
  "accuracy over in-processing: At the tightest margin and every epsilon, FairPATE's students are "
  "more accurate than PATE-S_in's with the best lam [RQ1, Table 1]": _tight(
    _over_best("accuracy", "pate_s_in")
  ),
  "coverage over in-processing: At the tightest margin and every epsilon, FairPATE's students "
  "answer a larger share of people than PATE-S_in's with the lam of the largest coverage [RQ1, "
  "Table 1]": _tight(_over_best("coverage", "pate_s_in")),
  "the argmax over allowed classes: At the tightest margin and every epsilon, the argmax over the "
  "allowed classes gives more accurate students than the paper's rule": _tight(
    _better("accuracy", "fairpate_allowed", "fairpate")
  ),
  "FairPATE over FairDP-SGD: At the largest epsilon and tightest margin, FairPATE is more accurate "
  "than FairDP-SGD with the best lam [RQ2, Table 1]": _over_best("accuracy", AFTER).at(
    epsilon=max, max_gap=TIGHTEST
  ),
  "accuracy, after the noise or inside: At every epsilon and lam, FairDP-SGD with the penalty "
  "after the noise is more accurate than with it inside the clip, everybody answered": _placements(
    "raw_accuracy", AFTER, INSIDE
  ),
  "gap, after the noise or inside: At every epsilon and lam, FairDP-SGD with the penalty after the "
  "noise has a smaller gap than with it inside the clip, everybody answered": _placements(
    "raw_gap", INSIDE, AFTER
  ),
  "both, after the noise or inside: At the tightest margin and every epsilon, FairDP-SGD with the "
  "penalty after the noise answers more people correctly than with it inside the clip, each with "
  "its best lam": _tight(_better("served", AFTER, INSIDE).of(best_lam("served", *PLACEMENTS))).at(
    method=PLACEMENTS
  ),
  "abstention keeps the margin: With abstention the gap of those answered is below the margin, for "
  "every method [Section 3.3, Fig. 9]": (ex.mean("room") > 0)
  .in_each("method")
  .at(max_gap=ex.but(np.nan), method=ex.but("fairpate_calibrated")),
  "the student breaks it without: At the tightest margin PATE-S_pre's students, who learn from "
  "labels within it, break it when they answer everybody [Appendix D, Fig. 9]": _tight(
    (ex.mean("broken") > 0).at(method="pate_s_pre")
  ),
  "calibration narrows the gap: At the largest epsilon, calibration on public people narrows the "
  "gap of everybody [Appendix D.1, Fig. 10]": _better(
    "raw_gap", "fairpate", "fairpate_calibrated"
  ).at(epsilon=max),
  "calibration costs little: At the largest epsilon, calibration on public people costs less than "
  "2% of accuracy [Appendix D.1, Fig. 10]": _better(
    "raw_accuracy", "fairpate_calibrated", "fairpate", -0.02
  ).at(epsilon=max),
  "epsilon buys accuracy: FairPATE's accuracy rises with epsilon [Fig. 3]": (
    ex.trend("accuracy", "epsilon") > 0
  ).at(method="fairpate"),
  "a wider margin buys coverage: FairPATE's coverage rises with the margin [Fig. 3]": (
    ex.trend("coverage", "max_gap") > 0
  ).at(method="fairpate"),
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
