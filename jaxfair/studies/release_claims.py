"""What is claimed about personalised release, and what is drawn."""

import numpy as np

from jaxfair import fairness
from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies.claims import (
  Check,
  difference_above,
  mean_above,
  spread_above,
)
from jaxfair.studies.protocol import Claim, Figure, Finding, Summary

ENTROPY, PROGRESS = "entropy (paper)", "progress"
IMPORTANCE, RANDOM, OPTIMUM = "importance", "random", "optimum"


def _at(method: str, delta: float) -> dict[str, object]:
  return {"method": method, "delta": delta, "group": EVERYONE}


def _always_agrees(table: Table) -> Finding:
  """With delta = 0 no label of any seed, size and method may differ."""
  statistic = "lowest agreement with the full model at delta=0"
  rows = table.where(delta=0.0, group=EVERYONE)
  known = _known(rows, "agreement")
  if not len(known):
    return Finding(statistic, why="no rows with delta=0")
  low, high = float(known.min()), float(known.max())
  return Finding(statistic, low, low, high, low == 1.0)


def _close_to_optimum(method: str) -> Check:
  """leakage / optimum - 1 <= 15%, as a paired difference over seeds."""

  def check(table: Table) -> Finding:
    statistic = f"{method}: leakage over the optimum's, minus 1"
    parts = []
    for name in (method, OPTIMUM):
      rows = table.where(**_at(name, 0.0))
      parts.append(
        {
          key: float(_known(part, "leakage").mean())
          for (key,), part in rows.split("seed")
        }
      )
    asked, best = parts
    shared = sorted(set(asked) & set(best))
    total = sum(best[s] for s in shared)
    if len(shared) < 2 or total <= 0:
      return Finding(statistic, why="needs two seeds and an optimum above 0")
    # A ratio of means; its interval is that of the mean of scaled differences.
    scale = len(shared) / total
    found = fairness.seed_interval(
      np.array([(asked[s] - best[s]) * scale for s in shared])
    )
    low, high = float(found.low), float(found.high)
    return Finding(statistic, float(found.estimate), low, high, high <= 0.15)

  return check


def _known(rows: Table, column: str) -> np.ndarray:
  values = rows[column]
  return values[~np.isnan(values)]


def _groups_differ(delta: float) -> Check:
  check = spread_above("share", between="group", without=EVERYONE)

  def on_rows(table: Table) -> Finding:
    rows = table.where(method=ENTROPY, delta=delta)
    if not len(rows):
      return Finding("share: spread", why=f"no rows with delta={delta:g}")
    return check(rows)

  return on_rows


CLAIMS = (
  Claim(
    "certainty is free",
    "With delta = 0 nobody's label changes",
    _always_agrees,
    "Sec. 7.6.3",
  ),
  Claim(
    "half is enough",
    "With delta = 0 people reveal less than half of the sensitive columns",
    mean_above("spared", 0.5, where=_at(ENTROPY, 0.0)),
    "Sec. 7.9.6",
  ),
  Claim(
    "15% is enough",
    "With delta = 0.1 people reveal less than 15% of them",
    mean_above("spared", 0.85, where=_at(ENTROPY, 0.1)),
    "Sec. 7.9.6",
  ),
  Claim(
    "accuracy stays",
    "With delta = 0.1 less than 0.02 of accuracy is lost",
    mean_above("accuracy_kept", -0.02, where=_at(ENTROPY, 0.1)),
    "Sec. 7.9.7",
  ),
  Claim(
    "entropy is near the optimum",
    "With delta = 0 the paper's order asks at most 15% more than the optimum",
    _close_to_optimum(ENTROPY),
  ),
  Claim(
    "progress is near the optimum",
    "With delta = 0 the order by progress asks at most 15% more than it",
    _close_to_optimum(PROGRESS),
  ),
  Claim(
    "progress asks less",
    "With delta = 0 the order by progress asks less than the paper's",
    difference_above(
      "leakage", first=_at(ENTROPY, 0.0), second=_at(PROGRESS, 0.0)
    ),
  ),
  Claim(
    "one order would do",
    "With delta = 0.1 one order by importance asks more than the paper's",
    difference_above(
      "leakage", first=_at(IMPORTANCE, 0.1), second=_at(ENTROPY, 0.1)
    ),
  ),
  Claim(
    "who discloses, certain",
    "With delta = 0 one group has to disclose more than another",
    _groups_differ(0.0),
  ),
  Claim(
    "who discloses, probable",
    "With delta = 0.1 one group has to disclose more than another",
    _groups_differ(0.1),
  ),
)

FIGURES = (
  Figure(
    "leakage",
    "How many columns people reveal",
    x="sensitive",
    y="leakage",
    mark="line",
    color="delta",
    where={"method": ENTROPY, "group": EVERYONE},
    x_title="sensitive columns |S|",
    y_title="columns revealed",
    caption="The paper's order, mean over repetitions.",
  ),
  Figure(
    "accuracy",
    "Accuracy of the decisions",
    x="sensitive",
    y="accuracy",
    mark="line",
    color="delta",
    where={"method": ENTROPY, "group": EVERYONE},
    x_title="sensitive columns |S|",
    caption="With delta = 0 it is the full model's.",
  ),
  Figure(
    "orders",
    "Orders of asking, when only certainty counts",
    x="sensitive",
    y="leakage",
    mark="line",
    color="method",
    where={"delta": 0.0, "group": EVERYONE},
    x_title="sensitive columns |S|",
    y_title="columns revealed",
    caption="The optimum sees every answer first: nobody can ask that well.",
  ),
  Figure(
    "sizes",
    "How many people reveal how much",
    x="revealed",
    y="people",
    color="delta",
    facet="sensitive",
    where={"method": ENTROPY, "group": EVERYONE},
    x_title="columns revealed",
    y_title="share of people",
  ),
  Figure(
    "groups",
    "Who has to disclose more",
    x="group",
    y="share",
    color="delta",
    facet="sensitive",
    where={"method": ENTROPY},
    y_title="share of columns revealed",
  ),
)

SUMMARIES = (
  Summary(
    "Everyone",
    by=("sensitive", "method", "delta"),
    values=("leakage", "share", "accuracy", "accuracy_lost", "agreement"),
    where={"group": EVERYONE},
  ),
  Summary(
    "By group, the paper's order",
    by=("sensitive", "delta", "group"),
    values=("leakage", "nothing", "accuracy", "accuracy_lost", "agreement"),
    where={"method": ENTROPY},
  ),
)
