"""What the labels of one PATE student cost, by every analysis."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxfair import accounting
from jaxfair.experiments import Table, summary

ANY, THESE = "any votes", "these votes"
SANITISED, TOGETHER = "these votes, sanitised", "any votes, sanitised included"
MAY_BE_PUBLISHED = {
  ANY: "yes, if no sanitised figure is drawn",
  THESE: "no: a diagnosis, computed from private votes",
  SANITISED: "yes, once; its own price is the next line",
  TOGETHER: "yes: labels and sanitised figure together",
}

SUMMARY = summary(
  "Epsilon of the labels, by every analysis, and whether it may be published",
  "label_epsilon ~ teachers, analysis, published",
  {"analysis": tuple(MAY_BE_PUBLISHED)},
)


def epsilon_table(
  settings: Mapping[str, Any],
  counts: np.ndarray,
  *,
  sigma: float,
  delta: float,
  consensus: float,
  key: jax.Array,
) -> Table:
  """One row per analysis of GNMax labels with discrete noise.

  Args:
    settings: columns of every row.
    counts: [n, C] votes on the queries, all of which get a label.
    sigma: of the noise.
    delta: in (0, 1).
    consensus: share of teachers that agree, guessed without looking at votes.
    key: for the noise of the sanitised figure.

  Privacy:
    The row of `THESE` is a function of private votes and says so.
  """
  queries, num_classes = counts.shape
  noise: Any = {"sigma": sigma, "delta": delta}
  events = accounting.pate_events(sigma=sigma, num_queries=queries)
  guarantee = accounting.composed_guarantee(
    events, delta=delta, relation=accounting.Relation.REPLACE_ONE
  )
  own = accounting.pate_diagnosis(counts, discrete=True, **noise)
  plan = accounting.plan_sanitising(
    num_queries=queries,
    num_teachers=int(counts[0].sum()),
    num_classes=num_classes,
    consensus=consensus,
    **noise,
  )
  any_votes = accounting.round_up(guarantee.epsilon)
  # Without a plan no figure is drawn: what holds for any votes is published.
  shown = together = any_votes
  if plan is not None:
    figure = accounting.sanitised_epsilon(counts, plan=plan, key=key, discrete=True, **noise)
    shown = figure.epsilon
    together = accounting.round_up(figure.guarantee.epsilon)
  found = {
    ANY: any_votes,
    THESE: accounting.round_up(own.not_for_release),
    SANITISED: shown,
    TOGETHER: together,
  }
  return Table.from_rows(
    {**settings, "analysis": name, "published": MAY_BE_PUBLISHED[name], "label_epsilon": epsilon}
    for name, epsilon in found.items()
  )
