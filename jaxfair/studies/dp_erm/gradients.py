"""Input norms and gradient norms of people along DP-SGD (figure 3.4)."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common, networks, persons
from jaxfair.studies.dp_erm.persons import CORRELATION, PERSON, Config
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.resampled import resampled
from jaxfair.types import Examples, Model, Params

NORMS = "input_gradient_correlation"


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All seeds of one data set in one program."""
  pairs = {NORMS: ("input_norm", "gradient_norm")}
  return persons.run_pairs(config, cell, context, _norms, pairs)


def _norms(
  model: Model, params: Params, people: Examples
) -> Mapping[str, jax.Array]:
  return {
    "input_norm": jnp.linalg.norm(people.x, axis=1),
    "gradient_norm": analysis.gradient_norms(
      model, common.LOSS, params, people
    ),
  }


def _decline(
  labels: Sequence[tuple[Any, ...]], correlation: np.ndarray
) -> np.ndarray:
  """Correlation at the start minus that at the end, least of the sets."""
  found = []
  for name in dict.fromkeys(label[0] for label in labels):
    own = {step: i for i, (data, step) in enumerate(labels) if data == name}
    found.append(correlation[own[min(own)]] - correlation[own[max(own)]])
  return np.min(found, axis=0)


STUDY = protocol.Study(
  name="dp_erm.gradients",
  summary="People far out have larger gradients, which are clipped more",
  config=Config,
  cells=networks.cells,
  run=run,
  notes=networks.notes,
  claims=(
    Claim(
      "positive",
      "People with larger inputs have larger gradients, still at the end of "
      "training",
      persons.least_above(NORMS, {"at_end": "yes"}),
      source="Fig. 3.4",
    ),
    Claim(
      "declines",
      "The correlation falls from the start of training to its end",
      resampled(
        "correlation at the start minus at the end, least of the data sets",
        _decline, values=(NORMS,), points=("data", "step"), above=0.0,
        where={"kind": CORRELATION},
      ),
      source="Fig. 3.4",
    ),
  ),
  figures=(
    Figure(
      "norms",
      "Input norm and gradient norm",
      x="input_norm",
      y="gradient_norm",
      color="role",
      facet="panel",
      mark="point",
      where={"kind": PERSON},
      caption="Some people of the first training, at several of its steps.",
    ),
    Figure(
      "correlation",
      "Their rank correlation along training",
      x="step",
      y=NORMS,
      color="data",
      mark="line",
      where={"kind": CORRELATION},
      y_title="rank correlation",
      reference=0.0,
    ),
  ),
  summaries=(
    Summary(
      "Rank correlation of input norm and gradient norm",
      by=("data", "step"),
      values=(NORMS,),
      where={"kind": CORRELATION},
    ),
  ),
)  # fmt: skip
