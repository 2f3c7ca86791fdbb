"""People's Hessian traces, closeness to the boundary and input norms (figures 3.5, 3.13)."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp

from jaxfair import analysis
from jaxfair import experiments as ex
from jaxfair.analysis import _curvature
from jaxfair.studies.dp_erm import common, networks, persons
from jaxfair.types import Examples, Model, Params

CLOSE, FAR_OUT = "closeness_trace_correlation", "input_trace_correlation"
PAIRS = {CLOSE: ("closeness", "trace"), FAR_OUT: ("input_norm", "trace")}


def _quantities(model: Model, params: Params, people: Examples) -> Mapping[str, jax.Array]:
  return {
    "trace": _curvature.trace_per_person(model, common.LOSS, params, people),
    "closeness": analysis.closeness(model.apply(params, people.x)),
    "input_norm": jnp.linalg.norm(people.x, axis=1),
  }


STUDY = networks.study(
  name="dp_erm.curvature",
  summary="Hessian traces of people near the decision boundary, and of people with large inputs",
  config=persons.Config,
  run=persons.measure(_quantities, PAIRS),
  claims={
    "closeness: The closer a person is to the decision boundary, the larger the trace of the "
    "Hessian of their loss, on every data set [Thm. 3.5, Fig. 3.5 and 3.13]": persons.least(CLOSE)
    > 0,
    "input norm: The larger a person's input, the larger the trace, on every data set "
    "[Ex. 3.3, Fig. 3.5 and 3.13]": persons.least(FAR_OUT) > 0,
  },
  figures=(
    ex.points(
      "closeness: Trace of the Hessian and closeness to the boundary",
      "trace ~ closeness, role | panel",
      "Some people of the first training.",
      where=persons.PERSON,
    ),
    ex.points(
      "input_norm: Trace of the Hessian and input norm",
      "trace ~ input_norm, role | panel",
      "The same people.",
      where=persons.PERSON,
    ),
  ),
  titles={"closeness": "closeness 1 - sum f^2"},
  summaries=(
    ex.summary(
      "Rank correlations over all people", f"{CLOSE}, {FAR_OUT} ~ data, step", persons.CORRELATION
    ),
  ),
)
