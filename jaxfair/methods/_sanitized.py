"""A sanitized epsilon of votes as part of a release: planned, charged, drawn, written down.

A release is charged the epsilon for any votes, which includes the cost of the figure. The figure
is an additional statement: what the answers and the figure reveal at the votes that were cast.
"""

import json
import math
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxfair import _whole_files, accounting, checks, pate
from jaxfair.accounting import Budget
from jaxfair.accounting._sanitizing_plan import SanitizingPlan
from jaxfair.methods._method import Sizes

FILE = "vote_epsilons.json"
OVERHEAD = 0.1  # of the epsilon for any votes that the figure may cost
FEWEST = 20  # queries that a student can learn from


class NonPrivateEpsilons(NamedTuple):
  """What the answers cost, told in three ways; not for release side by side.

  Attributes:
    any_votes: holds for every data set: the one to publish where no figure is drawn.
    sanitized: a figure for these votes with noise, its own price included; NaN where none is drawn.
    not_publishable: computed from the votes; never for release.
  """

  any_votes: float
  sanitized: float
  not_publishable: float


def noise_of(rule: pate.GnMax | pate.ConfidentGnMax) -> dict[str, Any]:
  """The noises and the threshold of a rule, by their names in `accounting`."""
  if isinstance(rule, pate.GnMax):
    return {"sigma": rule.sigma}
  return {
    "sigma": rule.sigma_answer,
    "threshold": rule.threshold,
    "sigma_threshold": rule.sigma_threshold,
  }


def labels_budget(budget: Budget) -> Budget:
  """What is left for the answers where a figure is published: epsilon / (1 + OVERHEAD)."""
  return Budget(budget.epsilon / (1 + OVERHEAD), budget.delta)


def plan_figure(
  settings: Any, sizes: Sizes, budget: Budget, rule_of: Callable[[int], Any], *, most: int
) -> tuple[int, SanitizingPlan]:
  """The largest number of queries whose figure is expected to be at most `sanitized_epsilon`.

  Fewer queries have less noise each at the same epsilon for any votes, so votes hide better behind
  a consensus. Numbers are tried from the largest on, each 0.8 times the one before.

  Args:
    settings: with `sanitized_epsilon`, `consensus` and the number of teachers.
    sizes: of the people.
    budget: of answers and figure together, for any votes.
    rule_of: the rule for a number of queries, within `labels_budget(budget)`.
    most: queries at most; exactly that many if the settings name a number.

  Privacy:
    Everything here is public: numbers, and a guess of the consensus that must come from public
    people or another data set. A wrong guess costs utility, not privacy. `max_overhead` of the
    planner keeps answers and figure together within (1 + OVERHEAD) times what the answers cost
    alone, hence within the budget.
  """
  aim, queries, least = settings.sanitized_epsilon, most, (math.inf, most)
  while True:
    found = accounting.plan_sanitizing(
      num_queries=queries,
      num_teachers=settings.num_teachers,
      num_classes=sizes.classes,
      delta=budget.delta,
      consensus=settings.consensus,
      max_overhead=OVERHEAD,
      **noise_of(rule_of(queries)),
    )
    if found is not None and found.expected is not None:
      if found.expected <= aim:
        return queries, found
      least = min(least, (found.expected, queries))
    if settings.queries is not None or queries <= FEWEST:
      break
    queries = max(FEWEST, int(0.8 * queries))
  told = f"{least[0]:.3g} is, from {least[1]} queries"
  if math.isinf(least[0]):
    told = "no figure helps"
  raise checks.ArgumentError(
    f"sanitized_epsilon={aim:g} is not to be expected where {settings.consensus:g} of "
    f"{settings.num_teachers} teachers agree ({told}); raise it or num_teachers, or leave it out "
    "and publish the epsilon for any votes"
  )


def write_epsilons(epsilons: NonPrivateEpsilons, folder: pathlib.Path) -> None:
  """Keeps the three epsilons in a folder that is not for release."""
  told = {name: value for name, value in epsilons._asdict().items() if not math.isnan(value)}
  _whole_files.write_whole(folder / FILE, json.dumps(told), mode=0o600)


def read_epsilons(folder: pathlib.Path) -> dict[str, float] | None:
  """What `write_epsilons` wrote, without what was not drawn; None for a method without votes."""
  path = folder / FILE
  return json.loads(path.read_text()) if path.exists() else None
