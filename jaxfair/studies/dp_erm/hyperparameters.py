"""Batch size, learning rate and depth against the Hessian's spectrum and the gap (chapter 8).

One setting of DP-SGD is changed at a time. The noise is calibrated so that all trainings of a data
set have the same (epsilon, delta).
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxfair import analysis, training
from jaxfair import experiments as ex
from jaxfair._fields import Compared
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.dp_erm import common, networks
from jaxfair.types import Examples, Params

KNOBS = {"batch size": "batch_size", "learning rate": "learning_rate", "depth": "depth"}


class Config(networks.NetworkConfig):
  """Settings: the ends of each knob, and the budget that all trainings have."""

  batch_sizes: Compared[ex.Count] = (16, 128)
  rates: Compared[ex.Positive] = (0.05, 0.5)
  depths: Compared[ex.Count] = (1, 3)  # hidden layers
  epsilon: ex.Positive = 2.0
  delta: ex.Probability = 1e-5

  @property
  def knobs(self) -> dict[str, tuple[Any, ...]]:
    """What is changed, and to which values."""
    return dict(zip(KNOBS, (self.batch_sizes, self.rates, self.depths), strict=True))


def cells(config: Config) -> list[_study.Cell]:
  """Every data set with every value of every knob."""
  return [
    {"data": name, "knob": knob, "value": value}
    for name in config.sets
    for knob, values in config.knobs.items()
    for value in values
  ]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one data set at one value of one knob."""
  sample = common.draw(config, cell, context)
  size, budget = sample.people.size, {"epsilon": config.epsilon, "delta": config.delta}
  value: Any = cell["value"]
  used = dataclasses.replace(config.training, **{KNOBS[str(cell["knob"])]: value})
  noise = training.calibrate(used.private(), size, **budget).noise_multiplier
  used = dataclasses.replace(used, noise_multiplier=float(noise))
  made = networks.set_up(dataclasses.replace(config, training=used), cell, context, sample)

  def look(params: Params, people: Examples, key: jax.Array) -> Any:
    given: Any = (made.model, common.LOSS, params, people)
    key_trace, key_top = jax.random.split(key)
    groups: Any = {"num_groups": sample.num_groups}
    traces = analysis.hessian_trace(*given, **groups, key=key_trace).traces
    top = analysis.top_eigenvalue(*given, **groups, key=key_top, steps=15).values
    return made.losses(params, people), traces.group, top.group

  (losses, traces, top), accuracy = made.train(look)
  measured = {"trace": traces, "top_eigenvalue": top, networks.PRIVATE: accuracy}
  ends = {k: v[0, :, -1] for k, v in {**made.excess(losses), **measured}.items()}
  table = sample.rows(made.cell, {"seed": range(config.seeds)}, ends)
  return table.plus(noise_multiplier=float(noise))


def _matters(knob: str) -> _claims.Check:
  """On some data set, the gap at the largest value is not that at the smallest."""
  ratio = common.gap_ratio(f"gap at the largest {knob} over gap at the smallest", "value", max, min)

  def checks_of(table: ex.Table) -> dict[str, _claims.Check]:
    sides = {"larger": ratio > 1, "smaller": ratio < 1}
    sets = table.unique("data")
    return {f"{name}, {side}": own.at(data=name) for name in sets for side, own in sides.items()}

  return _claims.some(checks_of, knob=knob)


def _together(labels: list[Any], risk: np.ndarray, trace: np.ndarray) -> np.ndarray:
  """Rank correlation over settings of the groups' differences in trace and in risk."""
  settings = list(dict.fromkeys(label[:-1] for label in labels))
  own = [[label[:-1] == one for label in labels] for one in settings]
  apart = [np.array([np.ptp(v[rows], axis=0) for rows in own]) for v in (trace, risk)]
  return np.nan_to_num(_statistics.rank_correlation(*apart))


SPECTRUM = _statistics.of_points(
  "rank correlation over settings of differences in trace and in excess risk, mean of the sets",
  _together,
  values=("excess_risk", "trace"),
  points=("data", "knob", "value", "group"),
  within=("data",),
)

STUDY = networks.study(
  name="dp_erm.hyperparameters",
  summary="Do batch size, learning rate and depth decide who pays?",
  config=Config,
  cells=cells,
  run=run,
  claims={
    **{
      f"{knob}: The {knob} can change the gap of excess risk at the same privacy "
      "[Chap. 8, item 2]": _matters(knob)
      for knob in KNOBS
    },
    "spectrum: Settings at which the groups' Hessian traces differ more have groups whose excess "
    "risks differ more": SPECTRUM > 0,
  },
  figures=tuple(
    ex.lines(told, f"{y} ~ value, role | panel", "At the end of private training.", log="x")
    for told, y in (
      ("risks: Excess risk by hyper-parameter", "excess_risk"),
      ("traces: Trace of the Hessian by hyper-parameter", "trace"),
    )
  ),
  derive=lambda table: table.plus(panel="{data}, {knob}"),
  summaries=(
    ex.summary(
      "At the end of training",
      f"excess_risk, trace, top_eigenvalue, {networks.PRIVATE} ~ data, knob, value, group",
    ),
  ),
)
