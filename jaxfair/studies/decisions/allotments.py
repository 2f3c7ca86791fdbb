"""Who pays when money is shared by noisy counts? (Figs 2.2 and 2.5 to 2.8.)"""

from typing import Annotated, Any

import jax
import numpy as np
from jax.tree_util import Partial

from jaxfair import decisions
from jaxfair import experiments as ex
from jaxfair.decisions import _problems
from jaxfair.experiments import Positive, Summary
from jaxfair.studies.decisions.allotment_claims import (
  BEST,
  CLAIMS,
  COUNTS,
  FIGURES,
  METHODS,
  SUMMARY,
  TEMPERED,
)
from jaxfair.studies.decisions.counts import Districts, Places, load_districts

SIZE_BINS = 10
MOST_POINTS = 1500


class Config(ex.Settings):
  """Settings of the allotment study.

  Attributes:
    data: whose counts.
    epsilons: privacy of one child, for each release.
    methods: from noisy counts to shares.
    temperatures: of tempered non-negativity, in (noise scale)^2; the best one
      is always among them.
    lower_share: the public lower bound of the total, as a share of it; the
      thesis takes 0.9.
    budget: dollars a year, of the whole nation.
    draws: of the noise, per seed.
    seeds: independent simulations, for intervals.
  """

  data: Places = Places(name="title_one", state="New York")
  epsilons: ex.Sweep[Positive] = (0.001, 0.01, 0.1)
  methods: ex.Sweep[Annotated[str, ex.OneOf(METHODS)]] = METHODS
  temperatures: tuple[Positive, ...] = (0.1, 2.0)
  lower_share: Annotated[float, ex.Within(0.0, 1.0, open_low=True)] = 0.9
  budget: Positive = _problems.BUDGET
  draws: Annotated[int, ex.Within(100)] = 10_000
  seeds: ex.Count = 5


def cells(config: Config) -> list[ex.Cell]:
  """One cell per epsilon, method and temperature."""
  load_districts(config.data)  # a missing file is found before any work
  heats = {TEMPERED: [BEST, *map(str, config.temperatures)]}
  return [
    {"method": method, "epsilon": epsilon, "heat": heat}
    for epsilon in config.epsilons
    for method in config.methods
    for heat in heats.get(method, [""])
  ]


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All seeds of one cell: summaries, bins by size, and districts."""
  places = load_districts(config.data)
  context.say(places.note)
  epsilon = float(cell["epsilon"])
  release = decisions.LaplaceRelease.for_epsilon(epsilon)
  heat = _temperature(str(cell["heat"]), float(release.scale))
  mechanism = _mechanism(config, str(cell["method"]), places, epsilon, heat)
  problem = decisions.allotment(places.weights)
  budget = config.budget * places.share
  rows: list[dict[str, Any]] = []
  total = np.zeros(len(places.counts))
  for seed in range(config.seeds):
    found = decisions.simulate_mechanism(
      mechanism,
      problem,
      places.counts,
      draws=config.draws,
      key=jax.random.fold_in(context.key, seed),
    )
    total += found.bias
    predicted = _prediction(found, places, release) if cell["method"] == COUNTS else {}
    rows.append(SUMMARY | {"seed": seed} | _summary(found, budget, places) | predicted)
    rows += _bins(budget * found.bias, places, seed)
  rows += _districts(budget * total / config.seeds, places)
  relative = heat / float(release.scale) ** 2 if cell["heat"] else None
  return ex.Table.from_rows({**cell, "temperature": relative, **row} for row in rows)


def _mechanism(
  config: Config, method: str, places: Districts, epsilon: float, heat: float
) -> decisions.Mechanism:
  problem = decisions.allotment(places.weights)
  release = decisions.LaplaceRelease.for_epsilon(epsilon)
  total = float(places.weights @ places.counts)
  highest = float(places.weights.max())
  lower = config.lower_share * total
  match method:
    case "noisy counts":
      return decisions.on_counts(problem, release)
    case "non-negative" | "tempered":
      return decisions.on_counts(Partial(_after, problem, heat), release)
    case "linear proxy, public total":
      return decisions.linear_proxy(weights=places.weights, total=total, epsilon=epsilon)
    case "linear proxy, private total":
      return decisions.linear_proxy_private(
        weights=places.weights, max_weight=highest, lower_total=lower, epsilon=epsilon
      )
  return decisions.output_perturbation(
    weights=places.weights, max_weight=highest, lower_total=lower, epsilon=epsilon
  )


def _after(problem: Any, heat: Any, counts: Any) -> Any:
  return problem(decisions.temper(counts, temperature=heat))


def _temperature(heat: str, scale: float) -> float:
  if heat == BEST:
    return decisions.best_temperature(scale=scale)
  return float(heat or 0.0) * scale**2


def _summary(found: decisions.NonPrivateBias, budget: float, places: Districts) -> dict[str, float]:
  low, high = found.alpha_interval()
  order = np.argsort(places.counts, kind="stable")
  tenth = max(1, len(order) // SIZE_BINS)
  dollars = budget * found.bias
  return {
    "alpha": found.alpha,
    "alpha_low": low,
    "alpha_high": high,
    "mean_error": budget * float(found.error.mean()),
    "cost": decisions.cost_of_privacy(found.bias, budget=budget),
    "small_gain": float(dollars[order[:tenth]].mean()),
    "large_gain": float(dollars[order[-tenth:]].mean()),
    "small_minus_large": float(dollars[order[:tenth]].mean() - dollars[order[-tenth:]].mean()),
    "worst_loss": float(dollars.min()),
  }


def _prediction(
  found: decisions.NonPrivateBias, places: Districts, release: decisions.LaplaceRelease
) -> dict[str, float]:
  """How the second-order biases fit: a slope of 1 is a perfect fit."""
  trace = decisions.allotment_trace(places.counts, weights=places.weights)
  predicted = decisions.second_order_bias(trace, variance=release.variance)
  weight = 1 / np.maximum(found.standard_error, 1e-300) ** 2
  slope = np.sum(weight * predicted * found.bias) / np.sum(weight * predicted**2)
  return {"predicted_slope": float(slope)}


def _bins(dollars: np.ndarray, places: Districts, seed: int) -> list[dict[str, Any]]:
  bins = decisions.equal_bins(places.counts, min(SIZE_BINS, len(dollars)))
  return [
    {
      "row": "bin",
      "seed": seed,
      "children": float(np.median(places.counts[bins == b])),
      "bin_gain": float(dollars[bins == b].mean()),
      "bin_misallocated": float(np.abs(dollars[bins == b]).mean()),
    }
    for b in np.unique(bins)
  ]


def _districts(dollars: np.ndarray, places: Districts) -> list[dict[str, Any]]:
  """Every district, or every so-manieth by size where there are too many."""
  order = np.argsort(places.counts, kind="stable")
  largest = max(float(np.abs(dollars).max()), 1e-300)
  if len(order) > MOST_POINTS:
    kept = np.linspace(0, len(order) - 1, MOST_POINTS).round().astype(int)
    order = order[kept]
  return [
    {
      "row": "district",
      "name": str(places.names[i]),
      "district_size": float(places.counts[i]),
      "gain": float(dollars[i]),
      "relative_gain": float(dollars[i]) / largest,
    }
    for i in order
  ]


def _notes(config: Config) -> list[str]:
  return [
    "Computed from the true counts: for the agency's own eyes, not for release.",
    "Alpha is the largest minus the smallest bias, in shares of the money. A "
    "simulated alpha is never 0: alpha low is what is told apart from 0, all "
    "districts at once at 95%.",
    f"The lower bound of the total that a sensitivity needs is "
    f"{config.lower_share:g} of the true one, as in the thesis; an agency has "
    "to name one that is public. So is the total of the public proxy.",
    "Biases are simulated with their linear part subtracted: its mean is 0, "
    "and its spread hides biases of a millionth.",
  ]


STUDY = ex.Study(
  name="decisions.allotments",
  summary="Who pays when money is shared by noisy counts? Title I.",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  claims=CLAIMS,
  summaries=(
    Summary(
      "Dollars: error, cost of privacy, who gains",
      ("epsilon", "method", "heat"),
      ("mean_error", "cost", "small_gain", "large_gain"),
      SUMMARY,
    ),
  ),
  figures=FIGURES,
)
