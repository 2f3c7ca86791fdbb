"""Input norms and gradient norms of people along DP-SGD (figure 3.4)."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import experiments as ex
from jaxfair.analysis import _norms as norms_module
from jaxfair.experiments import _statistics
from jaxfair.studies.dp_erm import common, networks, persons
from jaxfair.studies.dp_erm.persons import CORRELATION
from jaxfair.types import Examples, Model, Params

NORMS = "input_gradient_correlation"


def _norms(model: Model, params: Params, people: Examples) -> Mapping[str, jax.Array]:
  gradients = norms_module.gradient_norms(model, common.LOSS, params, people)
  return {"input_norm": jnp.linalg.norm(people.x, axis=1), "gradient_norm": gradients}


DECLINE = _statistics.of_points(
  "correlation at the start minus at the end, least of the data sets",
  lambda labels, by_step: by_step[0] - by_step[-1],
  values=(NORMS,),
  points=("data", "step"),
  within=("data",),
  over=np.min,
).at(**CORRELATION)

STUDY = networks.study(
  name="dp_erm.gradients",
  summary="People with large inputs have large gradients, which are clipped more",
  config=persons.Config,
  run=persons.measure(_norms, {NORMS: ("input_norm", "gradient_norm")}),
  claims={
    "positive: People with larger inputs have larger gradients, still at the end of training "
    "[Fig. 3.4]": persons.least(NORMS) > 0,
    "declines: The correlation falls from the start of training to its end [Fig. 3.4]": DECLINE > 0,
  },
  figures=(
    ex.points(
      "norms: Input norm and gradient norm",
      "gradient_norm ~ input_norm, role | panel",
      "Some people of the first training, at several of its steps.",
      where=persons.PERSON,
    ),
    ex.lines(
      "correlation: Their rank correlation along training",
      f"{NORMS} ~ step, data",
      y_title="rank correlation",
      where=CORRELATION,
      zero=True,
    ),
  ),
  summaries=(
    ex.summary(
      "Rank correlation of input norm and gradient norm", f"{NORMS} ~ data, step", CORRELATION
    ),
  ),
)
