"""The query phase alone: labels over threshold, margin and epsilon, by three charges.

It measures what the paper's charge leaves out: how many labels it gives at the epsilon it would
claim, and what they cost when every argmax is charged.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from jaxfair import checks
from jaxfair import experiments as ex
from jaxfair._fields import OneOrMany, several
from jaxfair.experiments import Positive, _study
from jaxfair.fairness import demographic_disparity
from jaxfair.pate import Outcome
from jaxfair.pate._fair import Choice, FairAnswers
from jaxfair.studies.fairpate import charging, common
from jaxfair.studies.fairpate.charging import CHARGES, FREE, PAPER, SOUND
from jaxfair.studies.fairpate.common import Repetition

METHODS: dict[Choice, str] = {"any": "fairpate", "allowed": "fairpate_allowed"}


class Config(common.Ensemble):
  """Settings of a grid of query phases: budgets, margins, and thresholds T in votes."""

  epsilon: OneOrMany[Positive] = (1.0, 2.0, 5.0, 10.0)
  max_gap: OneOrMany[Positive] = (0.01, 0.05, 0.1, 0.2)
  thresholds: OneOrMany[float] = (30.0, 60.0, 90.0)

  def check(self) -> None:
    """The thresholds can be reached."""
    super().check()
    remedy = "no vote of so few teachers would reach it"
    most = self.num_teachers + self.sigma_threshold
    checks.number("thresholds", self.thresholds, high=most, remedy=remedy)


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All settings of one repetition, one program for each choice."""
  own = common.split(config, cell, context)
  votes = own.votes(key=jax.random.fold_in(context.key, 0))
  priced = charging.Charges(config, votes)
  settings = list(itertools.product(several(config.thresholds), several(config.max_gap)))
  rows: list[dict[str, Any]] = []
  for choice, method in METHODS.items():
    found = own.phases(votes, settings, choice, key=jax.random.fold_in(context.key, 1))
    for (threshold, max_gap), phase in zip(settings, found, strict=True):
      setting = {"data": own.people.name, **cell, "choice": choice}
      setting |= {"method": method, "threshold": threshold, "max_gap": max_gap}
      rows += (setting | row for row in _rows(own, priced, phase, threshold, choice))
  return ex.Table.from_rows(rows)


def _rows(
  own: Repetition, priced: charging.Charges, phase: FairAnswers, threshold: float, choice: str
) -> Iterator[dict[str, Any]]:
  """One row per budget and charge: where it stops, and what that costs."""
  given = phase.outcome == Outcome.ANSWERED
  true = phase.labels == np.asarray(own.public.y)
  # Over allowed classes nothing is refused: there is one charge.
  for charge in CHARGES if choice == "any" else (SOUND,):
    asked = priced.asked(phase, threshold, charge)
    for epsilon in several(own.config.epsilon):
      done = asked(epsilon)
      kept = given & done
      yield {
        "charge": charge,
        "epsilon": epsilon,
        "answered": float(kept.sum()),
        "asked": float((phase.tested & done).sum()),
        "unfair": float((phase.outcome == Outcome.UNFAIR)[done].sum()),
        "free": float((phase.outcome == Outcome.REFUSED_FREE)[done].sum()),
        "true_epsilon": priced.spent(phase, done),
        "gap": _gap(own, phase.labels, kept),
        "accuracy": float(true[kept].mean()) if kept.any() else np.nan,
        "coverage": float(kept.mean()),
      }


def _gap(own: Repetition, labels: Any, kept: Any) -> float:
  """The largest disparity of the labels; NaN if a group has none."""
  counts = np.zeros((own.people.num_groups, own.people.num_classes))
  np.add.at(counts, (np.asarray(own.public.group)[kept], labels[kept]), 1)
  return float(demographic_disparity(counts, notion=own.config.disparity).max())


def _derive(table: ex.Table) -> ex.Table:
  """Adds the epsilon that a charge hides, and the names that figures use."""
  if "true_epsilon" not in table:
    return table
  return table.plus(
    hidden=table["true_epsilon"] - table["epsilon"],
    over=table["gap"] - table["max_gap"],
    panel="margin {max_gap:g}",
    line="{charge}, {choice}",
  )


def _notes(config: Config) -> list[str]:
  return [
    *charging.TOLD,
    "true_epsilon is what this run spent when every test and argmax is charged for any votes. It "
    "depends on the votes, so it is no guarantee either; the budget, epsilon, is one under the "
    "sound charge.",
    "free: queries refused before looking at votes, since every class would break the margin. "
    "accuracy: share of labels that are true; coverage: share of queries that got one.",
  ]


_ANY = {"choice": "any"}
_SOUND, _PAPER, _FREE = ({"charge": charge} | _ANY for charge in (SOUND, PAPER, FREE))
_ALLOWED = {"charge": SOUND, "choice": "allowed"}


_labels = functools.partial(ex.trend, "answered")
CLAIMS = {
  "epsilon: More queries are answered as epsilon grows [Fig. 12; Fig. 14]": (
    _labels("epsilon") > 0
  ).at(**_PAPER),
  "margin: More queries are answered as the margin grows [Fig. 12, margin; Fig. 14]": (
    _labels("max_gap") > 0
  ).at(**_PAPER),
  "small epsilon: At the smallest epsilon the tightest margin is not reached by the labels "
  "[Fig. 12, small budgets]": (ex.mean("over") > 0).at(**_PAPER, epsilon=min, max_gap=min),
  "threshold: More queries are answered as the threshold falls [Fig. 13; Fig. 15]": (
    _labels("threshold") < 0
  ).at(**_PAPER),
  "sound, epsilon: With sound charges more queries are answered as epsilon grows": (
    _labels("epsilon") > 0
  ).at(**_SOUND),
  "sound, margin: With sound charges more queries are answered as the margin grows": (
    _labels("max_gap") > 0
  ).at(**_SOUND),
  "sound, threshold: With sound charges more queries are answered as the threshold falls": (
    _labels("threshold") < 0
  ).at(**_SOUND),
  "free labels: At the tightest margin, free refusals give more labels at the same number for "
  "epsilon": (ex.difference("answered", _FREE, _SOUND) > 0).at(max_gap=min),
  "what the charge hides: At the tightest margin, labels that free refusals give cost more "
  "epsilon than is claimed": (ex.mean("hidden") > 0).at(**_FREE, max_gap=min),
  "allowed classes: At the tightest margin and the same sound budget, the argmax over the allowed "
  "classes gives more labels than the paper's rule": (
    ex.difference("answered", _ALLOWED, _SOUND) > 0
  ).at(max_gap=min),
  "allowed classes, right: At the tightest margin and the same sound budget, labels of the argmax "
  "over the allowed classes are as often true as those of the paper's rule": (
    ex.difference("accuracy", _ALLOWED, _SOUND) > -0.01
  ).at(max_gap=min),
}
FEW = "Where labels are few, all are of the cold start, which keeps no margin."

STUDY = common.study(
  "fairpate.queries",
  "Labels of FairPATE's query phase over T, margin and epsilon",
  Config,
  run,
  derive=_derive,
  notes=_notes,
  points={"charge": SOUND},
  summaries=(
    ex.summary(
      "Labels within a budget",
      "answered, unfair, free, true_epsilon, gap, accuracy ~ "
      "charge, choice, threshold, max_gap, epsilon",
    ),
  ),
  claims=CLAIMS,
  figures=(
    ex.lines("answered: Labels within a budget", "answered ~ epsilon, line | panel", log="x"),
    ex.lines(
      "gap: Disparity of the labels within a budget", "gap ~ epsilon, line | panel", FEW, log="x"
    ),
    ex.lines(
      "true_epsilon: What the labels cost when everything is charged",
      "true_epsilon ~ epsilon, line | panel",
      log="xy",
    ),
    ex.lines(
      "threshold: Labels over the threshold", "answered ~ threshold, panel | epsilon", where=_PAPER
    ),
  ),
)
