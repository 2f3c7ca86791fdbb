"""What clipping and noise do to every group, step by step (figure 3.11)."""

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, analysis, tree
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.dp_erm import common, networks
from jaxfair.types import Examples, Params

TERMS = {"clipping": "clipping", "its curvature part": "curvature_part", "noise": "noise"}
FIRST = {"what": "clipping"}  # every value once, not once per term


class Config(networks.NetworkConfig):
  """Settings: the step whose terms are taken, at the parameters that a training goes through."""

  rates: ex.Sweep[ex.Positive] = (1e-4, 0.1)  # the step's eta; the thesis takes 1e-4
  probes: Annotated[int, _fields.Within(2)] = 8  # directions that estimate the curvature part


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """The terms of Theorem 3.2 along all trainings on one data set."""
  made = networks.set_up(config, cell, context)
  used = config.training
  step = analysis.StepSettings(
    learning_rate=1.0,  # terms of other rates are multiples of these
    l2_clip=used.l2_clip,
    noise_multiplier=used.noise_multiplier,
    sampling_rate=used.batch_size / made.people.size,
  )

  shares = jnp.bincount(made.people.group, length=made.sample.num_groups) / made.people.size

  def look(params: Params, people: Examples, key: jax.Array) -> Any:
    def mean_loss(p: Params) -> jax.Array:
      return made.losses(p, people).group

    norms = jax.vmap(tree.norm)(jax.jacrev(mean_loss)(params))  # |g_a|
    margin = step.clipping_margin(norms, shares)
    return margin, analysis.decompose(
      made.model,
      common.LOSS,
      params,
      people,
      step,
      num_groups=made.sample.num_groups,
      method="probes",
      probes=config.probes,
      key=key,
    )

  (margin, found), accuracy = made.train(look)
  rate = np.reshape(config.rates, (-1, 1, 1, 1))
  curved = rate**2 * found.clipping_curvature.group
  clipping = rate * found.clipping_slope.group + curved
  values = {
    "clipping": clipping,
    "clipping_lead": clipping - clipping[..., ::-1],  # over the other group
    "curvature_part": curved,
    "noise": rate**2 * found.noise.group,
    "trace": found.trace.group,
    "margin": margin,
    networks.PRIVATE: accuracy,
  }
  count = len(config.rates)
  full = {name: np.broadcast_to(v, (count, *v.shape[1:])) for name, v in values.items()}
  return made.rows({"rate": config.rates}, full)


def _derive(table: ex.Table) -> ex.Table:
  """One row per term, so that terms are lines of one panel."""
  return ex.Table.concat(
    table.plus(term=f"{name}, {{role}}", what=name, change=table[column])
    for name, column in TERMS.items()
  )


def _share(told: str, column: str) -> _claims.Statistic:
  """Mean size of a column over that of the clipping term, largest of the sets."""
  return _statistics.of_points(
    f"mean |{told}| over mean |clipping term|, largest of the sets",
    lambda labels, all_of_it, part: np.abs(part).mean(axis=0) / np.abs(all_of_it).mean(axis=0),
    values=("clipping", column),
    points=("data", "step", "group"),
    within=("data",),
    over=np.max,
  ).at(**FIRST)


def _condition(table: ex.Table) -> float:
  """Of the looks at which the theorem's margin is not negative, the share with the order."""
  met = table.keep(table["margin"] >= 0)
  if not len(met):
    largest = table["margin"].max()
    raise _claims.CannotTellError(
      f"the condition is never met; its largest margin is {largest:.3g}"
    )
  return float(np.mean(met["clipping_lead"] > 0))


CURVED = _share("curvature part", "curvature_part")
CONDITION = _statistics.exact(
  "share of looks where the condition is met and the order holds", _condition
)

STUDY = networks.study(
  name="dp_erm.terms",
  summary="Clipping and noise terms of every group along DP-SGD",
  config=Config,
  run=run,
  derive=_derive,
  claims={
    "curvature part: At the thesis's rate, the curvature part of the clipping term is negligible: "
    "below a tenth of the term, on every data set [Fig. 3.11]": CURVED.at(rate=min) < 0.1,
    "at our rate: At the rate that these networks learn with, the curvature part is below a tenth "
    "of the clipping term, too": CURVED.at(rate=max) < 0.1,
    "clipping dominates: With this clip bound, clipping costs more than noise, on every data set "
    "[Sec. 3.6]": _share("noise term", "noise").at(rate=max) < 1,
    "condition: Wherever Theorem 3.3 says that clipping costs one group more, it does "
    "[Thm. 3.3]": CONDITION.at(**FIRST) >= 1,
  },
  figures=(
    ex.lines(
      "terms: Change of the loss in one step, by cause",
      "change ~ step, term | data",
      "Clipping with its curvature part, and noise; above 0 the term costs the group. Steps of "
      "the training's own rate.",
      y_title="expected change of the loss",
      zero=True,
      where={"rate": max},
    ),
  ),
  summaries=(
    ex.summary(
      "Terms, mean over steps",
      f"clipping, curvature_part, noise, trace, margin, {networks.PRIVATE} ~ data, rate, group",
      FIRST,
    ),
  ),
)
