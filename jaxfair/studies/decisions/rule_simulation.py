"""Simulations of the minority-language rule: its errors, ratios of counts, learned proxies."""

from typing import Annotated, Any

import jax
import numpy as np
from scipy import stats

from jaxfair import _fields, decisions
from jaxfair import experiments as ex
from jaxfair.decisions import _mechanisms, _problems, _proxies, _theory
from jaxfair.studies.decisions.places import Jurisdictions

# A person may be in all three counts of a jurisdiction, or in two of a ratio.
NESTED, PAIR = 3, 2
COUNTIES = {  # limited English, citizens
  "Loving, TX: 4 of 80": (4.0, 80.0),
  "Terrell, TX: 30 of 600": (30.0, 600.0),
  "Union, NM: 160 of 3305": (160.0, 3305.0),
}
FLOOR = 1.0  # one person: a public bound that gives ratios a mean
RULE, LINEAR, SVM = "the rule", "linear regression", "linear SVM"
LEARNERS = {LINEAR: _proxies.linear_regression, SVM: _proxies.linear_svm}
PEEKED = " on true counts (not private)"  # as the thesis learns its proxies
Rows = list[dict[str, Any]]


class Simulation(ex.Settings):
  """How much is simulated."""

  bins: ex.Count = 9  # of the piece-wise proxies
  draws: Annotated[int, _fields.Within(100)] = 10_000  # of the noise, per seed
  seeds: ex.Count = 5  # independent simulations, for intervals


def _rule(counts: Any) -> Any:
  return _problems.minority_language(*counts)


def _many(counts: Any) -> Any:
  s, sp, _ = counts
  return (sp > _problems.SHARE * s) | (sp > _problems.NUMBER)


def _unschooled(counts: Any) -> Any:
  _, sp, spe = counts
  return spe > _problems.ILLITERACY * sp


def errors(config: Simulation, places: Jurisdictions, epsilon: float, key: jax.Array) -> Rows:
  """Wrong decisions of the rule and of its parts, place by place."""
  release = decisions.LaplaceRelease.for_epsilon(epsilon, sensitivity=NESTED)
  either = _problems.either(_many, _unschooled)
  rules = {"rule": _rule, "many": _many, "unschooled": _unschooled, "or": either}
  s, sp, spe = places.counts
  many, unschooled = (np.asarray(part(places.counts)) for part in (_many, _unschooled))
  truth = np.char.add(np.where(many, "T", "F"), np.where(unschooled, "T", "F")).astype(str)
  # How many noise scales the nearest count is from where a part would turn.
  share = np.maximum(sp - _problems.SHARE * s, sp - _problems.NUMBER)
  distance = np.minimum(np.abs(share), np.abs(spe - _problems.ILLITERACY * sp))
  distance = distance / float(release.scale)
  pairs = [pair for pair in ("FF", "FT", "TF", "TT") if np.any(truth == pair)]
  rows: Rows = []
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
    above = errors["or"] - np.maximum(errors["many"], errors["unschooled"])
    neither = {"or_of_two": errors["or"], "or_minus_worse": above}
    rows.append(
      {
        "row": "summary",
        "seed": seed,
        "alpha": found["rule"].alpha,
        "mean_error": float(errors["rule"].mean()),
        "rank_correlation": float(stats.spearmanr(distance, errors["rule"]).statistic),
      }
      | {
        name: float(np.mean(own[truth == "FF"])) if "FF" in pairs else np.nan
        for name, own in neither.items()
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
      for pair in pairs
    ]
  rows += [
    {
      "row": "place",
      "name": str(places.names[i]),
      "truth": str(truth[i]),
      "citizens": float(s[i]),
      "distance": float(max(distance[i], 1e-3)),
      "error": float(total[i] / config.seeds),
    }
    for i in range(len(s))
  ]
  return rows


def ratios(config: Simulation, epsilon: float, key: jax.Array) -> Rows:
  """Bias and spread of three ratios that are nearly the same."""
  release = decisions.LaplaceRelease.for_epsilon(epsilon, sensitivity=PAIR)
  x, y = np.array([*COUNTIES.values()]).T
  exact = x * _theory.floored_inverse_mean(y, scale=release.scale, floor=FLOOR) - x / y
  rows = []
  for seed in range(config.seeds):
    own = jax.random.fold_in(key, seed)
    found = decisions.simulate(_floored, (x, y), release=release, draws=config.draws, key=own)
    rows += [
      {
        "row": "ratio",
        "seed": seed,
        "county": name,
        "ratio_bias": float(found.bias[i]),
        "exact_bias": float(exact[i]),
        "ratio_spread": float(np.sqrt(found.variance[i])),
      }
      for i, name in enumerate(COUNTIES)
    ]
  return rows


def _floored(counts: Any) -> Any:
  return _problems.ratio(*counts, floor=FLOOR)


def proxies(config: Simulation, places: Jurisdictions, epsilon: float, key: jax.Array) -> Rows:
  """Alpha within bins: the rule, and proxies learned from a release or from true counts."""
  whole = decisions.LaplaceRelease.for_epsilon(epsilon, sensitivity=NESTED)
  half = decisions.LaplaceRelease.for_epsilon(epsilon / 2, sensitivity=NESTED)
  rows: Rows = []
  for seed in range(config.seeds):
    key_fit, key_use = jax.random.split(jax.random.fold_in(key, seed))
    with jax.enable_x64(True):
      learned_from = half(places.counts, key=key_fit)
    bins = _proxies.equal_bins(learned_from[1], config.bins)
    mechanisms = {RULE: _mechanisms.on_counts(_rule, whole)}
    for name, learner in LEARNERS.items():
      proxy = _proxies.fit_proxy(_rule, learned_from, learner=learner, num_bins=config.bins)
      mechanisms[name] = _mechanisms.on_counts(proxy, half)
      peeked = _proxies.fit_proxy(_rule, places.counts, learner=learner, num_bins=config.bins)
      mechanisms[name + PEEKED] = _mechanisms.on_counts(peeked, whole)
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
