"""What the FairPATE paper says about its frontier, and what is drawn."""

from collections.abc import Callable

import numpy as np

from jaxfair import experiments as ex
from jaxfair.experiments import Claim
from jaxfair.studies.fairpate.common import lines

PLACEMENTS = ("fair_dp_sgd", "fair_dp_sgd_inside")
TIGHTEST = ex.or_missing(min)  # plain PATE has no margin


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
      own = ex.narrowed(table, {"method": method})
      means = {lam: float(np.nanmean(part[value])) for (lam,), part in own.split("lam")}
      best = max(means, key=lambda lam: means[lam])
      table = table.keep((table["method"] != method) | (table["lam"] == best))
    return table

  return chosen


def _better(value: str, first: str, second: str, by: float = 0.0) -> ex.Check:
  """Paired over seeds, one method exceeds another."""
  return ex.difference(value, {"method": first}, {"method": second}) > by


def _over_best(value: str, rival: str) -> ex.Check:
  return _better(value, "fairpate", rival).of(best_lam(value, rival))


def _tight(check: ex.Check) -> ex.Check:
  return check.in_each("epsilon").at(max_gap=TIGHTEST)


def _placements(value: str, first: str, second: str) -> ex.Check:
  check = _better(value, first, second).in_each("setting")
  return check.at(method=PLACEMENTS)


AFTER, INSIDE = PLACEMENTS
CLAIMS = (
  Claim(
    "accuracy over pre-processing",
    "At the tightest margin and every epsilon, FairPATE's students are more accurate than "
    "PATE-S_pre's",
    _tight(_better("accuracy", "fairpate", "pate_s_pre")),
    "RQ1, Fig. 2, Table 1",
  ),
  Claim(
    "coverage over pre-processing",
    "and answer a larger share of people",
    _tight(_better("coverage", "fairpate", "pate_s_pre")),
    "RQ1, Fig. 2",
  ),
  Claim(
    "labels over pre-processing",
    "because refusing before the argmax is paid for saves budget for more labels",
    _tight(_better("answered", "fairpate", "pate_s_pre")),
    "RQ1, appendix A",
  ),
  Claim(
    "accuracy over in-processing",
    "At the tightest margin and every epsilon, FairPATE's students are more accurate than "
    "PATE-S_in's with the best lam",
    _tight(_over_best("accuracy", "pate_s_in")),
    "RQ1, Table 1",
  ),
  Claim(
    "coverage over in-processing",
    "and answer a larger share of people than PATE-S_in's with the lam of the largest coverage",
    _tight(_over_best("coverage", "pate_s_in")),
    "RQ1, Table 1",
  ),
  Claim(
    "the argmax over allowed classes",
    "At the tightest margin and every epsilon, the argmax over the allowed classes gives more "
    "accurate students than the paper's rule",
    _tight(_better("accuracy", "fairpate_allowed", "fairpate")),
  ),
  Claim(
    "FairPATE over FairDP-SGD",
    "At the largest epsilon and tightest margin, FairPATE is more accurate than FairDP-SGD with "
    "the best lam",
    _over_best("accuracy", AFTER).at(epsilon=max, max_gap=TIGHTEST),
    "RQ2, Table 1",
  ),
  Claim(
    "accuracy, after the noise or inside",
    "At every epsilon and lam, FairDP-SGD with the penalty after the noise is more accurate "
    "than with it inside the clip, everybody answered",
    _placements("raw_accuracy", AFTER, INSIDE),
  ),
  Claim(
    "gap, after the noise or inside",
    "and its gap is smaller",
    _placements("raw_gap", INSIDE, AFTER),
  ),
  Claim(
    "both, after the noise or inside",
    "At the tightest margin and every epsilon it answers more people correctly, each with the "
    "lam that answers most",
    _tight(_better("served", AFTER, INSIDE).of(best_lam("served", *PLACEMENTS))).at(
      method=PLACEMENTS
    ),
  ),
  Claim(
    "abstention keeps the margin",
    "With abstention the gap of those answered is below the margin, for every method",
    (ex.mean("room") > 0)
    .in_each("method")
    .at(max_gap=ex.but(np.nan), method=ex.but("fairpate_calibrated")),
    "Section 3.3, Fig. 9",
  ),
  Claim(
    "the student breaks it without",
    "At the tightest margin PATE-S_pre's students, who learn from labels within it, break it "
    "when they answer everybody",
    _tight((ex.mean("broken") > 0).at(method="pate_s_pre")),
    "Appendix D, Fig. 9",
  ),
  Claim(
    "calibration narrows the gap",
    "At the largest epsilon, calibration on public people narrows the gap of everybody",
    _better("raw_gap", "fairpate", "fairpate_calibrated").at(epsilon=max),
    "Appendix D.1, Fig. 10",
  ),
  Claim(
    "calibration costs little",
    "at less than 2% of accuracy",
    _better("raw_accuracy", "fairpate_calibrated", "fairpate", -0.02).at(epsilon=max),
    "Appendix D.1, Fig. 10",
  ),
  Claim(
    "epsilon buys accuracy",
    "FairPATE's accuracy rises with epsilon",
    (ex.trend("accuracy", "epsilon") > 0).at(method="fairpate"),
    "Fig. 3",
  ),
  Claim(
    "a wider margin buys coverage",
    "FairPATE's coverage rises with the margin",
    (ex.trend("coverage", "max_gap") > 0).at(method="fairpate"),
    "Fig. 3",
  ),
)

_budgets = lines(
  "epsilon",
  "method",
  "margin",
  "Where a method has several weights lam, the mean over them.",
  log_x=True,
)
_margins = lines("max_gap", "method", "epsilon")
_weights = lines(
  "lam",
  "method",
  "epsilon",
  "FairDP-SGD with its penalty after the noise and inside the clip, everybody answered.",
  where={"method": PLACEMENTS},
)
FIGURES = (
  _budgets("accuracy", "Accuracy of the people answered"),
  _budgets("coverage", "Share of people answered"),
  _budgets("gap", "Disparity of the people answered", reference=0.0),
  _budgets("raw_accuracy", "Accuracy without abstention"),
  _budgets("raw_gap", "Disparity without abstention"),
  _margins(
    "margin",
    "Disparity over the margin, without abstention",
    "raw_gap",
    caption="Of everybody. Above the margin, the labels kept it and the student does not.",
  ),
  _margins(
    "margin_kept",
    "Disparity over the margin, with abstention",
    "gap",
    caption="Of the people answered: below the margin, unless the cold start broke it.",
  ),
  _weights("lam_accuracy", "Accuracy over the penalty", "raw_accuracy"),
  _weights("lam_gap", "Disparity over the penalty", "raw_gap"),
)
