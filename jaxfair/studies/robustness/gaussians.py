"""The theory of two Gaussians: Figures 6.2, 6.8 and 6.13 of the thesis.

Everything here is exact; only the random settings on which orders are checked
are drawn.
"""

import dataclasses
import math
from typing import Any

import jax
import numpy as np
from scipy import optimize, stats

from jaxfair import checks, robustness
from jaxfair.experiments.table import Table
from jaxfair.robustness import gaussians, surrogates
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check
from jaxfair.studies.protocol import Claim, Figure, Finding, Summary

People = tuple[float, float, float]  # mu_minus, mu_plus, ratio
CURVES, SETTINGS, LOSSES = "curves", "settings", "losses"
TOLERANCE = 1e-8


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings.

  Attributes:
    mu_minus: mean of class -1.
    mu_plus: mean of class +1.
    ratios: K, deviation of class +1 over that of class -1.
    epsilons: sizes of pushes.
    draws: random settings on which the orders are checked.
  """

  mu_minus: float = -1.0
  mu_plus: float = 1.0
  ratios: tuple[float, ...] = (5.0, 10.0)
  epsilons: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.4)
  draws: int = 20_000

  def __post_init__(self) -> None:
    checks.require(bool(self.ratios), "ratios is empty; give at least one")
    checks.require(bool(self.epsilons), "epsilons is empty; give at least one")
    checks.integer("draws", self.draws, low=100)
    for ratio in self.ratios:
      for epsilon in self.epsilons:
        gaussians.robust_threshold(self.mu_minus, self.mu_plus, ratio, epsilon)


def cells(config: Config) -> list[dict[str, Any]]:
  """Curves and losses for every ratio, and the random settings."""
  each: list[dict[str, Any]] = [
    {"part": part, "ratio": ratio}
    for part in (CURVES, LOSSES)
    for ratio in config.ratios
  ]
  return [*each, {"part": SETTINGS}]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """One part."""
  if cell["part"] == SETTINGS:
    return _settings(config, cell, context.key)
  people = (config.mu_minus, config.mu_plus, float(cell["ratio"]))
  return (_curves if cell["part"] == CURVES else _losses)(config, cell, people)


def _curves(config: Config, cell: protocol.Settings, people: People) -> Table:
  """The three thresholds for every epsilon, beside the numerical optimum."""
  rows: list[dict[str, Any]] = []
  for epsilon in config.epsilons:
    found = {
      "natural": (gaussians.natural_threshold(*people), _best(people, 0.0)),
      "fair": (gaussians.fair_threshold(*people), _equal(people)),
      "robust": (
        gaussians.robust_threshold(*people, epsilon),
        _best(people, epsilon),
      ),
    }
    for name, (closed, numerical) in found.items():
      rows.append(
        {"epsilon": epsilon, "classifier": name}
        | _errors(float(closed), people, epsilon)
        | {"off": abs(float(closed) - numerical)}
      )
  return _table(cell, rows)


def _losses(config: Config, cell: protocol.Settings, people: People) -> Table:
  """Fair thresholds when groups are compared by losses one trains with."""
  rows: list[dict[str, Any]] = []
  for name, loss in surrogates.LOSSES.items():
    at = robustness.equal_loss_threshold(loss, *people)
    rows += [
      {"epsilon": epsilon, "classifier": f"fair, {name} loss"}
      | _errors(at, people, epsilon)
      for epsilon in config.epsilons
    ]
  return _table(cell, rows)


def _settings(config: Config, cell: protocol.Settings, key: jax.Array) -> Table:
  """Random means, ratios and epsilons, and which orders hold there."""
  seed = int(jax.random.randint(key, (), 0, 2**31 - 1))
  rng = np.random.default_rng(seed)
  n = config.draws
  distance = np.exp(rng.uniform(math.log(0.05), math.log(12), n))
  ratio = 1 + np.exp(rng.uniform(math.log(1e-3), math.log(1e3), n))
  epsilon = distance * rng.uniform(0, 0.5, n)
  found = robustness.orderings(np.zeros(n), distance, ratio, epsilon)
  return Table(
    {name: [value] * n for name, value in cell.items()}
    | {"ratio": ratio, "epsilon": epsilon, "means_apart": distance}
    | {f"order_{k}": v.astype(float) for k, v in found._asdict().items()}
  )


def _errors(at: float, people: People, epsilon: float) -> dict[str, float]:
  minus, plus = gaussians.class_errors(at, *people)
  return {
    "threshold": at,
    "natural_error": float(gaussians.natural_error(at, *people)),
    "boundary_error": float(
      gaussians.boundary_error(at, *people, epsilon=epsilon)
    ),
    "robust_error": float(gaussians.robust_error(at, *people, epsilon=epsilon)),
    "violation": abs(float(plus - minus)),
    "distance": float(gaussians.mean_distance(at, *people)),
  }


def _best(people: People, epsilon: float) -> float:
  """The best threshold by a grid, and bisection of the error's slope."""
  low, high, ratio = people

  def slope(t: float) -> float:
    wide = stats.norm.logpdf(t + epsilon, high, ratio)
    return float(wide - stats.norm.logpdf(t - epsilon, low, 1.0))

  grid = np.linspace(low - 4 * ratio, high + 4 * ratio, 4001)
  errors = gaussians.robust_error(grid, *people, epsilon=epsilon)
  best = int(np.argmin(errors))
  ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
  return float(optimize.brentq(slope, *ends, xtol=1e-14))


def _equal(people: People) -> float:
  low, high, _ = people

  def apart(t: float) -> float:
    minus, plus = gaussians.class_errors(t, *people)
    return float(plus - minus)

  return float(optimize.brentq(apart, low - 1, high + 1, xtol=1e-14))


def _table(cell: protocol.Settings, rows: list[dict[str, Any]]) -> Table:
  names = rows[0]
  return Table(
    {key: [value] * len(rows) for key, value in cell.items()}
    | {name: [row[name] for row in rows] for name in names}
  )


def in_order(order: str, stated: str | None = None) -> Check:
  """An order holds in every random setting for which it is stated.

  The interval is Clopper and Pearson's for the share of such settings.
  """

  def check(table: Table) -> Finding:
    rows = table.where(part=SETTINGS)
    words = "share of random settings in order"
    if not len(rows):
      return Finding(words, why="no random settings")
    kept = np.ones(len(rows), bool)
    if stated is not None:
      kept = rows[f"order_{stated}"] == 1
    good = int(rows[f"order_{order}"][kept].sum())
    total = int(kept.sum())
    if not total:
      return Finding(words, why="no setting within the stated range")
    interval = stats.binomtest(good, total).proportion_ci(method="exact")
    low, high = float(interval.low), float(interval.high)
    return Finding(
      f"{words}, {good} of {total}", good / total, low, high, good == total
    )

  return check


def _closed_forms(table: Table) -> Finding:
  off = float(table.where(part=CURVES)["off"].max())
  words = "largest distance of a closed form to the numerical optimum"
  return Finding(words, off, off, off, off < TOLERANCE)


def _ramp_is_best(table: Table) -> Finding:
  """Robust error with the ramp, minus the least of the other losses."""
  rows = table.where(part=LOSSES)
  apart = []
  for _, own in rows.split("ratio", "epsilon"):
    error = dict(zip(own["classifier"], own["robust_error"], strict=True))
    ramp = error.pop("fair, ramp loss")
    error.pop("fair, zero_one loss")  # cannot be trained with
    apart.append(min(error.values()) - ramp)
  least = float(min(apart))
  words = "least lead of the ramp's robust error over log and exponential"
  return Finding(words, least, least, least, least > 0)


STUDY = protocol.Study(
  name="robustness.gaussians",
  summary="Two Gaussians: where must a fair, a robust, a natural model cut?",
  config=Config,
  cells=cells,
  run=run,
  notes=lambda config: [
    "Everything is exact up to rounding; an interval of one point says so. "
    "Random settings: distance of the means 0.05 to 12, ratio of the "
    "deviations up to 1,000, pushes up to half the distance.",
  ],
  claims=(
    Claim(
      "closed forms",
      "The closed forms are the optima, to 1e-8",
      _closed_forms,
      source="(6.9), (6.10)",
    ),
    Claim(
      "thresholds",
      "mu_minus + epsilon <= fair <= natural <= robust <= mu_plus - epsilon, "
      "within the stated range",
      in_order("thresholds", "stated"),
      source="Theorem 6.1",
    ),
    Claim(
      "thresholds, everywhere",
      "fair <= natural <= robust, for every ratio and epsilon",
      in_order("inner"),
    ),
    Claim(
      "robust errors",
      "The fair threshold has the largest robust error, within the stated "
      "range",
      in_order("robust_errors", "stated"),
      source="Corollary 6.1",
    ),
    Claim(
      "robust errors, everywhere",
      "It has the largest robust error for every ratio and epsilon",
      in_order("robust_errors"),
    ),
    Claim(
      "boundary errors",
      "The fair threshold has the largest boundary error, within the stated "
      "range",
      in_order("boundary_errors", "stated_boundary"),
      source="Corollary 6.2",
    ),
    Claim(
      "boundary errors, everywhere",
      "It has the largest boundary error for every ratio and epsilon",
      in_order("boundary_errors"),
    ),
    Claim(
      "distances",
      "Fair is nearest to the people, robust is furthest",
      in_order("distances"),
      source="Theorem 6.2",
    ),
    Claim(
      "ramp",
      "Of the losses that can be trained with, the ramp's fair threshold has "
      "the smallest robust error",
      _ramp_is_best,
      source="Fig. 6.8",
    ),
  ),
  figures=(
    Figure(
      "thresholds",
      "Robustness pulls the threshold up, fairness down",
      x="epsilon",
      y="threshold",
      color="classifier",
      facet="ratio",
      mark="line",
      where={"part": CURVES},
    ),
    Figure(
      "boundary",
      "Boundary errors: the fair threshold is where people are dense",
      x="epsilon",
      y="boundary_error",
      color="classifier",
      facet="ratio",
      mark="line",
      where={"part": CURVES},
    ),
    Figure(
      "losses",
      "Robust errors of fair thresholds, by the loss that is made equal",
      x="epsilon",
      y="robust_error",
      color="classifier",
      facet="ratio",
      mark="line",
      where={"part": LOSSES},
    ),
  ),
  summaries=(
    Summary(
      "Thresholds and errors",
      by=("ratio", "epsilon", "classifier"),
      values=(
        "threshold", "natural_error", "boundary_error", "robust_error",
        "violation", "distance",
      ),
      where={"part": (CURVES, LOSSES)},
    ),
  ),
)  # fmt: skip
