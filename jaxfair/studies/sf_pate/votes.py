"""How often privately voted groups are right, against randomised response."""

import dataclasses
import math

import numpy as np

from jaxfair import accounting, analysis, checks, pate
from jaxfair.experiments.people import set_name
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check, difference_above, in_each, trend
from jaxfair.studies.protocol import Claim, Figure, Finding, Summary
from jaxfair.studies.sf_pate import common, methods

VOTE, RESPONSE, GUESS = "vote", "M", "largest group"


@dataclasses.dataclass(frozen=True)
class Config(common.Config):
  """Settings.

  Attributes:
    ensembles: numbers of teachers, K.
  """

  ensembles: tuple[int, ...] = (50, 150, 300)

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.require(
      0 < len(set(self.ensembles)) == len(self.ensembles),
      f"ensembles={list(self.ensembles)} must be different numbers of teachers",
    )
    for count in self.ensembles:
      checks.integer("ensembles", count, low=2)


def cells(config: Config) -> list[protocol.Settings]:
  """One cell per data set and number of teachers."""
  for one in config.sets:
    people = common.load_set(config, set_name(one))[0]
    most = dataclasses.replace(config, teachers=max(config.ensembles))
    common.sizes(most, people)
  return [
    {"data": set_name(one), "teachers": count}
    for one in config.sets
    for count in config.ensembles
  ]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """Expected shares of right groups at every epsilon, on every split."""
  people, note = common.load_set(config, cell["data"])
  context.say(note)
  rows = []
  splits = common.splits(config, people, context)
  for seed, split in enumerate(splits):
    counts, asked, _ = methods.group_counts(
      config, people, split, int(cell["teachers"])
    )
    group = np.asarray(split.train.group)[asked]
    for epsilon in config.epsilons:
      voted = _voted(config, counts, group, epsilon)
      keep = accounting.randomised_response_keep(
        epsilon=epsilon, categories=people.num_groups
      )
      largest = np.bincount(group).max() / len(group)
      rows += [
        {**cell, "seed": seed, "epsilon": epsilon, "by": by, **values}
        for by, values in (
          (RESPONSE, {"right": keep}),
          (GUESS, {"right": largest}),
          (VOTE, voted),
        )
      ]
  names = list(dict.fromkeys(name for row in rows for name in row))
  return Table({name: [row.get(name) for row in rows] for name in names})


def _voted(
  config: Config, counts: np.ndarray, group: np.ndarray, epsilon: float
) -> dict[str, float]:
  """Expected over the noise: how often votes are right, and the bounds."""
  sigma = pate.vote_sigma(
    epsilon=epsilon, delta=config.delta, queries=config.queries
  )
  chance = analysis.answer_probabilities(counts, sigma=sigma)
  own = group[:, None] == np.arange(counts.shape[1])
  apart = np.abs(chance - own).mean(axis=0)  # eta of each group, expected
  _, agreed = analysis.vote_eta(counts, sigma=sigma)
  shares = chance.mean(axis=0)
  return {
    "right": float(chance[own].mean()),
    "eta": float(apart.max()),
    "eta_by_agreement": float(agreed.max()),
    "bound": _capped(
      analysis.fair_student_bound(0.0, eta=apart, shares=shares)
    ),
    "bound_by_agreement": _capped(
      analysis.fair_student_bound(0.0, eta=agreed, shares=shares)
    ),
  }


def _capped(bound: float) -> float:
  """A violation is 1 at most, whatever the theorem."""
  return min(bound, 1.0) if math.isfinite(bound) else 1.0


def _notes(config: Config) -> list[str]:
  return [
    f"The groups of {config.queries} people by noisy vote, at delta "
    f"{config.delta:g}, beside everybody's by randomised response (M, delta "
    "0) and beside calling everybody a member of the largest group. Shares "
    "are expected over the noise, exactly, given the votes.",
    "The bound is what Theorem 1 adds to the violation of a student that is "
    "perfectly fair for the voted groups: with eta as it is, and with eta by "
    "the teachers' agreement, which is an estimate and no bound where teachers "
    "agree on what is wrong. 1 says nothing.",
    "Measured without noise: for those who hold the data.",
  ]


def _most(check: Check) -> Check:
  """The check with the most teachers."""

  def chosen(table: Table) -> Finding:
    if "teachers" not in table:
      return Finding("", why="the table has no column teachers")
    return check(table.where(teachers=max(table["teachers"])))

  return chosen


def _above(rival: str) -> Check:
  return _most(
    in_each(
      "data",
      difference_above("right", first={"by": VOTE}, second={"by": rival}),
    )
  )


def _named(table: Table) -> Table:
  """Adds names of lines."""
  if "by" not in table:
    return table
  pairs = zip(table["by"], table["teachers"], strict=True)
  return table.plus(
    line=[f"{k:g} teachers" if by == VOTE else by for by, k in pairs]
  )


STUDY = protocol.Study(
  name="sf_pate.votes",
  summary="how often privately voted groups are right, over epsilon and K",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  summaries=(
    Summary(
      "Right groups, and what the theorem makes of them",
      by=("data", "teachers", "epsilon"),
      values=("right", "eta", "bound", "bound_by_agreement"),
      where={"by": VOTE},
    ),
  ),
  claims=(
    Claim(
      "votes beat randomised response",
      "Voted groups are right more often than those of M (most teachers)",
      _above(RESPONSE),
      "Fig. 3",
    ),
    Claim(
      "votes beat guessing",
      "Voted groups are right more often than calling everybody a member of "
      "the largest group (most teachers)",
      _above(GUESS),
    ),
    Claim(
      "more teachers",
      "With more teachers voted groups are right more often",
      in_each(
        "data", trend("right", "teachers", rises=True, where={"by": VOTE})
      ),
      "Fig. 3",
    ),
  ),
  figures=(
    Figure(
      "right", "How often private groups are right", x="epsilon", y="right",
      mark="line", color="line", facet="data", log_x=True,
      y_title="share of right groups",
    ),
  ),
  derive=_named,
)  # fmt: skip
