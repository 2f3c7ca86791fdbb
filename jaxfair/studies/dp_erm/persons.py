"""Quantities of single persons along private training, and how they are correlated.

Figure 3.4 is about gradient norms, figures 3.5 and 3.13 about Hessian traces: rank correlations
and slopes over all people for every seed, and the values of some people for the scatter plots.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis
from jaxfair import experiments as ex
from jaxfair.analysis import _curvature
from jaxfair.analysis import _norms as norms_module
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.dp_erm import common, networks
from jaxfair.types import Examples, Model, Params

SMALL, LARGE = 0.1, 0.5  # Cohen's (1988) marks of correlations
PERSON, CORRELATION = {"kind": "person"}, {"kind": "correlation"}
# (model, params, people) -> name -> [n] values
Quantities = Callable[[Model, Params, Examples], Mapping[str, jax.Array]]


class Config(networks.NetworkConfig):
  """Settings: how many people of the first training are drawn as points."""

  shown: ex.Count = 200


def measure(
  quantities: Quantities, pairs: Mapping[str, tuple[str, str]]
) -> Callable[[Config, _study.Cell, _study.Context], ex.Table]:
  """A study's `run`: rows of single persons, and rows of correlations.

  Args:
    quantities: what is computed for every person.
    pairs: name -> the two quantities whose rank correlation is the column `NAME_correlation`;
      `NAME_slope` is the least-squares slope of the second on the first.
  """

  def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
    made = networks.set_up(config, cell, context)

    def look(params: Params, people: Examples, key: jax.Array) -> Any:
      del key
      found = quantities(made.model, params, people)
      related = {
        column: value
        for name, (a, b) in pairs.items()
        for column, value in (
          (f"{name}_correlation", spearman_without_ties(found[a], found[b])),
          (f"{name}_slope", slope(found[a], found[b])),
        )
      }
      return related, {n: v[: config.shown] for n, v in found.items()}

    (related, values), accuracy = made.train(look)
    steps, shown = config.training.looks, min(config.shown, made.people.size)
    points = ex.Table.from_arrays(
      {**made.cell, **PERSON, "seed": 0},
      {"step": steps, "person": range(shown)},
      {name: v[0, 0] for name, v in values.items()},
    )
    roles = np.array(made.sample.roles)[np.asarray(made.people.group)[:shown]]
    correlations = ex.Table.from_arrays(
      {**made.cell, **CORRELATION},
      {"seed": range(config.seeds), "step": steps},
      {**{name: v[0] for name, v in related.items()}, networks.PRIVATE: accuracy[0]},
    )
    table = ex.Table.concat([points.plus(role=np.tile(roles, len(steps))), correlations])
    return networks.with_panels(table, lambda row: f"step {row['step']:g}")

  return run


def spearman_without_ties(a: jax.Array, b: jax.Array) -> jax.Array:
  """Spearman's correlation of two vectors without ties, inside a program."""
  ranks = [jnp.argsort(jnp.argsort(v)).astype(jnp.float32) for v in (a, b)]
  middle = (a.shape[0] - 1) / 2
  x, y = (r - middle for r in ranks)
  return jnp.sum(x * y) / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y))


def slope(a: jax.Array, b: jax.Array) -> jax.Array:
  """The least-squares slope of b on a: their covariance over the variance of a."""
  x = a - jnp.mean(a)
  return x @ (b - jnp.mean(b)) / (x @ x)


def least(column: str) -> _claims.Statistic:
  """The mean of a correlation at the end of training, least of the data sets."""
  return _statistics.of_points(
    f"mean {column.replace('_', ' ')}, least of the data sets",
    lambda labels, values: values.min(axis=0),
    values=(column,),
    points=("data",),
  ).at(**CORRELATION, **networks.END)


NORMS, SLOPE = "input_gradient_correlation", "input_gradient_slope"


def _norms(model: Model, params: Params, people: Examples) -> Mapping[str, jax.Array]:
  gradients = norms_module.gradient_norms(model, common.LOSS, params, people)
  return {"input_norm": jnp.linalg.norm(people.x, axis=1), "gradient_norm": gradients}


DECLINE = _statistics.of_points(
  "slope at the end over slope at the start, largest of the data sets",
  lambda labels, by_step: by_step[-1] / by_step[0],
  values=(SLOPE,),
  points=("data", "step"),
  within=("data",),
  over=np.max,
).at(**CORRELATION)

GRADIENTS = networks.study(
  name="dp_erm.gradients",
  summary="People with large inputs have large gradients, which are clipped more",
  config=Config,
  run=measure(_norms, {"input_gradient": ("input_norm", "gradient_norm")}),
  claims={
    f"positive: People with larger inputs have larger gradients, still at the end of training: a "
    f"rank correlation above {SMALL} (small, by Cohen's marks) [Fig. 3.4]": least(NORMS) > SMALL,
    "declines: By how much gradients grow with inputs falls along training: the slope at the end "
    "is below that at the start [Fig. 3.4, decline]": DECLINE < 1,
  },
  figures=(
    ex.points(
      "norms: Input norm and gradient norm",
      "gradient_norm ~ input_norm, role | panel",
      "Some people of the first training, at several of its steps.",
      where=PERSON,
    ),
    ex.lines(
      "correlation: Their rank correlation along training",
      f"{NORMS} ~ step, data",
      y_title="rank correlation",
      where=CORRELATION,
      zero=True,
    ),
    ex.lines(
      "slope: Slope of gradient norms on input norms along training",
      f"{SLOPE} ~ step, data",
      y_title="slope",
      where=CORRELATION,
      zero=True,
    ),
  ),
  summaries=(
    ex.summary(
      "Input norm and gradient norm",
      f"{NORMS}, {SLOPE}, {networks.PRIVATE} ~ data, step",
      CORRELATION,
    ),
  ),
)


CLOSE, FAR_OUT = "closeness_trace_correlation", "input_trace_correlation"
PAIRS = {"closeness_trace": ("closeness", "trace"), "input_trace": ("input_norm", "trace")}


def _quantities(model: Model, params: Params, people: Examples) -> Mapping[str, jax.Array]:
  return {
    "trace": _curvature.trace_per_person(model, common.LOSS, params, people),
    "closeness": analysis.closeness(model.apply(params, people.x)),
    "input_norm": jnp.linalg.norm(people.x, axis=1),
  }


CURVATURE = networks.study(
  name="dp_erm.curvature",
  summary="Hessian traces of people near the decision boundary, and of people with large inputs",
  config=Config,
  run=measure(_quantities, PAIRS),
  claims={
    "closeness: People close to the decision boundary have larger Hessian traces, on every data "
    f"set: a rank correlation above {SMALL} (small, by Cohen's marks) [Fig. 3.5]": least(CLOSE)
    > SMALL,
    "clearly: Closeness to the boundary clearly decides the trace, on every data set: a rank "
    f"correlation above {LARGE} (large, by Cohen's marks) "
    "[Fig. 3.13; Thm. 3.5; Sec. 3.9, traces]": (least(CLOSE) > LARGE),
    "input norm: People with larger inputs have larger traces, on every data set: a rank "
    f"correlation above {SMALL} [Fig. 3.5; Fig. 3.13, input norm; Ex. 3.3]": least(FAR_OUT) > SMALL,
  },
  figures=(
    ex.points(
      "closeness: Trace of the Hessian and closeness to the boundary",
      "trace ~ closeness, role | panel",
      "Some people of the first training.",
      where=PERSON,
    ),
    ex.points(
      "input_norm: Trace of the Hessian and input norm",
      "trace ~ input_norm, role | panel",
      "The same people.",
      where=PERSON,
    ),
  ),
  titles={"closeness": "closeness 1 - sum f^2"},
  summaries=(
    ex.summary(
      "Rank correlations over all people",
      f"{CLOSE}, {FAR_OUT}, {networks.PRIVATE} ~ data, step",
      CORRELATION,
    ),
  ),
)

STUDIES = {study.name: study for study in (GRADIENTS, CURVATURE)}
