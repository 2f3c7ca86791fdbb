"""People's Hessian traces, closeness to the boundary and input norms.

Figures 3.5 and 3.13 of the thesis.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp

from jaxfair import analysis
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common, networks, persons
from jaxfair.studies.dp_erm.persons import CORRELATION, PERSON, Config
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.types import Examples, Model, Params

CLOSE, FAR_OUT = "closeness_trace_correlation", "input_trace_correlation"
END = {"at_end": "yes"}


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All seeds of one data set in one program."""
  pairs = {
    CLOSE: ("closeness", "trace"),
    FAR_OUT: ("input_norm", "trace"),
  }
  return persons.run_pairs(config, cell, context, _bends, pairs)


def _bends(
  model: Model, params: Params, people: Examples
) -> Mapping[str, jax.Array]:
  return {
    "trace": analysis.trace_per_person(model, common.LOSS, params, people),
    "closeness": analysis.closeness(model.apply(params, people.x)),
    "input_norm": jnp.linalg.norm(people.x, axis=1),
  }


STUDY = protocol.Study(
  name="dp_erm.curvature",
  summary="Whose loss bends: people near the boundary, and people far out",
  config=Config,
  cells=networks.cells,
  run=run,
  notes=networks.notes,
  claims=(
    Claim(
      "closeness",
      "The closer a person is to the decision boundary, the larger the trace "
      "of the Hessian of their loss, on every data set",
      persons.least_above(CLOSE, END),
      source="Thm. 3.5, Fig. 3.5 and 3.13",
    ),
    Claim(
      "input norm",
      "The larger a person's input, the larger the trace, on every data set",
      persons.least_above(FAR_OUT, END),
      source="Ex. 3.3, Fig. 3.5 and 3.13",
    ),
  ),
  figures=(
    Figure(
      "closeness",
      "Trace of the Hessian and closeness to the boundary",
      x="closeness",
      y="trace",
      color="role",
      facet="panel",
      mark="point",
      where={"kind": PERSON},
      x_title="closeness 1 - sum f^2",
      caption="Some people of the first training.",
    ),
    Figure(
      "input_norm",
      "Trace of the Hessian and input norm",
      x="input_norm",
      y="trace",
      color="role",
      facet="panel",
      mark="point",
      where={"kind": PERSON},
      caption="The same people.",
    ),
  ),
  summaries=(
    Summary(
      "Rank correlations over all people",
      by=("data", "step"),
      values=(CLOSE, FAR_OUT),
      where={"kind": CORRELATION},
    ),
  ),
)
