"""Which places lose a right by noise? Section 203 (Figs 2.3, 2.4, 2.9, 2.10)."""

import itertools
from typing import Literal

from scipy import special

from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.decisions import rule_simulation as simulation
from jaxfair.studies.decisions.places import COVERED, MADE_UP, OWNER_ONLY, REAL, load_jurisdictions
from jaxfair.studies.decisions.rule_simulation import FLOOR, LEARNERS, LINEAR, PEEKED, RULE, SVM

ERRORS, RATIOS, PROXIES = "errors", "ratios", "proxies"


class Config(simulation.Simulation):
  """Settings of the rights study."""

  # Covered places (Hispanic), Alaska's (every language), both, and counties of no data.
  places: ex.Sweep[
    Literal["section203", "section203_alaska", "section203_and_alaska", "made_up"]
  ] = ("section203", "section203_and_alaska", "made_up")
  # Errors (Figs 2.3, 2.4 right, 2.9), ratios (Fig. 2.4), proxies (Fig. 2.10).
  parts: ex.Sweep[Literal["errors", "ratios", "proxies"]] = ("errors", "ratios", "proxies")
  epsilons: ex.Sweep[ex.Positive] = (0.1, 1.0)  # privacy of one citizen over all counts


def cells(config: Config) -> list[_study.Cell]:
  """One cell per part, set of places and epsilon."""
  for name in config.places:
    load_jurisdictions(name)  # a missing file is found before any work
  return [
    {"part": part, "places": places, "epsilon": epsilon}
    for part in config.parts
    for places in (["three counties"] if part == RATIOS else config.places)
    for epsilon in config.epsilons
  ]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one cell."""
  epsilon = float(cell["epsilon"])
  if cell["part"] == RATIOS:
    rows = simulation.ratios(config, epsilon, context.key)
  else:
    places = load_jurisdictions(str(cell["places"]))
    context.say(places.note)
    part = simulation.errors if cell["part"] == ERRORS else simulation.proxies
    rows = part(config, places, epsilon, context.key)
  return ex.Table.from_rows({**cell, **row} for row in rows)


def _notes(config: Config) -> list[str]:
  return [
    OWNER_ONLY,
    "One citizen may be in all three counts of a place, so the noise of each has scale 3 / epsilon "
    "(2 / epsilon for a ratio of two).",
    "The public Section 203 file holds covered places only, so truth values and proxies are tested "
    "on it together with Alaska's file of every language; the thesis has 2,774 counties. Claims on "
    "made-up counties are ours.",
    f"Ratios are floored at a denominator of {FLOOR:g}: without a floor a noisy ratio has no mean, "
    "and a simulation of it settles nowhere.",
    "The thesis learns its proxies from true counts, which is not private. Those without that "
    "label are learned from a release of half the budget and applied to one of the other half.",
  ]


def _falls_with_size(value: str) -> _claims.Check:
  """Every county has a larger value than the next larger one."""

  def pairs(table: ex.Table) -> dict[str, _claims.Check]:
    return {
      f"{small} and {large}": ex.difference(value, {"county": small}, {"county": large}) > 0
      for small, large in itertools.pairwise(table.unique("county"))
    }

  return _claims.every(pairs, row="ratio", epsilon=min)


def _worst_truth(operator: str, pair: str, places: str) -> _claims.Check:
  """Errors at one pair of truth values exceed those at every other."""

  def others(table: ex.Table) -> dict[str, _claims.Check]:
    return {
      other: ex.difference("group_error", {"truth": pair}, {"truth": other}) > 0
      for other in table.unique("truth")
      if other != pair
    }

  return _claims.every(others, row="truth", operator=operator, places=places, epsilon=min)


def _excess_over_allowed(table: ex.Table) -> float:
  """Largest |simulated - exact| in standard errors, over what 95% allow at once."""
  seeds = len(table.unique("seed"))
  if seeds < 2:
    raise _claims.CannotTellError("a standard error needs at least 2 seeds")
  scores = []
  for _, part in table.split("epsilon", "county"):
    away = part["ratio_bias"] - part["exact_bias"]
    scores.append(abs(away.mean()) / (away.std(ddof=1) / len(away) ** 0.5))
  return float(max(scores) / special.stdtrit(seeds - 1, 1 - 0.025 / len(scores)))


def _fairer(method: str, value: str, than: str = RULE) -> _claims.Check:
  lead = ex.difference(value, {"method": than}, {"method": method})
  return (lead > 0).at(places=REAL, **BIN, epsilon=min)


def _or_errs(places: str) -> _claims.Check:
  return (ex.mean("or_minus_worse") > 0).at(row="summary", places=places, epsilon=min)


BIN, PLACE, RATIO = {"row": "bin"}, {"row": "place"}, {"row": "ratio"}
OFF = _statistics.exact("largest |simulated - exact| over what chance allows", _excess_over_allowed)
PEAK = (ex.mean("rank_correlation") < -0.5).at(row="summary", places=COVERED)
AGAINST = {
  "bin_alpha": "both measured against the rule on true counts",
  "own_alpha": "each measured against itself on true counts",
}

STUDY = ex.Study(
  name="decisions.rules",
  summary="Whose right is lost in the noise? Minority-language ballots.",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  claims={
    "thresholds: Errors of covered places fall with their distance to the thresholds, by a rank "
    "correlation below -0.5 (our reading of strongly) [Fig. 2.3]": PEAK.in_each("epsilon"),
    "ratio bias: Of nearly equal ratios the one with smaller counts is more biased "
    "[Fig. 2.4]": _falls_with_size("exact_bias"),
    "ratio spread: Of nearly equal ratios the one with smaller counts spreads more "
    "[Fig. 2.4, variance]": _falls_with_size("ratio_spread"),
    "closed form: Simulated biases of floored ratios are the closed form": (OFF < 1).at(**RATIO),
    "or: Where neither holds, the disjunction of two predicates errs more than either "
    "[Fig. 2.4, disjunction]": _or_errs(REAL),
    "or, made up: On made-up counties where neither holds, the disjunction of two predicates errs "
    "more than either": _or_errs(MADE_UP),
    "and at TT: A conjunction errs most where both hold [Fig. 2.9]": _worst_truth(
      "and", "TT", REAL
    ),
    "or at FF: A disjunction errs most where neither holds [Fig. 2.9]": _worst_truth(
      "or", "FF", REAL
    ),
    "and at TT, made up: On made-up counties a conjunction errs most where both hold": _worst_truth(
      "and", "TT", MADE_UP
    ),
    "or at FF, made up: On made-up counties a disjunction errs most where neither "
    "holds": _worst_truth("or", "FF", MADE_UP),
    "SVM: Learned from true counts (not private), the SVM is fairer than the regression "
    "[Fig. 2.10, SVM]": _fairer(SVM + PEEKED, "bin_alpha", LINEAR + PEEKED),
    "size: Of larger places the rule's decisions are fairer, bin by bin [Fig. 2.10, size]": (
      ex.trend("bin_alpha", "bin") < 0
    ).at(places=REAL, **BIN, epsilon=min, method=RULE),
  }
  | {
    f"{learner}: A piece-wise {learner} that is learned from true counts (not private) is fairer "
    "than the rule within bins, both measured against the rule on true counts [Fig. 2.10]": _fairer(
      learner + PEEKED, "bin_alpha"
    )
    for learner in LEARNERS
  }
  | {
    f"{learner}, {value}: A piece-wise {learner} that is learned from a release is fairer than the "
    f"rule within bins, {told}": _fairer(learner, value)
    for learner in LEARNERS
    for value, told in AGAINST.items()
  },
  figures=(
    ex.points(
      "errors: Wrong decisions by distance to the thresholds",
      "error ~ distance, truth | places",
      "Each point a place and epsilon. Colors: whether there are many speakers, and whether they "
      "lack schooling (Fig. 2.3).",
      where=PLACE,
      log="x",
    ),
    ex.points(
      "citizens: Wrong decisions by size",
      "error ~ citizens, truth | places",
      "Small places lose most, where they are near a threshold.",
      where=PLACE,
      log="x",
    ),
    ex.bars(
      "ratios: Bias of ratios that are nearly the same",
      "exact_bias ~ county | epsilon",
      "The smaller the counts, the larger the bias (Fig. 2.4 left).",
      where=RATIO,
      log="y",
    ),
    ex.bars(
      "spread: Spread of ratios that are nearly the same",
      "ratio_spread ~ county | epsilon",
      "Fig. 2.4, middle.",
      where=RATIO,
      log="y",
    ),
    ex.bars(
      "truth: Who errs, by truth values",
      "group_error ~ truth, operator | places",
      "First many speakers, second lack of schooling (Fig. 2.9), at the smallest epsilon.",
      where={"row": "truth", "epsilon": min},
    ),
    ex.lines(
      "proxies: Alpha within bins",
      "bin_alpha ~ bin, method | places",
      "Against the rule on true counts (Fig. 2.10).",
      where=BIN,
    ),
    ex.lines(
      "own_alpha: Alpha within bins, by noise alone",
      "own_alpha ~ bin, method | places",
      "Each method against itself on true counts: what it decides wrongly without noise does not "
      "count.",
      where=BIN,
    ),
    ex.lines(
      "proxy_error: Errors within bins",
      "bin_error ~ bin, method | places",
      "Against the rule on true counts.",
      where=BIN,
    ),
  ),
  titles={
    "distance": "distance to the nearest threshold / noise scale",
    "exact_bias": "bias of limited English / citizens",
    "ratio_spread": "standard deviation",
    "bin": "bin by speakers with limited English",
    "bin_error": "mean chance of a wrong decision",
    **dict.fromkeys(("error", "group_error"), "chance of a wrong decision"),
    **dict.fromkeys(("bin_alpha", "own_alpha"), "alpha within the bin"),
  },
  summaries=(
    ex.summary(
      "Wrong decisions", "alpha, mean_error, rank_correlation ~ places, epsilon", {"row": "summary"}
    ),
    ex.summary(
      "Nearly the same ratio", "ratio_bias, exact_bias, ratio_spread ~ epsilon, county", RATIO
    ),
  ),
)
