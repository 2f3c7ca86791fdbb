"""Why a group pays: what clipping, noise and votes do to each group, as columns of a table.

Computed beside the accuracy of a model, without noise: for those who hold the data.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxfair import analysis
from jaxfair.analysis import _by_group
from jaxfair.analysis._by_group import ByGroup
from jaxfair.experiments import Table
from jaxfair.experiments._measures import EVERYONE
from jaxfair.fairness import _groups
from jaxfair.methods import Plan, Population
from jaxfair.methods._teachers import NonPrivateVotes
from jaxfair.pate import NO_ANSWER
from jaxfair.types import Examples, Fit, Model, Params, PerExampleLoss

# Columns, with what they are called. A group pays where its value is above everybody's.
REASONS = {
  "flip_rate": "share of its labels that noise changes",
  "vote_disagreement": "share of teachers outvoted on its people",
  "refused_rate": "share of its queries that get no answer",
  "clipped_rate": "share of its gradients that are clipped",
  "gradient_norm": "gradient norm",
  "closeness": "closeness to the decision boundary",
  "input_norm": "input norm",
  "top_eigenvalue": "curvature of its loss",
  "trace": "Hessian trace",
}


def with_reasons(table: Table, why: dict[str, ByGroup], groups: Sequence[str]) -> Table:
  """Adds reasons with a leading axis of seeds to the rows of `group_table`."""
  if not why:
    return table
  values = {
    name: np.concatenate([value.group, np.asarray(value.population)[:, None]], axis=1)
    for name, value in why.items()
  }
  seeds = range(len(next(iter(values.values()))))
  columns = Table.from_arrays({}, {"seed": seeds, "group": [*groups, EVERYONE]}, values)
  return table.join(columns, ("seed", "group"), **{name: name for name in values})


def reasons_of(plan: Plan, fitted: Fit, own: Population, test: Examples) -> dict[str, ByGroup]:
  """All reasons that a method's fit can tell, for every group; pure if the fit is."""
  groups = plan.sizes.groups
  clip = getattr(plan.config, "l2_clip", None)
  found = gradient_reasons(plan.model, plan.loss, fitted.params, test, groups, l2_clip=clip)
  if isinstance(fitted.trace, NonPrivateVotes) and own.public is not None:
    found |= vote_reasons(fitted.trace.counts, fitted.trace.labels, own.public.group, groups)
  return found


def gradient_reasons(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  people: Examples,
  num_groups: int,
  *,
  l2_clip: Any = None,
) -> dict[str, ByGroup]:
  """Norms and closeness of each group at a model; pure."""

  def mean(values: Any) -> ByGroup:
    return _by_group.mean_by_group(values, people.group, num_groups)

  norms = analysis.norms(model, loss, params, people, num_groups=num_groups)
  found = {
    "closeness": mean(analysis.closeness(model.apply(params, people.x))),
    "input_norm": norms.mean_input,
    "gradient_norm": norms.mean_gradient,
  }
  if l2_clip is not None:
    found["clipped_rate"] = mean(1.0 * (norms.gradients > l2_clip))
  return found


def vote_reasons(counts: Any, labels: Any, group: Any, num_groups: int) -> dict[str, ByGroup]:
  """What noise and refusals do to each group's queries."""
  counts, labels = jnp.asarray(counts), jnp.asarray(labels)
  group = jnp.asarray(group)[: len(counts)]
  answered = labels != NO_ANSWER
  flipped = answered & (labels != jnp.argmax(counts, -1))

  def share(which: Any, of: Any) -> ByGroup:
    sums = _groups.group_counts(group, num_groups, 1.0 * which)
    sizes = _groups.group_counts(group, num_groups, 1.0 * of)
    return ByGroup(sums / sizes, jnp.sum(which) / jnp.sum(of))

  outvoted = 1 - jnp.max(counts, -1) / jnp.sum(counts, -1)
  return {
    "flip_rate": share(flipped, answered),
    "vote_disagreement": _by_group.mean_by_group(outvoted, group, num_groups),
    "refused_rate": share(~answered, jnp.ones_like(answered)),
  }
