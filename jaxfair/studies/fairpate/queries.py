"""The query phase alone: labels over threshold, margin and epsilon.

Also what the paper's charge hides: at the epsilon it would claim, how many
labels it gives, and what these cost when every argmax is charged.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, pate
from jaxfair.experiments.table import Table
from jaxfair.fairness import demographic_disparity
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check, difference_above, mean_above, trend
from jaxfair.studies.fairpate import config as settings
from jaxfair.studies.fairpate.claims import at
from jaxfair.studies.fairpate.config import Floats, Repetition, several
from jaxfair.studies.protocol import Claim, Figure, Summary

SOUND, PAPER = "every argmax", "as in the paper"
METHODS = {"any": "fairpate", "allowed": "fairpate_allowed"}


@dataclasses.dataclass(frozen=True)
class Config(settings.Ensemble):
  """Settings of a grid of query phases.

  Attributes:
    epsilon: budgets, at `delta`.
    max_gap: margins.
    thresholds: T, in votes.
  """

  epsilon: Floats = (1.0, 2.0, 5.0, 10.0)
  max_gap: Floats = (0.01, 0.05, 0.1, 0.2)
  thresholds: Floats = (30.0, 60.0, 90.0)

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.positive("epsilon", self.epsilon)
    checks.positive("max_gap", self.max_gap)
    self.check_threshold("thresholds", self.thresholds)


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All settings of one repetition, one program for each choice."""
  own = settings.repetition(config, cell, context)
  grid = np.array(
    [
      (t, g)
      for t in several(config.thresholds)
      for g in several(config.max_gap)
    ]
  )
  key = jax.random.fold_in(context.key, 1)
  tables = []
  for choice in METHODS:
    found = _asked(
      own.counts, own.public.group, jnp.asarray(grid), key,
      _Program(
        own.people.num_groups, config.sigma_threshold, config.sigma_answer,
        config.min_count, config.disparity, config.guard, choice,
      ),
    )  # fmt: skip
    host = jax.tree.map(np.asarray, found)
    for i, (threshold, max_gap) in enumerate(grid):
      one = jax.tree.map(lambda leaf, i=i: leaf[i], host)
      setting = {
        "data": own.people.name, **cell, "choice": choice,
        "method": METHODS[choice], "threshold": threshold, "max_gap": max_gap,
      }  # fmt: skip
      tables.append(_rows(config, own, one, setting))
  return Table.concat(tables)


def _rows(
  config: Config, own: Repetition, run: pate.FairAnswers, setting: Any
) -> Table:
  """One row per budget and charge: where it stops, and what that costs."""
  test, answer = 0.5 / config.sigma_threshold**2, config.sigma_answer**-2
  spent = np.cumsum(run.tested * test + run.chosen * answer)
  given = run.outcome == pate.Outcome.ANSWERED
  claimed = np.cumsum(run.tested * test + (given & run.chosen) * answer)
  rows = []
  for epsilon in several(config.epsilon):
    rho = accounting.zcdp_budget(epsilon=epsilon, delta=config.delta)
    charges = {SOUND: spent}
    if setting["choice"] == "any":  # over allowed classes nothing is refused
      charges[PAPER] = claimed
    for charge, total in charges.items():
      before = np.concatenate([[0.0], total[:-1]])
      done = before + test + answer <= rho  # stops before it could exceed
      kept = given & done
      cost = float(spent[done][-1]) if done.any() else 0.0
      rows.append(
        setting
        | {
          "charge": charge,
          "epsilon": epsilon,
          "answered": float(kept.sum()),
          "asked": float((run.tested & done).sum()),
          "unfair": float((run.outcome == pate.Outcome.UNFAIR)[done].sum()),
          "free": float((run.outcome == pate.Outcome.REFUSED_FREE)[done].sum()),
          "true_epsilon": accounting.zcdp_epsilon(rho=cost, delta=config.delta),
          "gap": _gap(config, own, run.labels, kept),
          "accuracy": _accuracy(own, run.labels, kept),
          "coverage": float(kept.mean()),
        }
      )
  return Table({name: [row[name] for row in rows] for name in rows[0]})


def _gap(config: Config, own: Repetition, labels: Any, kept: Any) -> float:
  """The largest disparity of the labels; NaN if a group has none."""
  counts = np.zeros((own.people.num_groups, own.people.num_classes))
  np.add.at(counts, (np.asarray(own.public.group)[kept], labels[kept]), 1)
  return float(demographic_disparity(counts, notion=config.disparity).max())


def _accuracy(own: Repetition, labels: Any, kept: Any) -> float:
  """Share of the labels that are true; NaN for none."""
  truth = np.asarray(own.public.y)
  return float((labels == truth)[kept].mean()) if kept.any() else np.nan


@dataclasses.dataclass(frozen=True)
class _Program:
  """What fixes the program of a grid."""

  num_groups: int
  sigma_threshold: float
  sigma_answer: float
  min_count: int
  disparity: Any
  guard: Any
  choice: Any


@functools.partial(jax.jit, static_argnames=("program",))
def _asked(
  counts: Any, groups: Any, grid: jax.Array, key: jax.Array, program: _Program
) -> pate.FairAnswers:
  def one(setting: jax.Array) -> pate.FairAnswers:
    return pate.fair_gnmax(
      counts, groups, **vars(program), threshold=setting[0],
      max_gap=setting[1], key=key,
    )  # fmt: skip

  return jax.vmap(one)(grid)


def _notes(config: Config) -> list[str]:
  return [
    f'Charge "{SOUND}" is sound: refused labels cost as much as given ones, '
    "and epsilon is a budget that no vote was looked at to tell.",
    f'Charge "{PAPER}" gives refused labels away. Its epsilon is no guarantee; '
    "true_epsilon is what this run spent when all is charged. It depends on "
    "the votes and is no guarantee, either: that is the budget, epsilon.",
    "free: queries refused before looking at votes, since every class would "
    "break the margin. accuracy: share of labels that are true; coverage: "
    "share of queries that got one.",
  ]


def _of(charge: str, choice: str = "any") -> dict[str, str]:
  return {"charge": charge, "choice": choice}


def _hidden(table: Table) -> Table:
  if "true_epsilon" not in table:
    return table
  return table.plus(
    hidden=table["true_epsilon"] - table["epsilon"],
    panel=[f"margin {gap:g}" for gap in table["max_gap"]],
    line=[
      f"{charge}, {choice}"
      for charge, choice in zip(table["charge"], table["choice"], strict=True)
    ],
  )


def _tight(check: Check) -> Check:
  return at("max_gap", min, check)


STUDY = protocol.Study(
  name="fairpate.queries",
  summary="Labels of FairPATE's query phase over T, margin and epsilon",
  config=Config,
  cells=settings.cells,
  run=run,
  derive=_hidden,
  notes=_notes,
  points={"charge": SOUND},
  summaries=(
    Summary(
      "Labels within a budget",
      by=("charge", "choice", "threshold", "max_gap", "epsilon"),
      values=(
        "answered",
        "unfair",
        "free",
        "true_epsilon",
        "gap",
        "accuracy",
      ),
    ),
  ),
  claims=(
    Claim(
      "epsilon",
      "More queries are answered as epsilon grows",
      trend("answered", "epsilon", rises=True, where=_of(SOUND)),
      "Appendix J, Fig. 12",
    ),
    Claim(
      "margin",
      "More queries are answered as the margin grows",
      trend("answered", "max_gap", rises=True, where=_of(SOUND)),
      "Appendix J, Fig. 12, 13",
    ),
    Claim(
      "threshold",
      "More queries are answered as the threshold falls",
      trend("answered", "threshold", rises=False, where=_of(SOUND)),
      "Appendix J, Fig. 13",
    ),
    Claim(
      "free labels",
      "At the tightest margin, the paper's charge gives more labels at the "
      "same number for epsilon",
      _tight(difference_above("answered", first=_of(PAPER), second=_of(SOUND))),
    ),
    Claim(
      "what the charge hides",
      "At the tightest margin, these labels cost more epsilon than the paper's "
      "charge tells",
      _tight(mean_above("hidden", where=_of(PAPER))),
    ),
    Claim(
      "allowed classes",
      "At the tightest margin and the same sound budget, the argmax over the "
      "allowed classes gives more labels than the paper's rule",
      _tight(
        difference_above(
          "answered", first=_of(SOUND, "allowed"), second=_of(SOUND)
        )
      ),
    ),
    Claim(
      "allowed classes, right",
      "and its labels are as often true",
      _tight(
        difference_above(
          "accuracy",
          -0.01,
          first=_of(SOUND, "allowed"),
          second=_of(SOUND),
        )
      ),
    ),
  ),
  figures=(
    Figure(
      "answered",
      "Labels within a budget",
      x="epsilon",
      y="answered",
      mark="line",
      color="line",
      facet="panel",
      log_x=True,
    ),
    Figure(
      "gap",
      "Disparity of the labels within a budget",
      x="epsilon",
      y="gap",
      mark="line",
      color="line",
      facet="panel",
      log_x=True,
      caption="Few labels are all of the cold start, which keeps no margin.",
    ),
    Figure(
      "true_epsilon",
      "What the labels cost when all is charged",
      x="epsilon",
      y="true_epsilon",
      mark="line",
      color="line",
      facet="panel",
      log_x=True,
      log_y=True,
    ),
    Figure(
      "threshold",
      "Labels over the threshold",
      x="threshold",
      y="answered",
      mark="line",
      color="panel",
      facet="epsilon",
      where=_of(SOUND),
    ),
  ),
)
