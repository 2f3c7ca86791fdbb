"""What clipping and noise do to every group, step by step (figure 3.11)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxfair import analysis, checks
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common, networks
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.resampled import resampled
from jaxfair.types import Examples, Params


@dataclasses.dataclass(frozen=True)
class Config(networks.NetworkConfig):
  """Settings: random directions by which the curvature part is estimated."""

  probes: int = 8

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.integer("probes", self.probes, low=2)


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
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

  found = networks.train_many(
    look,
    made.people,
    made.model,
    used,
    seeds=config.seeds,
    key=made.key,
    change=networks.with_clip,
    values=[used.l2_clip],
  )
  return common.group_rows(
    made.sample,
    cell,
    {"seed": range(config.seeds), "step": used.looks},
    {
      "clipping": found.clipping.group[0],
      "curvature_part": found.clipping_curvature.group[0],
      "noise": found.noise.group[0],
      "trace": found.trace.group[0],
    },
  )


def _share(
  labels: Sequence[tuple[Any, ...]], clipping: np.ndarray, part: np.ndarray
) -> np.ndarray:
  """Mean |curvature part| over mean |clipping term|, largest of the sets."""
  found = []
  for name in dict.fromkeys(label[0] for label in labels):
    own = [i for i, label in enumerate(labels) if label[0] == name]
    sizes = [np.abs(v[own]).mean(axis=0) for v in (part, clipping)]
    found.append(sizes[0] / sizes[1])
  return np.max(found, axis=0)


def lines(table: Table) -> Table:
  """One row per term, so that terms are lines of one panel."""
  if "clipping" not in table or "term" in table:
    return table
  parts = []
  for column, name in (
    ("clipping", "clipping"),
    ("curvature_part", "its curvature part"),
    ("noise", "noise"),
  ):
    words = [f"{name}, {role}" for role in table["role"]]
    parts.append(table.plus(term=words, what=[name] * len(table),
                            change=table[column]))  # fmt: skip
  return Table.concat(parts)


FIRST = {"what": "clipping"}  # every value once, not once per term

STUDY = protocol.Study(
  name="dp_erm.terms",
  summary="Clipping and noise terms of every group along DP-SGD",
  config=Config,
  cells=networks.cells,
  run=run,
  derive=lines,
  notes=networks.notes,
  claims=(
    Claim(
      "curvature part",
      "The curvature part of the clipping term is negligible: below a tenth of "
      "the term, on every data set",
      resampled(
        "mean |curvature part| over mean |clipping term|, largest of the sets",
        _share, values=("clipping", "curvature_part"),
        points=("data", "step", "group"), where=FIRST, below=0.1,
      ),
      source="Fig. 3.11",
    ),
    Claim(
      "clipping dominates",
      "With this clip bound, clipping costs more than noise",
      resampled(
        "mean |noise term| over mean |clipping term|, largest of the sets",
        _share, values=("clipping", "noise"),
        points=("data", "step", "group"), where=FIRST, below=1.0,
      ),
      source="Sec. 3.6",
    ),
  ),
  figures=(
    Figure(
      "terms",
      "Change of the loss in one step, by cause",
      x="step",
      y="change",
      color="term",
      facet="data",
      mark="line",
      reference=0.0,
      y_title="expected change of the loss",
      caption="Clipping with its curvature part, and noise; above 0 the term "
      "costs the group.",
    ),
  ),
  summaries=(
    Summary(
      "Terms, mean over steps",
      by=("data", "group"),
      values=("clipping", "curvature_part", "noise", "trace"),
      where=FIRST,
    ),
  ),
)  # fmt: skip
