"""How often privately voted groups are right, against randomized response."""

import dataclasses
import math
from typing import Annotated

import numpy as np

from jaxfair import _fields, data
from jaxfair import experiments as ex
from jaxfair.accounting import _randomized_response
from jaxfair.analysis import _fairness_transfer
from jaxfair.experiments import _claims, _study
from jaxfair.methods._sf_pate import SfPateS
from jaxfair.studies.sf_pate import common

VOTE, RESPONSE, GUESS = "vote", "M", "largest group"


class Config(common.Config):
  """Settings."""

  ensembles: ex.Sweep[Annotated[int, _fields.Within(2)]] = (50, 150, 300)  # numbers of teachers, K


def _precheck(config: Config, *sets: data.Dataset) -> None:
  most = dataclasses.replace(config, num_teachers=max(config.ensembles))
  common.precheck(most, *sets)


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """Expected shares of right groups at every epsilon, on every split."""
  config = dataclasses.replace(config, num_teachers=int(cell["teachers"]))
  rows = []
  for seed, split in enumerate(common.splits(config, cell, context)):
    plans = split.plans(common.SF_S)
    asked = SfPateS().votes(plans[0], split.people, key=split.key)
    group, groups = np.asarray(asked.queries.group), split.people.sizes.groups
    largest = np.bincount(group).max() / len(group)
    for epsilon, plan in zip(config.epsilons, plans, strict=True):
      [sigma] = plan.config.sigmas
      keep = _randomized_response.randomized_response_keep(epsilon=epsilon, categories=groups)
      rows += [
        {**cell, "seed": seed, "epsilon": epsilon, "by": by, **values}
        for by, values in (
          (RESPONSE, {"right": keep}),
          (GUESS, {"right": largest}),
          (VOTE, _voted(asked.counts, group, sigma)),
        )
      ]
  return ex.Table.from_rows(rows)


def _voted(counts: np.ndarray, group: np.ndarray, sigma: float) -> dict[str, float]:
  """Expected over the noise: how often votes are right, and the bounds."""
  chance = _fairness_transfer.answer_probabilities(counts, sigma=sigma)
  own = group[:, None] == np.arange(counts.shape[1])
  apart = np.abs(chance - own).mean(axis=0)  # eta of each group, expected
  _, agreed = _fairness_transfer.vote_eta(counts, sigma=sigma)
  shares = chance.mean(axis=0)
  bound, by_agreement = (
    _fairness_transfer.fair_student_bound(0.0, eta=eta, shares=shares) for eta in (apart, agreed)
  )
  return {
    "right": float(chance[own].mean()),
    "eta": float(apart.max()),
    "eta_by_agreement": float(agreed.max()),
    "bound": _capped(bound),
    "bound_by_agreement": _capped(by_agreement),
  }


def _capped(bound: float) -> float:
  """A violation is 1 at most, whatever the theorem."""
  return min(bound, 1.0) if math.isfinite(bound) else 1.0


def _notes(config: Config) -> list[str]:
  return [
    f"The groups of {config.queries} people by noisy vote, at delta {config.delta:g}, beside "
    "everybody's by randomized response (M, delta 0) and beside calling everybody a member of "
    "the largest group. Shares are expected over the noise, exactly, given the votes.",
    "The bound is what Theorem 1 adds to the violation of a student that is perfectly fair for "
    "the voted groups: with eta as it is, and with eta by the teachers' agreement, which is an "
    "estimate and no bound where teachers agree on what is wrong. A bound of 1 says nothing.",
    "Measured without noise: for those who hold the data.",
  ]


def _named(table: ex.Table) -> ex.Table:
  """Adds names of lines."""
  pairs = zip(table["by"], table["teachers"], strict=True)
  return table.plus(line=[f"{k:g} teachers" if by == VOTE else by for by, k in pairs])


def _above(rival: str) -> _claims.Check:
  more = ex.difference("right", {"by": VOTE}, {"by": rival}) > 0
  return more.at(teachers=max).in_each("data")


STUDY = common.study(
  "sf_pate.votes",
  "how often privately voted groups are right, over epsilon and K",
  Config,
  run,
  cells=ex.grid(data="sets", teachers="ensembles"),
  precheck=_precheck,
  derive=_named,
  notes=_notes,
  summaries=(
    ex.summary(
      "Right groups, and what the theorem makes of them",
      "right, eta, bound, bound_by_agreement ~ data, teachers, epsilon",
      {"by": VOTE},
    ),
  ),
  claims={
    "votes beat randomized response: Voted groups are right more often than those of M (most "
    "teachers) [Fig. 3]": _above(RESPONSE),
    "votes beat it at the least epsilon: At the least epsilon, voted groups are right more often "
    "than those of M (most teachers) [Fig. 3]": _above(RESPONSE).at(epsilon=min),
    "votes beat guessing: Voted groups are right more often than calling everybody a member of the "
    "largest group (most teachers)": _above(GUESS),
    "more teachers: With more teachers voted groups are right more often [Fig. 3, teachers]": (
      ex.trend("right", "teachers") > 0
    )
    .at(by=VOTE)
    .in_each("data"),
  },
  figures=(
    ex.lines(
      "right: How often private groups are right",
      "right ~ epsilon, line | data",
      log="x",
      y_title="share of right groups",
    ),
  ),
)
