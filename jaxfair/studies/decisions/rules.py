"""Which places lose a right by noise? Section 203 (Figs 2.3, 2.4, 2.9, 2.10)."""

import itertools
from typing import Literal

from scipy import special

from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.decisions import rule_simulation as simulation
from jaxfair.studies.decisions.places import OWNER_ONLY, Places, load_jurisdictions
from jaxfair.studies.decisions.rule_simulation import FLOOR, LEARNERS, RULE

ERRORS, RATIOS, PROXIES = "errors", "ratios", "proxies"
SYNTHETIC = {"places": "synthetic"}


class Config(simulation.Simulation):
  """Settings of the rights study."""

  data: Places = Places(name="section203")  # whose counts
  made_up: bool = True  # add the made-up counties, which have all four truth values
  # Errors (Figs 2.3, 2.4 right, 2.9), ratios (Fig. 2.4), proxies (Fig. 2.10).
  parts: ex.Sweep[Literal["errors", "ratios", "proxies"]] = ("errors", "ratios", "proxies")
  epsilons: ex.Sweep[ex.Positive] = (0.1, 1.0)  # privacy of one citizen over all counts


def cells(config: Config) -> list[_study.Cell]:
  """One cell per part, set of places and epsilon."""
  load_jurisdictions(config.data)  # a missing file is found before any work
  sets = dict.fromkeys([config.data.name, *(["synthetic"] if config.made_up else [])])
  return [
    {"part": part, "places": places, "epsilon": epsilon}
    for part in config.parts
    for places in (["three counties"] if part == RATIOS else sets)
    for epsilon in config.epsilons
  ]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one cell."""
  epsilon = float(cell["epsilon"])
  if cell["part"] == RATIOS:
    rows = simulation.ratios(config, epsilon, context.key)
  else:
    made_up = cell["places"] == "synthetic"
    places = load_jurisdictions(Places(name="synthetic") if made_up else config.data)
    context.say(places.note)
    part = simulation.errors if cell["part"] == ERRORS else simulation.proxies
    rows = part(config, places, epsilon, context.key)
  return ex.Table.from_rows({**cell, **row} for row in rows)


def _notes(config: Config) -> list[str]:
  return [
    OWNER_ONLY,
    "One citizen may be in all three counts of a place, so the noise of each has scale 3 / epsilon "
    "(2 / epsilon for a ratio of two).",
    "The public Section 203 file holds covered places only. What is said of rights granted "
    "wrongly, of truth values and of proxies rests on made-up counties and on Alaska's file, not "
    "on the nation's.",
    f"Ratios are floored at a denominator of {FLOOR:g}: without a floor a noisy ratio has no mean, "
    "and a simulation of it settles nowhere.",
    "Proxies are learned from a release of half the budget and applied to one of the other half; "
    "learning them from true counts would not be private.",
  ]


def _falls_with_size(value: str) -> _claims.Check:
  """Every county has a larger value than the next larger one."""

  def pairs(table: ex.Table) -> dict[str, _claims.Check]:
    return {
      f"{small} and {large}": ex.difference(value, {"county": small}, {"county": large}) > 0
      for small, large in itertools.pairwise(table.unique("county"))
    }

  return _claims.every(pairs, row="ratio", epsilon=min)


def _worst_truth(operator: str, pair: str) -> _claims.Check:
  """Errors at one pair of truth values exceed those at every other."""

  def others(table: ex.Table) -> dict[str, _claims.Check]:
    return {
      other: ex.difference("group_error", {"truth": pair}, {"truth": other}) > 0
      for other in table.unique("truth")
      if other != pair
    }

  return _claims.every(others, row="truth", operator=operator, **SYNTHETIC, epsilon=min)


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


def _fairer(learner: str, value: str) -> _claims.Check:
  lead = ex.difference(value, {"method": RULE}, {"method": learner})
  return (lead > 0).at(row="bin", **SYNTHETIC, epsilon=min)


OFF = _statistics.exact("largest |simulated - exact| over what chance allows", _excess_over_allowed)
PEAK = ex.mean("rank_correlation") < 0
AGAINST = {
  "bin_alpha": "both measured against the rule on true counts",
  "own_alpha": "each measured against itself on true counts",
}
BIN, PLACE, RATIO = {"row": "bin", **SYNTHETIC}, {"row": "place"}, {"row": "ratio"}

STUDY = ex.Study(
  name="decisions.rules",
  summary="Whose right is lost in the noise? Minority-language ballots.",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  claims={
    "thresholds: Errors peak next to the thresholds [Fig. 2.3]": PEAK.in_each("epsilon")
    .in_each("places")
    .at(row="summary"),
    "ratio bias: Of nearly equal ratios the one with smaller counts is more biased "
    "[Fig. 2.4, left]": _falls_with_size("exact_bias"),
    "ratio spread: Of nearly equal ratios the one with smaller counts spreads more "
    "[Fig. 2.4, middle]": _falls_with_size("ratio_spread"),
    "closed form: Simulated biases of floored ratios are the closed form": (OFF < 1).at(**RATIO),
    "or: Where neither holds, the disjunction of two predicates errs more than either "
    "[Fig. 2.4, right]": (ex.mean("or_minus_worse") > 0).at(
      row="summary", **SYNTHETIC, epsilon=min
    ),
    "and at TT: A conjunction errs most where both hold [Fig. 2.9, left]": _worst_truth(
      "and", "TT"
    ),
    "or at FF: A disjunction errs most where neither holds [Fig. 2.9, right]": _worst_truth(
      "or", "FF"
    ),
  }
  | {
    f"{learner}, {value}: A piece-wise {learner} is fairer than the rule within bins, {told} "
    "[Fig. 2.10]": _fairer(learner, value)
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
      "group_error ~ truth, operator | epsilon",
      "First many speakers, second lack of schooling (Fig. 2.9).",
      where={"row": "truth", **SYNTHETIC},
    ),
    ex.lines(
      "proxies: Alpha within bins",
      "bin_alpha ~ bin, method | epsilon",
      "Against the rule on true counts (Fig. 2.10), made-up counties.",
      where=BIN,
    ),
    ex.lines(
      "own_alpha: Alpha within bins, by noise alone",
      "own_alpha ~ bin, method | epsilon",
      "Each method against itself on true counts: what it decides wrongly without noise does not "
      "count.",
      where=BIN,
    ),
    ex.lines(
      "proxy_error: Errors within bins",
      "bin_error ~ bin, method | epsilon",
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
