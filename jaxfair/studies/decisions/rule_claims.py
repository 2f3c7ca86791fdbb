"""What the thesis says about decision rules, and what is drawn."""

import itertools

from scipy import special

from jaxfair import experiments as ex
from jaxfair.experiments import Claim, Figure

RULE, LINEAR, SVM = "the rule", "linear regression", "linear SVM"


def _neighbours_in_size(value: str) -> ex.Check:
  """Every county has a larger value than the next larger one."""

  def pairs(table: ex.Table) -> dict[str, ex.Check]:
    return {
      f"{small} and {large}": ex.difference(value, {"county": small}, {"county": large}) > 0
      for small, large in itertools.pairwise(table.unique("county"))
    }

  return ex.every(pairs, row="ratio", epsilon=min)


def _excess_over_allowed(table: ex.Table) -> float:
  """Largest |simulated - exact| in standard errors, over what 95% allow at once."""
  seeds = len(table.unique("seed"))
  if seeds < 2:
    raise ex.CannotTellError("a standard error needs at least 2 seeds")
  scores = []
  for _, part in table.split("epsilon", "county"):
    away = part["ratio_bias"] - part["exact_bias"]
    scores.append(abs(away.mean()) / (away.std(ddof=1) / len(away) ** 0.5))
  return float(max(scores) / special.stdtrit(seeds - 1, 1 - 0.025 / len(scores)))


def _worst_truth(operator: str, pair: str) -> ex.Check:
  """Errors at one pair of truth values exceed those at every other."""

  def others(table: ex.Table) -> dict[str, ex.Check]:
    return {
      other: ex.difference("group_error", {"truth": pair}, {"truth": other}) > 0
      for other in table.unique("truth")
      if other != pair
    }

  return ex.every(others, row="truth", operator=operator, places="synthetic", epsilon=min)


def _fairer(learner: str, value: str, told: str) -> Claim:
  lead = ex.difference(value, {"method": RULE}, {"method": learner})
  return Claim(
    f"{learner}, {value}",
    f"A piece-wise {learner} is fairer than the rule within bins, {told}",
    (lead > 0).at(row="bin", places="synthetic", epsilon=min),
    "Fig. 2.10",
  )


OFF = ex.exact("largest |simulated - exact| over what chance allows", _excess_over_allowed)
CLAIMS = (
  Claim(
    "thresholds",
    "Errors peak next to the thresholds",
    (ex.mean("rank_correlation") < 0).in_each("epsilon").in_each("places").at(row="summary"),
    "Fig. 2.3",
  ),
  Claim(
    "ratio bias",
    "Of nearly equal ratios the one with smaller counts is more biased",
    _neighbours_in_size("exact_bias"),
    "Fig. 2.4, left",
  ),
  Claim(
    "ratio spread", "and spreads more", _neighbours_in_size("ratio_spread"), "Fig. 2.4, middle"
  ),
  Claim(
    "closed form",
    "Simulated biases of floored ratios are the closed form",
    (OFF < 1).at(row="ratio"),
  ),
  Claim(
    "or",
    "Where neither holds, the disjunction of two predicates errs more than either",
    (ex.mean("or_minus_worse") > 0).at(row="summary", places="synthetic", epsilon=min),
    "Fig. 2.4, right",
  ),
  Claim(
    "and at TT",
    "A conjunction errs most where both hold",
    _worst_truth("and", "TT"),
    "Fig. 2.9, left",
  ),
  Claim(
    "or at FF",
    "A disjunction errs most where neither holds",
    _worst_truth("or", "FF"),
    "Fig. 2.9, right",
  ),
  *(
    _fairer(learner, value, told)
    for learner in (LINEAR, SVM)
    for value, told in (
      ("bin_alpha", "both measured against the rule on true counts"),
      ("own_alpha", "each measured against itself on true counts"),
    )
  ),
)


def _by_bin(name: str, title: str, y: str, y_title: str, caption: str) -> Figure:
  return Figure(
    name,
    title,
    "bin",
    y,
    "line",
    "method",
    "epsilon",
    caption,
    "bin by speakers with limited English",
    y_title,
    where={"row": "bin", "places": "synthetic"},
  )


def _by_place(name: str, title: str, x: str, x_title: str, caption: str) -> Figure:
  wrong = "chance of a wrong decision"
  return Figure(
    name,
    title,
    x,
    "error",
    "point",
    "truth",
    "places",
    caption,
    x_title,
    wrong,
    True,
    where={"row": "place"},
  )


def _by_county(name: str, title: str, y: str, y_title: str, caption: str) -> Figure:
  return Figure(
    name,
    title,
    "county",
    y,
    facet="epsilon",
    caption=caption,
    y_title=y_title,
    log_y=True,
    where={"row": "ratio"},
  )


FIGURES = (
  _by_place(
    "errors",
    "Wrong decisions by distance to the thresholds",
    "distance",
    "distance to the nearest threshold / noise scale",
    "Each point a place and epsilon. Colors: whether there are many speakers, and whether they "
    "lack schooling (Fig. 2.3).",
  ),
  _by_place(
    "citizens",
    "Wrong decisions by size",
    "citizens",
    "",
    "Small places lose most, where they are near a threshold.",
  ),
  _by_county(
    "ratios",
    "Bias of ratios that are nearly the same",
    "exact_bias",
    "bias of limited English / citizens",
    "The smaller the counts, the larger the bias (Fig. 2.4 left).",
  ),
  _by_county(
    "spread",
    "Spread of ratios that are nearly the same",
    "ratio_spread",
    "standard deviation",
    "Fig. 2.4, middle.",
  ),
  Figure(
    "truth",
    "Who errs, by truth values",
    "truth",
    "group_error",
    color="operator",
    facet="epsilon",
    y_title="chance of a wrong decision",
    where={"row": "truth", "places": "synthetic"},
    caption="First many speakers, second lack of schooling (Fig. 2.9).",
  ),
  _by_bin(
    "proxies",
    "Alpha within bins",
    "bin_alpha",
    "alpha within the bin",
    "Against the rule on true counts (Fig. 2.10), made-up counties.",
  ),
  _by_bin(
    "own_alpha",
    "Alpha within bins, by noise alone",
    "own_alpha",
    "alpha within the bin",
    "Each method against itself on true counts: what it decides wrongly without noise does not "
    "count.",
  ),
  _by_bin(
    "proxy_error",
    "and their errors",
    "bin_error",
    "mean chance of a wrong decision",
    "Against the rule on true counts.",
  ),
)
