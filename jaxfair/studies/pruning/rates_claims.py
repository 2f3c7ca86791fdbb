"""What chapter 5 says of groups over rates, as checks on the table."""

from typing import Any

import numpy as np

from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies import claims, resampled
from jaxfair.studies.protocol import Claim, Finding


def _groups(table: Table) -> Table:
  """Without the rows of everyone."""
  if "group" not in table:
    return table
  names = tuple(n for n in table.unique("group") if n != EVERYONE)
  return table.where(group=names)


def _of_groups(check: claims.Check) -> claims.Check:
  return lambda table: check(_groups(table))


def _related(
  name: str, statement: str, x: str, y: str, *, rises: bool, source: str,
  last: bool = False,
) -> Claim:  # fmt: skip
  """Two columns rise (or fall) together over the groups, at one rate."""

  def check(table: Table) -> Finding:
    if "rate" not in table:
      return Finding("", why="the table has no column rate")
    rate = max(table.unique("rate")) if last else 0.0
    limits: Any = {"above": 0.0} if rises else {"below": 0.0}
    return resampled.rank_correlation(
      x, y, points=("group",), where={"rate": rate}, **limits
    )(_groups(table))

  return Claim(name, statement, check, source=source)


def _costly(name: str, column: str, words: str) -> Claim:
  return _related(
    f"{name} and cost",
    f"Groups with a larger {words} before pruning lose more accuracy",
    f"{column}_before", "accuracy_cost", rises=True, last=True,
    source="Fig. 5.4, 5.12, 5.13",
  )  # fmt: skip


def _smallest_pays(table: Table) -> Finding:
  """The smallest group loses more accuracy than the largest."""
  if "size" not in table:
    return Finding("", why="the table has no column size")
  groups = _groups(table)
  rate = max(groups.unique("rate"))
  order = groups["group"][np.argsort(groups["size"], kind="stable")]
  return claims.difference_above(
    "accuracy_cost",
    first={"rate": rate, "group": str(order[0])},
    second={"rate": rate, "group": str(order[-1])},
  )(groups)


def _bounded(table: Table) -> Finding:
  """The least share of seeds, over groups and rates, in which it holds."""
  return resampled.resampled(
    "share of repetitions below the bound, least of groups and rates",
    lambda labels, holds: holds.min(axis=0),
    values=("bound_holds",), points=("group", "rate"), at_least=1.0,
  )(_groups(table))  # fmt: skip


CLAIMS = (
  Claim(
    "gap",
    "The accuracies of the groups drift apart as the pruning rate grows",
    claims.trend("accuracy_gap", "rate", rises=True, where={"group": EVERYONE}),
    source="Fig. 5.1, 5.4a, 5.10, 5.11",
  ),
  _related(
    "matthew",
    "Groups with a lower accuracy before pruning lose more of it at the "
    "highest rate",
    "accuracy_before", "accuracy_cost", rises=False, last=True,
    source="Fig. 5.1",
  ),
  Claim(
    "smallest",
    "At the highest rate the smallest group loses more accuracy than the "
    "largest",
    _smallest_pays,
    source="Fig. 5.1, 5.4a",
  ),
  _related(
    "size and gradient", "Smaller groups have larger gradient norms",
    "size", "gradient_norm", rises=False, source="Fig. 5.2; Prop. 5.1",
  ),
  _related(
    "accuracy and gradient",
    "Groups of lower accuracy have larger gradient norms",
    "accuracy", "gradient_norm", rises=False, source="Fig. 5.3; Prop. 5.2",
  ),
  _costly("gradient", "gradient_norm", "gradient norm"),
  _costly("curvature", "top_eigenvalue", "top eigenvalue"),
  _related(
    "boundary and curvature",
    "Groups nearer to the decision boundary have larger top eigenvalues",
    "distance", "top_eigenvalue", rises=False, source="Fig. 5.5; Thm. 5.2",
  ),
  _related(
    "accuracy and curvature",
    "Groups of lower accuracy have larger top eigenvalues",
    "accuracy", "top_eigenvalue", rises=False, source="Fig. 5.5",
  ),
  _related(
    "gradient and curvature",
    "Groups with larger gradient norms have larger top eigenvalues",
    "gradient_norm", "top_eigenvalue", rises=True, source="Fig. 5.6",
  ),
  Claim(
    "bound grows",
    "The bound on every group's excess loss grows with the pruning rate",
    _of_groups(
      claims.in_each("group", claims.trend("bound", "rate", rises=True))
    ),
    source="Cor. 5.1",
  ),
  Claim(
    "bound",
    "Every group's excess loss is below its bound's first two terms",
    _bounded,
    source="Thm. 5.1",
  ),
)  # fmt: skip
