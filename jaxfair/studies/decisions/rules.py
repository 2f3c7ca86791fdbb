"""Whose right is lost in the noise? Section 203 (Figs 2.3, 2.4, 2.9, 2.10)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import jax
import numpy as np
from scipy import stats

from jaxfair import decisions
from jaxfair import experiments as ex
from jaxfair.decisions import _problems
from jaxfair.experiments import Summary
from jaxfair.studies.decisions.counts import Jurisdictions, Places, load_jurisdictions
from jaxfair.studies.decisions.rule_claims import CLAIMS, FIGURES, LINEAR, RULE, SVM

ERRORS, RATIOS, PROXIES = "errors", "ratios", "proxies"
# A person may be in all three counts of a jurisdiction, or in two of a ratio.
NESTED, PAIR = 3, 2
COUNTIES = (
  ("Loving, TX: 4 of 80", 4.0, 80.0),
  ("Terrell, TX: 30 of 600", 30.0, 600.0),
  ("Union, NM: 160 of 3305", 160.0, 3305.0),
)
FLOOR = 1.0  # one person: a public bound that gives ratios a mean
LEARNERS = {LINEAR: decisions.linear_regression, SVM: decisions.linear_svm}
SYNTHETIC = Places(name="synthetic")


class Config(ex.Settings):
  """Settings of the rights study.

  Attributes:
    data: whose counts.
    made_up: add the made-up counties, which have all four truth values.
    parts: errors (Figs 2.3, 2.4 right, 2.9), ratios (Fig. 2.4), proxies
      (Fig. 2.10).
    epsilons: privacy of one citizen over all counts.
    bins: of the piece-wise proxies.
    draws: of the noise, per seed.
    seeds: independent simulations, for intervals.
  """

  data: Places = Places(name="section203")
  made_up: bool = True
  parts: ex.Sweep[Literal["errors", "ratios", "proxies"]] = ("errors", "ratios", "proxies")
  epsilons: ex.Sweep[ex.Positive] = (0.1, 1.0)
  bins: ex.Count = 9
  draws: Annotated[int, ex.Within(100)] = 10_000
  seeds: ex.Count = 5


def cells(config: Config) -> list[ex.Cell]:
  """One cell per part, set of places and epsilon."""
  load_jurisdictions(config.data)  # a missing file is found before any work
  own = config.data.name or "your file"
  sets = dict.fromkeys([own, *(["synthetic"] if config.made_up else [])])
  return [
    {"part": part, "places": places, "epsilon": epsilon}
    for part in config.parts
    for places in (["three counties"] if part == RATIOS else sets)
    for epsilon in config.epsilons
  ]


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All seeds of one cell."""
  epsilon = float(cell["epsilon"])
  if cell["part"] == RATIOS:
    rows = _ratios(config, epsilon, context.key)
  else:
    made_up = cell["places"] == "synthetic"
    places = load_jurisdictions(SYNTHETIC if made_up else config.data)
    context.say(places.note)
    part = _errors if cell["part"] == ERRORS else _proxies
    rows = part(config, places, epsilon, context.key)
  return ex.Table.from_rows({**cell, **row} for row in rows)


def _rule(counts: Any) -> Any:
  return decisions.minority_language(*counts)


def _many(counts: Any) -> Any:
  s, sp, _ = counts
  return (sp > _problems.SHARE * s) | (sp > _problems.NUMBER)


def _unschooled(counts: Any) -> Any:
  _, sp, spe = counts
  return spe > _problems.ILLITERACY * sp


def _errors(
  config: Config, places: Jurisdictions, epsilon: float, key: jax.Array
) -> list[dict[str, Any]]:
  """Wrong decisions of the rule and of its parts, place by place."""
  release = decisions.LaplaceRelease.for_epsilon(epsilon, sensitivity=NESTED)
  rules: dict[str, Callable[[Any], Any]] = {
    "rule": _rule,
    "many": _many,
    "unschooled": _unschooled,
    "or": decisions.either(_many, _unschooled),
  }
  s, sp, spe = places.counts
  many, unschooled = (np.asarray(part(places.counts)) for part in (_many, _unschooled))
  truth = np.char.add(np.where(many, "T", "F"), np.where(unschooled, "T", "F")).astype(str)
  # How many noise scales the nearest count is from where a part would turn.
  scale = float(release.scale)
  share = np.maximum(sp - _problems.SHARE * s, sp - _problems.NUMBER)
  distance = np.minimum(np.abs(share), np.abs(spe - _problems.ILLITERACY * sp))
  distance = distance / scale
  rows: list[dict[str, Any]] = []
  total = np.zeros(len(s))
  for seed in range(config.seeds):
    # The same draws for all rules: their errors are compared place by place.
    own = jax.random.fold_in(key, seed)
    found = {
      name: decisions.simulate(rule, places.counts, release=release, draws=config.draws, key=own)
      for name, rule in rules.items()
    }
    errors = {name: one.error for name, one in found.items()}
    total += errors["rule"]
    rows.append(
      {
        "row": "summary",
        "seed": seed,
        "alpha": found["rule"].alpha,
        "mean_error": float(errors["rule"].mean()),
        "rank_correlation": float(stats.spearmanr(distance, errors["rule"]).statistic),
        "or_of_two": float(np.mean(errors["or"][truth == "FF"]))
        if np.any(truth == "FF")
        else np.nan,
        "or_minus_worse": float(
          np.mean((errors["or"] - np.maximum(errors["many"], errors["unschooled"]))[truth == "FF"])
        )
        if np.any(truth == "FF")
        else np.nan,
      }
    )
    rows += [
      {
        "row": "truth",
        "seed": seed,
        "operator": operator,
        "truth": pair,
        "group_error": float(errors[name][truth == pair].mean()),
      }
      for operator, name in (("and", "rule"), ("or", "or"))
      for pair in ("FF", "FT", "TF", "TT")
      if np.any(truth == pair)
    ]
  mean = total / config.seeds
  rows += [
    {
      "row": "place",
      "name": str(places.names[i]),
      "truth": str(truth[i]),
      "citizens": float(s[i]),
      "distance": float(max(distance[i], 1e-3)),
      "error": float(mean[i]),
    }
    for i in range(len(s))
  ]
  return rows


def _ratios(config: Config, epsilon: float, key: jax.Array) -> list[dict[str, Any]]:
  """Bias and spread of three ratios that are nearly the same."""
  release = decisions.LaplaceRelease.for_epsilon(epsilon, sensitivity=PAIR)
  x, y = (np.array([county[i] for county in COUNTIES]) for i in (1, 2))
  exact = x * decisions.floored_inverse_mean(y, scale=release.scale, floor=FLOOR) - x / y
  rows = []
  for seed in range(config.seeds):
    found = decisions.simulate(
      _floored, (x, y), release=release, draws=config.draws, key=jax.random.fold_in(key, seed)
    )
    rows += [
      {
        "row": "ratio",
        "seed": seed,
        "county": name,
        "ratio_bias": float(found.bias[i]),
        "exact_bias": float(exact[i]),
        "ratio_spread": float(np.sqrt(found.variance[i])),
      }
      for i, (name, _, _) in enumerate(COUNTIES)
    ]
  return rows


def _floored(counts: Any) -> Any:
  return decisions.ratio(*counts, floor=FLOOR)


def _proxies(
  config: Config, places: Jurisdictions, epsilon: float, key: jax.Array
) -> list[dict[str, Any]]:
  """Alpha within bins: the rule, and proxies learnt from a release."""
  whole = decisions.LaplaceRelease.for_epsilon(epsilon, sensitivity=NESTED)
  half = decisions.LaplaceRelease.for_epsilon(epsilon / 2, sensitivity=NESTED)
  rows: list[dict[str, Any]] = []
  for seed in range(config.seeds):
    key_fit, key_use = jax.random.split(jax.random.fold_in(key, seed))
    with jax.enable_x64(True):
      learnt_from = half(places.counts, key=key_fit)
    bins = decisions.equal_bins(learnt_from[1], config.bins)
    mechanisms = {RULE: decisions.on_counts(_rule, whole)}
    for name, learner in LEARNERS.items():
      proxy = decisions.fit_proxy(_rule, learnt_from, learner=learner, num_bins=config.bins)
      mechanisms[name] = decisions.on_counts(proxy, half)
    for name, mechanism in mechanisms.items():
      # Against the rule, and against itself: what noise alone does.
      found, own = (
        decisions.simulate_mechanism(
          mechanism, wanted, places.counts, draws=config.draws, key=key_use
        )
        for wanted in (_rule, mechanism.decide)
      )
      rows += [
        {
          "row": "bin",
          "seed": seed,
          "method": name,
          "bin": int(b),
          "bin_alpha": float(np.ptp(found.error[bins == b])),
          "own_alpha": float(np.ptp(own.error[bins == b])),
          "bin_error": float(found.error[bins == b].mean()),
        }
        for b in range(config.bins)
      ]
  return rows


def _notes(config: Config) -> list[str]:
  return [
    "Computed from the true counts: for the agency's own eyes, not for release.",
    "One citizen may be in all three counts of a place, so the noise of each "
    "has scale 3 / epsilon (2 / epsilon for a ratio of two).",
    "The public Section 203 file holds covered places only. What is said of "
    "rights granted wrongly, of truth values and of proxies rests on made-up "
    "counties and on Alaska's file, not on the nation's.",
    f"Ratios are floored at a denominator of {FLOOR:g}: without a floor a "
    "noisy ratio has no mean, and a simulation of it settles nowhere.",
    "Proxies are learnt from a release of half the budget and applied to one "
    "of the other half; learning them from true counts would not be private.",
  ]


STUDY = ex.Study(
  name="decisions.rules",
  summary="Whose right is lost in the noise? Minority-language ballots.",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  claims=CLAIMS,
  summaries=(
    Summary(
      "Wrong decisions",
      ("places", "epsilon"),
      ("alpha", "mean_error", "rank_correlation"),
      {"row": "summary"},
    ),
    Summary(
      "Nearly the same ratio",
      ("epsilon", "county"),
      ("ratio_bias", "exact_bias", "ratio_spread"),
      {"row": "ratio"},
    ),
  ),
  figures=FIGURES,
)
