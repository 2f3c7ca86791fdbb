"""What clipping and noise do to every group, step by step (figure 3.11)."""

from typing import Annotated, Any

import jax
import numpy as np

from jaxfair import _fields, analysis
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.dp_erm import common, networks
from jaxfair.types import Examples, Params

TERMS = {"clipping": "clipping", "its curvature part": "curvature_part", "noise": "noise"}
FIRST = {"what": "clipping"}  # every value once, not once per term


class Config(networks.NetworkConfig):
  """Settings: the number of random directions that estimate the curvature part."""

  probes: Annotated[int, _fields.Within(2)] = 8


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """The terms of Theorem 3.2 along all trainings on one data set."""
  made = networks.set_up(config, cell, context)
  used = config.training
  step = analysis.StepSettings(
    learning_rate=used.learning_rate,
    l2_clip=used.l2_clip,
    noise_multiplier=used.noise_multiplier,
    sampling_rate=used.batch_size / made.people.size,
  )

  def look(params: Params, people: Examples, key: jax.Array) -> Any:
    return analysis.decompose(
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

  found = made.train(look)
  terms = (found.clipping, found.clipping_curvature, found.noise, found.trace)
  names = ("clipping", "curvature_part", "noise", "trace")
  return made.rows({}, {name: own.group[0] for name, own in zip(names, terms, strict=True)})


def _derive(table: ex.Table) -> ex.Table:
  """One row per term, so that terms are lines of one panel."""
  return ex.Table.concat(
    table.plus(
      term=[f"{name}, {role}" for role in table["role"]],
      what=[name] * len(table),
      change=table[column],
    )
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


STUDY = networks.study(
  name="dp_erm.terms",
  summary="Clipping and noise terms of every group along DP-SGD",
  config=Config,
  run=run,
  derive=_derive,
  claims={
    "curvature part: The curvature part of the clipping term is negligible: below a tenth of the "
    "term, on every data set [Fig. 3.11]": _share("curvature part", "curvature_part") < 0.1,
    "clipping dominates: With this clip bound, clipping costs more than noise [Sec. 3.6]": _share(
      "noise term", "noise"
    )
    < 1,
  },
  figures=(
    ex.lines(
      "terms: Change of the loss in one step, by cause",
      "change ~ step, term | data",
      "Clipping with its curvature part, and noise; above 0 the term costs the group.",
      y_title="expected change of the loss",
      zero=True,
    ),
  ),
  summaries=(
    ex.summary(
      "Terms, mean over steps", "clipping, curvature_part, noise, trace ~ data, group", FIRST
    ),
  ),
)
