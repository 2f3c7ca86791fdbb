"""The query phase alone: labels over threshold, margin and epsilon.

It also measures what the paper's charge leaves out: how many labels it gives at
the epsilon it would claim, and what they cost when every argmax is charged.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, pate
from jaxfair import experiments as ex
from jaxfair._fields import OneOrMany, several
from jaxfair.experiments import Positive, _study
from jaxfair.fairness import demographic_disparity
from jaxfair.pate import Outcome, _fair
from jaxfair.pate._fair import Choice
from jaxfair.studies.fairpate import common
from jaxfair.studies.fairpate.common import Repetition

SOUND, PAPER = "every argmax", "as in the paper"
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
  settings = list(itertools.product(several(config.thresholds), several(config.max_gap)))
  rows: list[dict[str, Any]] = []
  for choice, method in METHODS.items():
    key = jax.random.fold_in(context.key, 1)
    # Without a budget: the phase within one is the beginning of this one.
    found = _ask(config, own.people.num_groups, choice, votes, own.public.group, settings, key)
    host = jax.tree.map(np.asarray, found)
    for i, (threshold, max_gap) in enumerate(settings):
      one = jax.tree.map(lambda leaf, i=i: leaf[i], host)
      setting = {"data": own.people.name, **cell, "choice": choice}
      setting |= {"method": method, "threshold": threshold, "max_gap": max_gap}
      rows += (setting | row for row in _rows(config, own, one, choice))
  return ex.Table.from_rows(rows)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _ask(
  config: Config,
  num_groups: int,
  choice: Choice,
  votes: Any,
  groups: Any,
  settings: Any,
  key: jax.Array,
) -> _fair.FairAnswers:
  """The query phase for [S, 2] thresholds and margins, with the same noise."""

  def one(threshold: jax.Array, max_gap: jax.Array) -> _fair.FairAnswers:
    return pate.fair_gnmax(
      votes,
      groups,
      num_groups=num_groups,
      threshold=threshold,
      sigma_threshold=config.sigma_threshold,
      sigma_answer=config.sigma_answer,
      choice=choice,
      key=key,
      **vars(config.rule(max_gap)),
    )

  return jax.vmap(one)(*jnp.asarray(settings).T)


def _rows(
  config: Config, own: Repetition, run: _fair.FairAnswers, choice: str
) -> Iterator[dict[str, Any]]:
  """One row per budget and charge: where it stops, and what that costs."""
  test, answer = 0.5 / config.sigma_threshold**2, config.sigma_answer**-2
  given = run.outcome == Outcome.ANSWERED
  spent = np.cumsum(run.tested * test + run.chosen * answer)
  charges = {SOUND: spent}
  if choice == "any":  # over allowed classes nothing is refused
    claimed = run.tested * test + (given & run.chosen) * answer
    charges[PAPER] = np.cumsum(claimed)
  truth = np.asarray(own.public.y)
  for epsilon in several(config.epsilon):
    rho = accounting.zcdp_budget(epsilon=epsilon, delta=config.delta)
    for charge, total in charges.items():
      before = np.concatenate([[0.0], total[:-1]])
      done = before + test + answer <= rho  # stops before it could exceed
      kept = given & done
      cost = float(spent[done][-1]) if done.any() else 0.0
      right = (run.labels == truth)[kept]
      yield {
        "charge": charge,
        "epsilon": epsilon,
        "answered": float(kept.sum()),
        "asked": float((run.tested & done).sum()),
        "unfair": float((run.outcome == Outcome.UNFAIR)[done].sum()),
        "free": float((run.outcome == Outcome.REFUSED_FREE)[done].sum()),
        "true_epsilon": accounting.zcdp_epsilon(rho=cost, delta=config.delta),
        "gap": _gap(config, own, run.labels, kept),
        "accuracy": float(right.mean()) if kept.any() else np.nan,
        "coverage": float(kept.mean()),
      }


def _gap(config: Config, own: Repetition, labels: Any, kept: Any) -> float:
  """The largest disparity of the labels; NaN if a group has none."""
  counts = np.zeros((own.people.num_groups, own.people.num_classes))
  np.add.at(counts, (np.asarray(own.public.group)[kept], labels[kept]), 1)
  return float(demographic_disparity(counts, notion=config.disparity).max())


def _derive(table: ex.Table) -> ex.Table:
  """Adds the epsilon that a charge hides, and the names that figures use."""
  if "true_epsilon" not in table:
    return table
  return table.plus(
    hidden=table["true_epsilon"] - table["epsilon"],
    panel=[f"margin {gap:g}" for gap in table["max_gap"]],
    line=[f"{row['charge']}, {row['choice']}" for row in table.rows()],
  )


def _notes(config: Config) -> list[str]:
  return [
    f'Charge "{SOUND}" is sound: refused labels cost as much as given ones, and epsilon is a '
    "budget that does not depend on the votes.",
    f'Charge "{PAPER}" counts nothing for refused labels. Its epsilon is no guarantee; '
    "true_epsilon is what this run spent when everything is charged. It depends on the votes, "
    "so it is no guarantee, either; the budget, epsilon, is one under the sound charge.",
    "free: queries refused before looking at votes, since every class would break the margin. "
    "accuracy: share of labels that are true; coverage: share of queries that got one.",
  ]


_SOUND = {"charge": SOUND, "choice": "any"}
_PAPER = {"charge": PAPER, "choice": "any"}
_ALLOWED = {"charge": SOUND, "choice": "allowed"}


_labels = functools.partial(ex.trend, "answered")
CLAIMS = {
  "epsilon: More queries are answered as epsilon grows [Appendix J, Fig. 12]": (
    _labels("epsilon") > 0
  ).at(**_SOUND),
  "margin: More queries are answered as the margin grows [Appendix J, Fig. 12, 13]": (
    _labels("max_gap") > 0
  ).at(**_SOUND),
  "threshold: More queries are answered as the threshold falls [Appendix J, Fig. 13]": (
    _labels("threshold") < 0
  ).at(**_SOUND),
  "free labels: At the tightest margin, the paper's charge gives more labels at the same number "
  "for epsilon": (ex.difference("answered", _PAPER, _SOUND) > 0).at(max_gap=min),
  "what the charge hides: At the tightest margin, labels that the paper's charge gives cost more "
  "epsilon than it claims": (ex.mean("hidden") > 0).at(**_PAPER, max_gap=min),
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
      "threshold: Labels over the threshold", "answered ~ threshold, panel | epsilon", where=_SOUND
    ),
  ),
)
