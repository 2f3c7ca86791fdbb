"""The theory of two Gaussians: Figures 6.2, 6.8 and 6.13 of the thesis.

Everything here is exact; only the random settings on which orders are checked are drawn.
"""

import math
from typing import Annotated, Any

import jax
import numpy as np
from scipy import optimize, stats

from jaxfair import _fields
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.robustness import _gaussian_orders, _gaussians, _surrogates

People = tuple[float, float, float]  # mu_minus, mu_plus, ratio
CURVES, SETTINGS, LOSSES = "curves", "settings", "losses"
TOLERANCE = 1e-8


class Config(ex.Settings):
  """Settings."""

  mu_minus: float = -1.0  # mean of class -1
  mu_plus: float = 1.0  # mean of class +1
  ratios: ex.Sweep[float] = (5.0, 10.0)  # K, deviation of class +1 over that of class -1
  epsilons: ex.Sweep[float] = (0.05, 0.1, 0.2, 0.3, 0.4)  # sizes of pushes
  draws: Annotated[int, _fields.Within(100)] = 20_000  # random settings where orders are checked

  def check(self) -> None:
    """Every ratio and epsilon has a threshold."""
    for ratio in self.ratios:
      for epsilon in self.epsilons:
        _gaussians.robust_threshold(self.mu_minus, self.mu_plus, ratio, epsilon)


def cells(config: Config) -> list[_study.Cell]:
  """Curves and losses for every ratio, and the random settings."""
  each: list[_study.Cell] = [
    {"part": part, "ratio": ratio} for part in (CURVES, LOSSES) for ratio in config.ratios
  ]
  return [*each, {"part": SETTINGS}]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """One part."""
  if cell["part"] == SETTINGS:
    return _settings(config, cell, context.key)
  people = (config.mu_minus, config.mu_plus, float(cell["ratio"]))
  rows = (_curves if cell["part"] == CURVES else _losses)(config, people)
  return ex.Table.from_rows({**cell, **row} for row in rows)


def _curves(config: Config, people: People) -> list[dict[str, Any]]:
  """The three thresholds for every epsilon, beside the numerical optimum."""
  rows: list[dict[str, Any]] = []
  for epsilon in config.epsilons:
    found = {
      "natural": (_gaussians.natural_threshold(*people), _best(people, 0.0)),
      "fair": (_gaussians.fair_threshold(*people), _equal(people)),
      "robust": (_gaussians.robust_threshold(*people, epsilon), _best(people, epsilon)),
    }
    for name, (closed, numerical) in found.items():
      rows.append(
        {"epsilon": epsilon, "classifier": name}
        | _errors(float(closed), people, epsilon)
        | {"off": abs(float(closed) - numerical)}
      )
  return rows


def _losses(config: Config, people: People) -> list[dict[str, Any]]:
  """Fair thresholds when groups are compared by losses one trains with."""
  rows: list[dict[str, Any]] = []
  for name, loss in _surrogates.LOSSES.items():
    at = _surrogates.equal_loss_threshold(loss, *people)
    rows += [
      {"epsilon": epsilon, "classifier": f"fair, {name} loss"} | _errors(at, people, epsilon)
      for epsilon in config.epsilons
    ]
  return rows


def _settings(config: Config, cell: _study.Cell, key: jax.Array) -> ex.Table:
  """Random means, ratios and epsilons, and which orders hold there."""
  seed = int(jax.random.randint(key, (), 0, 2**31 - 1))
  rng = np.random.default_rng(seed)
  n = config.draws
  distance = np.exp(rng.uniform(math.log(0.05), math.log(12), n))
  ratio = 1 + np.exp(rng.uniform(math.log(1e-3), math.log(1e3), n))
  epsilon = distance * rng.uniform(0, 0.5, n)
  found = _gaussian_orders.orderings(np.zeros(n), distance, ratio, epsilon)
  return ex.Table(
    {name: [value] * n for name, value in cell.items()}
    | {"ratio": ratio, "epsilon": epsilon, "means_apart": distance}
    | {f"order_{k}": v.astype(float) for k, v in found._asdict().items()}
  )


def _errors(at: float, people: People, epsilon: float) -> dict[str, float]:
  minus, plus = _gaussians.class_errors(at, *people)
  return {
    "threshold": at,
    "natural_error": float(_gaussians.natural_error(at, *people)),
    "boundary_error": float(_gaussians.boundary_error(at, *people, epsilon=epsilon)),
    "robust_error": float(_gaussians.robust_error(at, *people, epsilon=epsilon)),
    "violation": abs(float(plus - minus)),
    "distance": float(_gaussians.mean_distance(at, *people)),
  }


def _best(people: People, epsilon: float) -> float:
  """The best threshold by a grid, and bisection of the error's slope."""
  low, high, ratio = people

  def slope(t: float) -> float:
    wide = stats.norm.logpdf(t + epsilon, high, ratio)
    return float(wide - stats.norm.logpdf(t - epsilon, low, 1.0))

  grid = np.linspace(low - 4 * ratio, high + 4 * ratio, 4001)
  errors = _gaussians.robust_error(grid, *people, epsilon=epsilon)
  best = int(np.argmin(errors))
  ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
  return float(optimize.brentq(slope, *ends, xtol=1e-14))


def _equal(people: People) -> float:
  low, high, _ = people

  def apart(t: float) -> float:
    minus, plus = _gaussians.class_errors(t, *people)
    return float(plus - minus)

  return float(optimize.brentq(apart, low - 1, high + 1, xtol=1e-14))


def in_order(order: str, stated: str = "") -> _claims.Check:
  """An order holds in every random setting for which it is stated."""
  told, where = "share of random settings in order", {f"order_{stated}": 1.0} if stated else {}
  share = _statistics.exact(told, lambda rows: float(rows[f"order_{order}"].mean()))
  return share.at(part=SETTINGS, **where) >= 1.0


def _lead_of_the_ramp(rows: ex.Table) -> float:
  """Least of the other losses' robust errors minus the ramp's, at its worst."""
  apart = []
  for _, own in rows.split("ratio", "epsilon"):
    error = dict(zip(own["classifier"], own["robust_error"], strict=True))
    ramp = error.pop("fair, ramp loss")
    error.pop("fair, zero_one loss")  # cannot be trained with
    apart.append(min(error.values()) - ramp)
  return min(apart)


DENSE = "Boundary errors: the fair threshold is where people are dense"
EQUAL = "Robust errors of fair thresholds, by the loss that is made equal"
OFF = _statistics.exact(
  "largest distance of a closed form to the numerical optimum", lambda rows: rows["off"].max()
)
RAMP_LEAD = _statistics.exact(
  "least lead of the ramp's robust error over log and exponential", _lead_of_the_ramp
)

STUDY = ex.Study(
  name="robustness.gaussians",
  summary="Two Gaussians: where must a fair, a robust, a natural model cut?",
  config=Config,
  cells=cells,
  run=run,
  notes=lambda config: [
    "Everything is exact up to rounding; an interval of one point says so. Random settings: "
    "distance of the means 0.05 to 12, ratio of the deviations up to 1,000, pushes up to half "
    "the distance."
  ],
  claims={
    "closed forms: The closed forms are the optima, to 1e-8 [Eq. 6.9]": (OFF < TOLERANCE).at(
      part=CURVES
    ),
    "thresholds: mu_minus + epsilon <= fair <= natural <= robust <= mu_plus - epsilon, within the "
    "stated range [Theorem 6.1]": in_order("thresholds", "stated"),
    "thresholds, everywhere: fair <= natural <= robust, for every ratio and epsilon": in_order(
      "inner"
    ),
    "robust errors: The fair threshold has the largest robust error, within the stated range "
    "[Corollary 6.1]": in_order("robust_errors", "stated"),
    "robust errors, everywhere: The fair threshold has the largest robust error for every "
    "ratio and epsilon": in_order("robust_errors"),
    "boundary errors: The fair threshold has the largest boundary error, within the stated range "
    "[Corollary 6.2]": in_order("boundary_errors", "stated_boundary"),
    "boundary errors, everywhere: The fair threshold has the largest boundary error for every "
    "ratio and epsilon": in_order("boundary_errors"),
    "distances: The fair threshold is nearest to the people, the robust one is furthest "
    "[Fig. 6.2]": in_order("distances"),
    "ramp: Of the losses that can be trained with, the ramp's fair threshold has the smallest "
    "robust error [Fig. 6.8; Fig. 6.13]": (RAMP_LEAD > 0).at(part=LOSSES),
  },
  figures=tuple(
    ex.lines(told, f"{y} ~ epsilon, classifier | ratio", where={"part": part})
    for told, y, part in (
      ("thresholds: Robustness pulls the threshold up, fairness down", "threshold", CURVES),
      (f"boundary: {DENSE}", "boundary_error", CURVES),
      (f"losses: {EQUAL}", "robust_error", LOSSES),
    )
  ),
  summaries=(
    ex.summary(
      "Thresholds and errors",
      "threshold, natural_error, boundary_error, robust_error, violation, distance ~ "
      "ratio, epsilon, classifier",
      {"part": (CURVES, LOSSES)},
    ),
  ),
)
