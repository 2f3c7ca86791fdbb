"""The penalty's weights by a Lagrangian dual on public people, beside fixed weights (section 3.10).

Every round of DP-SGD ends with one step of the weights, which reads the parameters and public
people alone. So the weights are post-processing: the epsilon is that of the training without them.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import experiments as ex
from jaxfair import training
from jaxfair.experiments import _study
from jaxfair.studies.dp_erm import common, mitigation, networks
from jaxfair.studies.dp_erm.mitigation import BOTH, LARGE, NONE, SMALL, TERMS
from jaxfair.studies.dp_erm.networks import END
from jaxfair.types import Examples, Params

BY_TERM, BY_RISK = "dual, by term", "dual, by excess risk"
FIXED = (NONE, SMALL, BOTH, LARGE)


class Config(mitigation.Config):
  """Settings; a round is the steps between two snapshots."""

  public_people: ex.Count = 400  # by whom the weights are chosen and the penalty is computed
  dual_rate: ex.Positive = 1.0  # s
  tolerance: ex.NonNegative = 0.01  # gap of excess risk on public people that is allowed


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All ways to choose the weights and all seeds of one data set in one program.

  gamma_k = max(0, gamma_k + s v_k), where v_k is the penalty's term k, or for both terms
  max_a |R_a - R| - tolerance; all on public people, whose risks exceed those of a plain training
  on themselves.
  """
  sample = common.draw(config, cell, context, public=config.public_people)
  made, public = networks.set_up(config, cell, context, sample), sample.public
  assert public is not None
  groups = {"num_groups": sample.num_groups}
  penalty = training.risk_penalty(
    made.model, common.LOSS, public, public=True, form=config.form, sample=config.sample, **groups
  )
  settings = config.training.plain(public.size)
  key_public = jax.random.fold_in(context.key, 2)
  best = training.fit(made.model, common.LOSS, public, settings, key=key_public).params
  least = common.group_losses(made.model, best, public, sample.num_groups)
  shares = jnp.full(public.size, 1 / public.size)

  def ascent(params: Params) -> jax.Array:
    """[2, 2] the steps of both weights, by term and by excess risk."""
    own = (params, public, shares)
    clip = jnp.sum(penalty.clipping_gaps(*own, l2_clip=config.training.l2_clip))
    terms = jnp.stack([clip, jnp.sum(penalty.noise_gaps(*own))])
    over = jax.tree.map(jnp.subtract, made.losses(params, public), least)
    gap = jnp.max(jnp.abs(over.group - over.population)) - config.tolerance
    return config.dual_rate * jnp.stack([terms, jnp.full(2, gap)])

  def weighed(settings: training.DpSgdConfig, weights: Any) -> training.DpSgdConfig:
    own = dataclasses.replace(penalty, clip_weight=weights[0], noise_weight=weights[1])
    return dataclasses.replace(settings, penalties=(own,))

  def update(settings: Any, params: Params, value: Any) -> training.DpSgdConfig:
    now = jnp.stack([settings.penalties[0].clip_weight, settings.penalties[0].noise_weight])
    return weighed(settings, jnp.maximum(now + value[2:] @ ascent(params), 0))

  def look(params: Params, people: Examples, key: jax.Array) -> Any:
    return made.losses(params, people), ascent(params)

  ways = {name: (*(config.weight * g for g in TERMS[name]), 0.0, 0.0) for name in FIXED}
  ways |= {BY_TERM: (0.0, 0.0, 1.0, 0.0), BY_RISK: (0.0, 0.0, 0.0, 1.0)}
  (losses, ascents), accuracy = made.train(look, [*ways.values()], weighed, update)
  gamma = _weights(np.array([*ways.values()]), ascents)
  values = {**made.excess(losses), networks.PRIVATE: accuracy}
  table = made.rows({"penalty": [*ways]}, values | {"gamma1": gamma[0], "gamma2": gamma[1]})
  return networks.with_panels(table, lambda row: f"weights {row['penalty']}")


def _weights(ways: np.ndarray, ascents: np.ndarray) -> np.ndarray:
  """[2, ways, seeds, looks] the weights after every snapshot, by the rule that trained with them.

  Args:
    ways: [ways, 4] weights at the start, and whether each kind of step is taken.
    ascents: [ways, seeds, looks, 2, 2] the steps; that of the start is not taken.
  """
  found = [np.broadcast_to(ways[:, None, :2], (*ascents.shape[:2], 2))]
  for step in np.moveaxis(np.einsum("wk,wslkt->wslt", ways[:, 2:], ascents), 2, 0)[1:]:
    found.append(np.maximum(found[-1] + step, 0))
  return np.moveaxis(np.stack(found, 2), -1, 0)


def _ratio(before: str, after: str) -> Any:
  return common.mean_ratio("data sets", penalty=(before, after)).at(**END)


DUALS = {"by term": BY_TERM, "by risk": BY_RISK}
STUDY = networks.study(
  name="dp_erm.dual",
  summary="Can a Lagrangian dual on public people choose the penalty's weights?",
  config=Config,
  run=run,
  precheck=mitigation.precheck,
  notes=mitigation.notes,
  claims={
    f"useful, {name}: On some data set the gap of excess risk is smaller with weights of the dual "
    f"({name}) than without penalty [Sec. 3.10]": (_ratio(NONE, way) < 1).in_some("data")
    for name, way in DUALS.items()
  }
  | {
    f"gap, {name}: Over all data sets the gap is smaller with the dual ({name}) than without": (
      _ratio(NONE, way) < 1
    )
    for name, way in DUALS.items()
  }
  | {
    f"fixed, {name}: Over all data sets the gap is smaller with the dual ({name}) than with the "
    "thesis's weights of 1": _ratio(BOTH, way) < 1
    for name, way in DUALS.items()
  }
  | {
    f"safe, {name}: On no data set does the dual ({name}) enlarge the gap by a tenth": (
      (_ratio(NONE, way) < 1.1).in_each("data")
    )
    for name, way in DUALS.items()
  },
  figures=(
    ex.lines(
      "risks: Excess risk of both groups along the training",
      "excess_risk ~ step, role | panel",
      "Fixed weights and weights of the dual. The nearer the lines, the fairer; the lower, the "
      "better.",
      zero=True,
    ),
    ex.lines(
      "weights: The weight of the noise term along the training",
      "gamma2 ~ step, penalty | data",
      "The dual starts without a penalty.",
    ),
  ),
  summaries=(
    ex.summary(
      "At the end of training",
      f"excess_risk, excess_risk_of_all, gamma1, gamma2, {networks.PRIVATE} ~ data, penalty, group",
      END,
    ),
  ),
)
