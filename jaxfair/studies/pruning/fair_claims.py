"""What chapter 5 says of fair pruning, as checks on the table."""

from typing import Any

from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies import claims, protocol
from jaxfair.studies.protocol import Claim


def _less(
  column: str, first: dict[str, Any], second: dict[str, Any], by: float = 0.0
) -> claims.Check:
  """The column of everyone is smaller under `first` than under `second`."""
  return claims.difference_above(
    column, by, first={"group": EVERYONE, **second},
    second={"group": EVERYONE, **first},
  )  # fmt: skip


def _pruned(check: claims.Check) -> claims.Check:
  """Looks at pruned networks only."""

  def of_pruned(table: Table) -> protocol.Finding:
    if "rate" not in table:
      return check(table)
    rates = tuple(rate for rate in table.unique("rate") if rate > 0)
    return check(table.where(rate=rates))

  return of_pruned


def _highest(check: claims.Check) -> claims.Check:
  """Looks at the highest rate only."""

  def of_highest(table: Table) -> protocol.Finding:
    return check(table.where(rate=max(table.unique("rate"))))

  return of_highest


def _relaxed(method: str) -> dict[str, Any]:
  kind = "none" if method == "never" else "relaxed"
  return {"method": method, "constraint": kind}


def _fairer(method: str, source: str) -> Claim:
  return Claim(
    f"{method} is fairer",
    f"Equal losses {method} pruning shrink the gap between the groups' "
    "accuracies, over all rates"
    if method != "both"
    else "Equal losses both before and after pruning shrink the gap between "
    "the groups' accuracies, over all rates",
    _pruned(_less("accuracy_gap", _relaxed(method), _relaxed("never"))),
    source=source,
  )


def _levels(column: str, words: str) -> Claim:
  return Claim(
    f"levels {column}",
    f"Equal losses bring the groups' {words} together before pruning",
    _less(f"dense_{column}_gap", _relaxed("before"), _relaxed("never")),
    source="Fig. 5.7",
  )


CLAIMS = (
  _fairer("before", "Fig. 5.8, 5.9; Table 5.2"),
  _fairer("after", "Fig. 5.8, 5.9; Table 5.2"),
  _fairer("both", "Fig. 5.8, 5.9; Table 5.2"),
  Claim(
    "after beats before",
    "At the highest rate the gap is smaller if losses are made equal after "
    "pruning than before it",
    _highest(_less("accuracy_gap", _relaxed("after"), _relaxed("before"))),
    source="Fig. 5.8, 5.9",
  ),
  Claim(
    "accuracy stays",
    "Equal losses after pruning cost less than 2 points of accuracy, over "
    "all rates",
    _pruned(_less("accuracy", _relaxed("never"), _relaxed("after"), -0.02)),
    source="Fig. 5.8, 5.9",
  ),
  _levels("gradient_norm", "gradient norms"),
  _levels("distance", "distances to the decision boundary"),
  Claim(
    "full is fairer",
    "Equal gradients and curvature after pruning leave a smaller gap than "
    "equal losses",
    _pruned(
      _less(
        "accuracy_gap", {"method": "after", "constraint": "full"},
        _relaxed("after"),
      )
    ),
    source="Table 5.1",
  ),
  Claim(
    "full keeps accuracy",
    "Equal gradients and curvature after pruning cost less than 2 points of "
    "accuracy against equal losses",
    _pruned(
      _less(
        "accuracy", _relaxed("after"),
        {"method": "after", "constraint": "full"}, -0.02,
      )
    ),
    source="Table 5.1",
  ),
)  # fmt: skip
