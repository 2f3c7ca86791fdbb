"""What the FairPATE paper says of its frontier, as checks on the table."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxfair.experiments.table import Table
from jaxfair.studies.claims import (
  Check,
  difference_above,
  in_each,
  mean_above,
  trend,
)
from jaxfair.studies.protocol import Claim, Finding

PLACEMENTS = ("fair_dp_sgd", "fair_dp_sgd_inside")


def named(table: Table) -> Table:
  """Adds the margin's name, whether it was kept, and who was served.

  served is the share of all people who are answered, and rightly.
  """
  if "max_gap" not in table:
    return table
  margins = [
    "no margin" if np.isnan(m) else f"margin {m:g}" for m in table["max_gap"]
  ]
  return table.plus(
    margin=margins,
    room=table["max_gap"] - table["gap"],
    broken=table["raw_gap"] - table["max_gap"],
    served=table["accuracy"] * table["coverage"],
    setting=[
      f"epsilon {e:g} lam {lam:g}"
      for e, lam in zip(table["epsilon"], table["lam"], strict=True)
    ],
  )


def at(column: str, pick: Callable[[Any], Any], check: Check) -> Check:
  """The check on the rows with the least (min) or most (max) of a column.

  Rows without the setting, such as plain PATE's margin, are kept.
  """

  def chosen(table: Table) -> Finding:
    if column not in table or np.isnan(table[column]).all():
      return Finding("", why=f"no rows with {column}")
    value = pick(table[column][~np.isnan(table[column])])
    return check(table.where(**{column: (value, np.nan)}))

  return chosen


def with_best(value: str, method: str, check: Check) -> Check:
  """The check with the method's lam of the largest mean only.

  Chosen on the same rows, which favours that method.
  """

  def chosen(table: Table) -> Finding:
    own = table.where(method=method) if "method" in table else table
    if not len(own):
      return Finding("", why=f"no rows of {method}")
    means = {lam: np.nanmean(part[value]) for (lam,), part in own.split("lam")}
    best = max(means, key=lambda lam: means[lam])
    keep = (table["method"] != method) | (table["lam"] == best)
    return check(Table({n: table[n][keep] for n in table.names}))

  return chosen


def better(value: str, first: str, second: str) -> Check:
  """Paired over seeds, one method has the larger value than another."""
  return difference_above(
    value, first={"method": first}, second={"method": second}
  )


def of(methods: tuple[str, ...], check: Check) -> Check:
  """The check on the rows of some methods only."""

  def chosen(table: Table) -> Finding:
    if "method" not in table:
      return Finding("", why="the table has no column method")
    missing = set(methods) - set(table.unique("method"))
    if missing:
      return Finding("", why=f"no rows with method={min(missing)}")
    return check(table.where(method=methods))

  return chosen


def _placements(check: Check) -> Check:
  return of(PLACEMENTS, check)


def _tight(check: Check) -> Check:
  return at("max_gap", min, in_each("epsilon", check))


CLAIMS = (
  Claim(
    "accuracy over pre-processing",
    "At the tightest margin and every epsilon, FairPATE's students are more "
    "accurate than PATE-S_pre's",
    _tight(better("accuracy", "fairpate", "pate_s_pre")),
    "RQ1, Fig. 2, Table 1",
  ),
  Claim(
    "coverage over pre-processing",
    "and answer a larger share of people",
    _tight(better("coverage", "fairpate", "pate_s_pre")),
    "RQ1, Fig. 2",
  ),
  Claim(
    "labels over pre-processing",
    "because refusing before the argmax is paid for saves budget for more "
    "labels",
    _tight(better("answered", "fairpate", "pate_s_pre")),
    "RQ1, appendix A",
  ),
  Claim(
    "accuracy over in-processing",
    "At the tightest margin and every epsilon, FairPATE's students are more "
    "accurate than PATE-S_in's with the best lam",
    _tight(
      with_best(
        "accuracy", "pate_s_in", better("accuracy", "fairpate", "pate_s_in")
      )
    ),
    "RQ1, Table 1",
  ),
  Claim(
    "coverage over in-processing",
    "and answer a larger share of people than PATE-S_in's with the lam of the "
    "largest coverage",
    _tight(
      with_best(
        "coverage", "pate_s_in", better("coverage", "fairpate", "pate_s_in")
      )
    ),
    "RQ1, Table 1",
  ),
  Claim(
    "the argmax over allowed classes",
    "At the tightest margin and every epsilon, the argmax over the allowed "
    "classes gives more accurate students than the paper's rule",
    _tight(better("accuracy", "fairpate_allowed", "fairpate")),
  ),
  Claim(
    "FairPATE over FairDP-SGD",
    "At the largest epsilon and tightest margin, FairPATE is more accurate "
    "than FairDP-SGD with the best lam",
    at(
      "epsilon",
      max,
      at(
        "max_gap",
        min,
        with_best(
          "accuracy",
          "fair_dp_sgd",
          better("accuracy", "fairpate", "fair_dp_sgd"),
        ),
      ),
    ),
    "RQ2, Table 1",
  ),
  Claim(
    "accuracy, after the noise or inside",
    "At every epsilon and lam, FairDP-SGD with the penalty after the noise is "
    "more accurate than with it inside the clip, everybody answered",
    _placements(in_each("setting", better("raw_accuracy", *PLACEMENTS))),
  ),
  Claim(
    "gap, after the noise or inside",
    "and its gap is smaller",
    _placements(in_each("setting", better("raw_gap", *PLACEMENTS[::-1]))),
  ),
  Claim(
    "both, after the noise or inside",
    "At the tightest margin and every epsilon it answers more people rightly, "
    "each with the lam that answers most",
    _placements(
      _tight(
        with_best(
          "served",
          PLACEMENTS[0],
          with_best("served", PLACEMENTS[1], better("served", *PLACEMENTS)),
        )
      )
    ),
  ),
  Claim(
    "abstention keeps the margin",
    "With abstention the gap of those answered is below the margin, for every "
    "method",
    lambda table: in_each("method", mean_above("room"))(_judged(table)),
    "Section 3.3, Fig. 9",
  ),
  Claim(
    "the student breaks it without",
    "At the tightest margin PATE-S_pre's students, who learn from labels "
    "within it, break it when they answer everybody",
    at(
      "max_gap",
      min,
      in_each("epsilon", mean_above("broken", where={"method": "pate_s_pre"})),
    ),
    "Appendix D, Fig. 9",
  ),
  Claim(
    "calibration narrows the gap",
    "At the largest epsilon, calibration on public people narrows the gap of "
    "everybody",
    at("epsilon", max, better("raw_gap", "fairpate", "fairpate_calibrated")),
    "Appendix D.1, Fig. 10",
  ),
  Claim(
    "calibration costs little",
    "at less than 2% of accuracy",
    at(
      "epsilon",
      max,
      difference_above(
        "raw_accuracy",
        -0.02,
        first={"method": "fairpate_calibrated"},
        second={"method": "fairpate"},
      ),
    ),
    "Appendix D.1, Fig. 10",
  ),
  Claim(
    "epsilon buys accuracy",
    "FairPATE's accuracy rises with epsilon",
    trend("accuracy", "epsilon", rises=True, where={"method": "fairpate"}),
    "Fig. 3",
  ),
  Claim(
    "a wider margin buys coverage",
    "FairPATE's coverage rises with the margin",
    trend("coverage", "max_gap", rises=True, where={"method": "fairpate"}),
    "Fig. 3",
  ),
)


def _judged(table: Table) -> Table:
  """Rows of methods with a margin."""
  if "room" not in table:
    return table
  abstains = table["method"] != "fairpate_calibrated"
  keep = ~np.isnan(table["max_gap"]) & abstains
  return Table({name: table[name][keep] for name in table.names})
