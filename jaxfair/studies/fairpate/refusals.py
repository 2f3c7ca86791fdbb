"""Whose queries are refused: by the consensus test and by FairPATE's margin, group by group.

Section 6 of the paper leaves it open. The claims were fixed before the study was run.
"""

from typing import Any

import jax
import numpy as np

from jaxfair import experiments as ex
from jaxfair._fields import OneOrMany, several
from jaxfair.experiments import Positive, _study
from jaxfair.fairness import demographic_disparity
from jaxfair.pate import Outcome
from jaxfair.studies.fairpate import charging, common

NOBODY = "test alone"


class Config(common.OneThreshold):
  """Settings: one budget by the sound charge, and margins."""

  epsilon: Positive = 10.0
  max_gap: OneOrMany[Positive] = (0.01, 0.05)


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """One row for each margin, group and true class of the queries."""
  own = common.split(config, cell, context)
  votes = own.votes(key=jax.random.fold_in(context.key, 0))
  priced = charging.Charges(config, votes)
  margins = {NOBODY: common.NO_MARGIN} | {f"margin {gap:g}": gap for gap in several(config.max_gap)}
  settings = [(config.threshold, gap) for gap in margins.values()]
  phases = own.phases(votes, settings, "any", key=jax.random.fold_in(context.key, 1))
  true, group = (np.asarray(ids) for ids in (own.public.y, own.public.group))
  winner = phases[0].labels  # with the same noise: what a refused query would have been given
  people = own.people
  counts = np.zeros((people.num_groups, people.num_classes))
  np.add.at(counts, (group, true), 1)
  excess = np.asarray(demographic_disparity(counts, notion=config.disparity))
  rows = []
  for name, phase in zip(margins, phases, strict=True):
    asked = priced.asked(phase, config.threshold, charging.SOUND)(config.epsilon)
    for z, k in np.ndindex(*counts.shape):
      here = asked & (group == z) & (true == k)
      kind = phase.outcome[here]
      unfair, given = (asked & (phase.outcome == one) for one in (Outcome.UNFAIR, Outcome.ANSWERED))
      rows.append(
        {
          "data": people.name,
          **cell,
          "margin": name,
          "group": people.group_names[z],
          "true_class": people.class_names[k],
          "excess": excess[z, k],
          "asked": float(here.sum()),
          "answered_rate": _share(kind == Outcome.ANSWERED),
          "unsure_rate": _share(kind == Outcome.NOT_CONFIDENT),
          "unfair_rate": _share(np.isin(kind, (Outcome.UNFAIR, Outcome.REFUSED_FREE))),
          "refused_accuracy": _share((winner == true)[unfair]),
          "given_accuracy": _share((winner == true)[given]),
        }
      )
  return ex.Table.from_rows(rows)


def _share(what: Any) -> float:
  return float(what.mean()) if what.size else np.nan


def _derive(table: ex.Table) -> ex.Table:
  if "refused_accuracy" not in table:
    return table
  return table.plus(refused_gain=table["refused_accuracy"] - table["given_accuracy"])


FAIR = {"margin": ex.but(NOBODY)}
CELLS = ("margin", "group", "true_class")
CLAIMS = {
  "the test: The consensus test alone refuses one group more often than another": (
    ex.spread("unsure_rate", "group") > 0.02
  ).at(margin=NOBODY),
  "the margin: FairPATE's margin refuses one group as unfair more often than another": (
    (ex.spread("unfair_rate", "group") > 0.02).in_each("margin").at(**FAIR)
  ),
  "who is refused: People of the groups and classes that are over-represented among the true "
  "labels are refused as unfair more often": (
    ex.correlation("excess", "unfair_rate", points=CELLS, within=("margin",)) > 0
  ).at(**FAIR),
  "refused labels are true: Labels refused as unfair are as often true as those that are given": (
    (ex.mean("refused_gain") > -0.02).in_each("margin").at(**FAIR)
  ),
}
STUDY = common.study(
  "fairpate.refusals",
  "Whose queries the consensus test and FairPATE's margin refuse",
  Config,
  run,
  derive=_derive,
  notes=lambda config: [
    f"Queries within epsilon {config.epsilon:g}, every argmax charged. Rates are shares of a "
    "group's queries of one true class; excess is the disparity of the true labels of all "
    "queries. For those who hold the votes: nothing here has noise."
  ],
  summaries=(
    ex.summary("Refusals", "answered_rate, unsure_rate, unfair_rate ~ margin, group, true_class"),
    ex.summary("Are refused labels true?", "refused_accuracy, given_accuracy ~ margin"),
  ),
  claims=CLAIMS,
  figures=(
    ex.bars("unfair: Refused as unfair", "unfair_rate ~ group, true_class | margin", where=FAIR),
    ex.bars("unsure: Refused by the test", "unsure_rate ~ group, true_class | margin"),
  ),
)
