"""Who pays when money is shared by noisy counts? (Figs 2.2 and 2.5 to 2.8.)"""

from typing import Annotated, Any

import jax
import numpy as np
from jax.tree_util import Partial

from jaxfair import _fields, decisions
from jaxfair import experiments as ex
from jaxfair.decisions import (
  _bias,
  _curvature,
  _mechanisms,
  _postprocess,
  _problems,
  _proxies,
  _remedies,
  _ways,
)
from jaxfair.experiments import Positive, _claims, _statistics, _study
from jaxfair.studies.decisions.places import OWNER_ONLY, Districts, Places, load_districts

SIZE_BINS = 10
MOST_POINTS = 1500
COUNTS, CLIPPED, TEMPERED = "noisy counts", "non-negative", "tempered"
# Its temperature is chosen by looking at the true counts, as the thesis may have done.
PEEKED = "tempered for the true counts (not private)"
PUBLIC, PRIVATE = "linear proxy, public total", "linear proxy, private total"
OUTPUTS = "output perturbation"
METHODS = (COUNTS, CLIPPED, TEMPERED, PEEKED, PUBLIC, PRIVATE, OUTPUTS)
# What `jaxfair decide` calls those that do not temper.
WAYS = {
  COUNTS: "as-released",
  PUBLIC: "public-total",
  PRIVATE: "private-total",
  OUTPUTS: "noisy-shares",
}
BEST = "best"  # of the temperatures, by equation 2.3
SUMMARY = {"row": "summary"}
AT_BEST = SUMMARY | {"heat": ("", BEST)}
UNFAIR = AT_BEST | {"method": (COUNTS, CLIPPED, TEMPERED, PEEKED, PRIVATE)}


class Config(ex.Settings):
  """Settings of the allotment study."""

  data: Places = Places(name="saipe", state="New York")  # whose counts
  epsilons: ex.Sweep[Positive] = (0.001, 0.01, 0.1)  # privacy of one child, for each release
  methods: ex.Sweep[Annotated[str, _fields.OneOf(METHODS)]] = METHODS  # from noisy counts to shares
  temperatures: tuple[Positive, ...] = (0.1, 2.0)  # in (noise scale)^2, besides the best one
  # The public lower bound of the total, as a share of it; the thesis takes 0.9.
  lower_share: Annotated[float, _fields.Within(0.0, 1.0, open_low=True)] = 0.9
  budget: Positive = _problems.BUDGET  # dollars a year, of the whole nation
  draws: Annotated[int, _fields.Within(100)] = 10_000  # of the noise, per seed
  seeds: ex.Count = 5  # independent simulations, for intervals


def cells(config: Config) -> list[_study.Cell]:
  """One cell per epsilon, method and temperature."""
  load_districts(config.data)  # a missing file is found before any work
  heats = {TEMPERED: [BEST, *map(str, config.temperatures)], PEEKED: [BEST]}
  return [
    {"method": method, "epsilon": epsilon, "heat": heat}
    for epsilon in config.epsilons
    for method in config.methods
    for heat in heats.get(method, [""])
  ]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one cell: summaries, bins by size, and districts."""
  places = load_districts(config.data)
  context.say(places.note)
  epsilon = float(cell["epsilon"])
  release = decisions.LaplaceRelease.for_epsilon(epsilon)
  seen = places.counts if cell["method"] == PEEKED else None
  heat = _temperature(str(cell["heat"]), float(release.scale), seen)
  mechanism = _mechanism(config, str(cell["method"]), places, epsilon, heat)
  problem = decisions.allotment(places.weights)
  budget = config.budget * places.share
  rows: list[dict[str, Any]] = []
  total = np.zeros(len(places.counts))
  for seed in range(config.seeds):
    key = jax.random.fold_in(context.key, seed)
    found = decisions.simulate_mechanism(
      mechanism, problem, places.counts, draws=config.draws, key=key
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
) -> _mechanisms.Mechanism:
  if method in (CLIPPED, TEMPERED, PEEKED):
    problem = Partial(_after, decisions.allotment(places.weights), heat)
    return _mechanisms.on_counts(problem, decisions.LaplaceRelease.for_epsilon(epsilon))
  case = _ways.sharing_case(places.counts, places.weights, lower_share=config.lower_share)
  return case.way(WAYS[method], epsilon).mechanism


def _after(problem: Any, heat: Any, counts: Any) -> Any:
  return problem(decisions.temper(counts, temperature=heat))


def _temperature(heat: str, scale: float, seen: np.ndarray | None) -> float:
  if heat == BEST:
    return _postprocess.best_temperature(scale=scale, values=seen)
  return float(heat or 0.0) * scale**2


def _summary(found: _bias.NonPrivateBias, budget: float, places: Districts) -> dict[str, float]:
  low, high = found.alpha_interval()
  order = np.argsort(places.counts, kind="stable")
  tenth = max(1, len(order) // SIZE_BINS)
  dollars = budget * found.bias
  small, large = dollars[order[:tenth]].mean(), dollars[order[-tenth:]].mean()
  return {
    "alpha": found.alpha,
    "alpha_low": low,
    "alpha_high": high,
    "mean_error": budget * float(found.error.mean()),
    "cost": _remedies.cost_of_privacy(found.bias, budget=budget),
    "small_gain": float(small),
    "large_gain": float(large),
    "small_minus_large": float(small - large),
    "worst_loss": float(dollars.min()),
  }


def _prediction(
  found: _bias.NonPrivateBias, places: Districts, release: decisions.LaplaceRelease
) -> dict[str, float]:
  """How the second-order biases fit: a slope of 1 is a perfect fit."""
  trace = _curvature.allotment_trace(places.counts, weights=places.weights)
  predicted = _curvature.second_order_bias(trace, variance=release.variance)
  weight = 1 / np.maximum(found.standard_error, 1e-300) ** 2
  slope = np.sum(weight * predicted * found.bias) / np.sum(weight * predicted**2)
  return {"predicted_slope": float(slope)}


def _bins(dollars: np.ndarray, places: Districts, seed: int) -> list[dict[str, Any]]:
  bins = _proxies.equal_bins(places.counts, min(SIZE_BINS, len(dollars)))
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
  """Every district, or some at equal distances by size where there are too many."""
  order = np.argsort(places.counts, kind="stable")
  if len(order) > MOST_POINTS:
    order = order[np.linspace(0, len(order) - 1, MOST_POINTS).round().astype(int)]
  return [
    {
      "row": "district",
      "name": str(places.names[i]),
      "district_size": float(places.counts[i]),
      "gain": float(dollars[i]),
    }
    for i in order
  ]


def _notes(config: Config) -> list[str]:
  return [
    OWNER_ONLY,
    "Alpha is the largest minus the smallest bias, in shares of the money. A simulated alpha is "
    "never 0: alpha low is what is told apart from 0, all districts at once at 95%.",
    f"The lower bound of the total that a sensitivity needs is {config.lower_share:g} of the true "
    "one, as in the thesis; an agency has to name a public one.",
    "Biases are simulated with their linear part subtracted: its mean is 0, and its spread hides "
    "biases of a millionth.",
  ]


def _more(value: str, first: str, second: str) -> _claims.Check:
  """One method has the larger value, at the smallest epsilon."""
  lead = ex.difference(value, {"method": first}, {"method": second})
  return (lead > 0).at(epsilon=min, **SUMMARY)


def _errs_alike(first: str, second: str) -> _claims.Check:
  """The first method's mean error is less than 10% above the second's, at every epsilon."""
  more = ex.difference("mean_error", {"method": first}, {"method": second}, relative=True)
  return (more < 0.1).at(**AT_BEST).in_each("epsilon")


def _is_fair(method: str) -> _claims.Check:
  """The largest lower end of alpha's interval is 0; rounding in float64 is not unfairness."""
  told = f"alpha of {method}: what is told apart from 0"
  largest = _statistics.exact(told, lambda table: table["alpha_low"].max())
  return (largest < 1e-12).at(method=method, **SUMMARY)


def _least_fall(table: ex.Table) -> float:
  """The least ratio of alphas of neighboring epsilons."""
  means = {key[0]: float(part["alpha"].mean()) for key, part in table.split("epsilon")}
  if len(means) < 2:
    raise _claims.CannotTellError("fewer than two epsilons")
  ordered = np.array([means[epsilon] for epsilon in sorted(means)])
  return float((ordered[:-1] / ordered[1:]).min())


def _cooler(method: str) -> _claims.Check:
  """A way to temper is fairer than plain non-negativity."""
  return ex.difference("alpha", {"method": CLIPPED}, {"method": method, "heat": BEST}) > 0


def _than_hottest(table: ex.Table) -> dict[str, _claims.Check]:
  heats = [heat for heat in table.unique("heat") if heat not in ("", BEST)]
  if not heats:
    raise _claims.CannotTellError("no other temperature was run")
  top = max(heats, key=float)
  return {top: (ex.difference("alpha", {"heat": top}, {"heat": BEST}) > 0).at(method=TEMPERED)}


SMALL_GAIN = {"smallest": ex.mean("small_gain") > 0, "largest": ex.mean("large_gain") < 0}
FALL = _statistics.exact("least ratio of alphas of neighboring epsilons", _least_fall)
TEMPERATURES = {
  "tempering": (TEMPERED, "all counts, which is public,"),
  "tempering, peeked": (PEEKED, "the true counts, which is not private,"),
}
SLOPE = ex.mean("predicted_slope").at(epsilon=max, **SUMMARY, method=COUNTS)

STUDY = ex.Study(
  name="decisions.allotments",
  summary="Who pays when money is shared by noisy counts? Title I.",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  claims={
    "small gain: With non-negative counts the smallest tenth of the districts gains and the "
    "largest loses, on average [Fig. 2.2]": _claims.every(
      SMALL_GAIN, epsilon=min, method=CLIPPED, **SUMMARY
    ),
    "small lose: Without post-processing large districts gain and small ones lose, by the "
    "curvature of the allotment": (ex.mean("small_minus_large") < 0).at(
      epsilon=min, method=COUNTS, **SUMMARY
    ),
    "epsilon: Less privacy is fairer [Section 2.6.1, epsilon]": (FALL > 1).at(
      method=CLIPPED, **SUMMARY
    ),
    "second order: The second-order bias is the simulated one, to 2% "
    "[Section 2.6.1]": SLOPE.between(0.98, 1.02),
    "proxy fair: The linear proxy with a public total is fair [Fig. 2.5]": _is_fair(PUBLIC),
    "proxy nearly fair: With a private total the linear proxy is fairer than noisy counts "
    "[Fig. 2.5, proxy]": _more("alpha", COUNTS, PRIVATE),
    "outputs fair: Output perturbation is fair [Fig. 2.5]": _is_fair(OUTPUTS),
    "outputs err: Output perturbation errs more than noisy counts [Fig. 2.5, outputs]": _more(
      "mean_error", OUTPUTS, COUNTS
    ),
    "proxy errs alike: The linear proxy with a public total errs as noisy counts do, within 10% "
    "[Fig. 2.5, proxy]": _errs_alike(PUBLIC, COUNTS),
    "private proxy errs alike: The linear proxy with a private total errs as noisy counts do, "
    "within 10% [Fig. 2.5, proxy]": _errs_alike(PRIVATE, COUNTS),
  }
  | {
    f"{name}: At the temperature of equation 2.3 over {told} the allotment is fairer than with "
    "plain non-negativity, whatever epsilon [Fig. 2.7]": _cooler(method)
    .at(**SUMMARY)
    .in_each("epsilon")
    for name, (method, told) in TEMPERATURES.items()
  }
  | {
    f"{name}, error: At the temperature of equation 2.3 over {told} the allotment errs as with "
    "plain non-negativity, within 10% [Fig. 2.7, error]": _errs_alike(method, CLIPPED)
    for name, (method, told) in TEMPERATURES.items()
  }
  | {
    "too hot: Too much heat is less fair than the best [Fig. 2.6]": _claims.every(
      _than_hottest, epsilon=min, **SUMMARY
    ),
    "cost of clipping: Non-negativity raises the cost of privacy [Fig. 2.8]": _more(
      "cost", CLIPPED, COUNTS
    ),
    "cost of the proxy: The linear proxy with a private total lowers the cost of privacy "
    "[Fig. 2.8]": _more("cost", COUNTS, PRIVATE),
  },
  figures=(
    ex.points(
      "bias_by_size: Who gains and who loses, by size",
      "gain ~ district_size, method | epsilon",
      "Each point a district. Above 0 the noise pays on average, below it takes (Fig. 2.2).",
      where={"row": "district", "method": (COUNTS, CLIPPED, PEEKED)},
      log="x",
      zero=True,
    ),
    ex.lines(
      "alpha: Unfairness by method",
      "alpha ~ epsilon, method",
      "Largest minus smallest bias, as a share of the money (Figs 2.5, 2.7). The other methods "
      "have none but rounding errors.",
      where=UNFAIR,
      log="xy",
    ),
    ex.lines(
      "error: Mean absolute error by method",
      "mean_error ~ epsilon, method",
      "What a district's money is off by in a single release.",
      where=AT_BEST,
      log="xy",
    ),
    ex.lines(
      "temperature: What tempering does to small and large districts",
      "bin_misallocated ~ children, heat | epsilon",
      "Mean |bias| by size (Fig. 2.6). No heat is plain non-negativity; numbers are in (noise "
      "scale)^2.",
      where={"row": "bin", "method": (CLIPPED, TEMPERED)},
      log="xy",
    ),
    ex.bars(
      "cost: Cost of privacy",
      "cost ~ method | epsilon",
      "What must be added so that nobody loses on average (Fig. 2.8). The other methods cost "
      "nothing.",
      where=UNFAIR,
      log="y",
    ),
  ),
  titles={
    "district_size": "children in district",
    "gain": "expected dollars a year",
    **dict.fromkeys(("mean_error", "bin_misallocated", "cost"), "dollars a year"),
  },
  summaries=(
    ex.summary(
      "Dollars: error, cost of privacy, who gains",
      "mean_error, cost, small_gain, large_gain ~ epsilon, method, heat",
      SUMMARY,
    ),
  ),
)
