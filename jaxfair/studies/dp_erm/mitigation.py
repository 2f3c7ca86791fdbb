"""The penalty that balances what privacy costs the groups (figures 3.7, 3.14).

DP-SGD with none, one or both of the penalty's terms, with a tenth and with ten times both. With
`public_people` the penalty reads people set apart as public, and the epsilons cover all of the
training.
"""

import dataclasses
from typing import Annotated, Any, Literal

import numpy as np

from jaxfair import _fields, data, training
from jaxfair import experiments as ex
from jaxfair.accounting import _dp_sgd
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.dp_erm import common, networks
from jaxfair.studies.dp_erm.networks import END
from jaxfair.training import _risk_balanced

NONE, CLIP, NOISE, BOTH = "none", "clipping", "noise", "both"
SMALL, LARGE = "both, a tenth", "both, ten times"
TERMS = {
  NONE: (0.0, 0.0),
  CLIP: (1.0, 0.0),
  NOISE: (0.0, 1.0),
  BOTH: (1.0, 1.0),
  SMALL: (0.1, 0.1),
  LARGE: (10.0, 10.0),
}


class Config(networks.NetworkConfig):
  """Settings."""

  weight: ex.Positive = 1.0  # gamma of the terms that are switched on; the thesis takes 1
  form: Literal["closeness", "trace"] = "closeness"  # what the noise term balances; the thesis's
  sample: ex.Count = 128  # people by whom a step estimates the penalty, as many of each group
  delta: ex.Probability = 1e-5  # of the epsilons on the axis
  # This many of each set are taken to be public, and the penalty reads only them; 0 is the
  # thesis's form, which reads those it trains on.
  public_people: Annotated[int, _fields.Within(0)] = 0


def precheck(config: Config, *people: data.Dataset) -> None:
  """There are enough people to set some apart."""
  for one in people:
    config.drawn(one, config.public_people)


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All penalties and all seeds of one data set in one program."""
  sample = common.draw(config, cell, context, public=config.public_people)
  made, public = networks.set_up(config, cell, context, sample), sample.public
  penalty = training.risk_penalty(
    made.model,
    common.LOSS,
    made.people if public is None else public,
    num_groups=sample.num_groups,
    public=public is not None,
    form=config.form,
    sample=config.sample,
  )

  def change(settings: training.DpSgdConfig, weights: Any) -> Any:
    own = dataclasses.replace(penalty, clip_weight=weights[0], noise_weight=weights[1])
    return dataclasses.replace(settings, penalties=(own,))

  losses, accuracy = made.train(
    lambda params, people, key: made.losses(params, people),
    [tuple(config.weight * g for g in own) for own in TERMS.values()],
    change,
  )
  values = {**made.excess(losses), networks.PRIVATE: accuracy}
  table = made.rows({"penalty": [*TERMS]}, values)
  spent = {steps: _epsilon(config, steps, made.people.size) for steps in config.training.looks}
  table = table.plus(epsilon_of_clipped_part=[spent[int(step)] for step in table["step"]])
  return networks.with_panels(table, lambda row: f"penalty {row['penalty']}")


def _epsilon(config: Config, steps: int, size: int) -> float:
  """What the clipped part alone has cost after this many steps."""
  if steps == 0:
    return 0.0
  settings = dataclasses.replace(config.training.private(), steps=steps)
  event = _risk_balanced.clipped_part_event(settings, size)
  return float(
    _dp_sgd.dp_sgd_epsilon(
      noise_multiplier=event.noise_multiplier,
      sampling_rate=event.sampling_rate,
      steps=steps,
      delta=config.delta,
      dataset_size=size,
      max_batch=event.max_batch,
    )
  )


def notes(config: Config) -> list[str]:
  """How it was trained, and what the epsilons cover."""
  told = networks.training_notes(config)
  if config.public_people:
    return [
      *told,
      f"{config.public_people} people of each set are taken to be public. The penalty and the "
      "standardization read only them, so the epsilons on the axis, those of the clipped part, "
      "are those of the whole training.",
    ]
  return [
    *told,
    common.SCALING_NOTE,
    "The penalty reads private people without clipping or noise, as in the thesis. The epsilons "
    "on the axis are what the clipped part of the training costs. They do not cover the penalty, "
    "so they are no guarantee for the trained models. On public people the penalty is free: see "
    "docs/why_groups_pay.md.",
  ]


def _improved(labels: list[Any], risk: np.ndarray, of_all: np.ndarray) -> np.ndarray:
  """The largest of three ratios to no penalty: each group's excess risk, and the gap."""
  with_penalty = np.array([label[1] != NONE for label in labels])
  after, before = risk[with_penalty], risk[~with_penalty]
  gaps = [np.abs(risk - of_all)[own].max(axis=0) for own in (with_penalty, ~with_penalty)]
  return np.maximum((after / before).max(axis=0), gaps[0] / gaps[1])


def _can(table: ex.Table) -> dict[str, Any]:
  """With one of the penalties, both groups' excess risks and their gap are smaller."""
  statistic = _statistics.of_points(
    "excess risks and gap over those without penalty, largest",
    _improved,
    values=common.RISKS,
    points=("data", "penalty", "group"),
    within=("data",),
  )
  ways = [way for way in table.unique("penalty") if way != NONE]
  return {
    f"{name}, {way}": (statistic < 1).at(data=name, penalty=(NONE, way))
    for name in table.unique("data")
    for way in ways
  }


def _several(table: ex.Table) -> ex.Table:
  """The table, if "six of eight data sets" can be judged on it."""
  found = len(table.unique("data"))
  if found < 6:
    raise _claims.CannotTellError(f"{found} of the eight data sets are here; see fig_3_14.toml")
  return table


USEFUL = _statistics.of_points(
  "share of data sets on which everybody's excess risk falls",
  lambda labels, of_all: of_all[1] < of_all[0],
  values=("excess_risk_of_all",),
  points=("data", "penalty"),
  within=("data",),
).at(penalty=(NONE, BOTH), **END)

STUDY = networks.study(
  name="dp_erm.mitigation",
  summary="Does the penalty on gaps of excess risk close them?",
  config=Config,
  run=run,
  precheck=precheck,
  notes=notes,
  claims={
    "can: For some weights, the gap and the excess risk of both groups decrease [Fig. 3.7]": (
      _claims.some(_can, **END)
    ),
    "gap shrinks: Both terms together shrink the worst gap of excess risk on six of eight data "
    "sets [Fig. 3.14]": (common.shrinks("data sets", penalty=(NONE, BOTH)).at(**END) >= 0.75).of(
      _several
    ),
    "gap ratio: Over all data sets, the gap is smaller with both terms": (
      common.mean_ratio("data sets", penalty=(NONE, BOTH)).at(**END) < 1
    ),
    "utility: Both terms together also lower everybody's excess risk, on six of eight data sets "
    "[Fig. 3.14; Sec. 3.9]": (USEFUL >= 0.75).of(_several),
    "too much: Large weights can increase the gap: on some data set, ten times both do "
    "[Fig. 3.14, weights]": (
      (common.mean_ratio("data sets", penalty=(NONE, LARGE)) > 1).in_some("data").at(**END)
    ),
  },
  figures=(
    ex.lines(
      "risks: Excess risk of both groups as privacy is spent",
      "excess_risk ~ epsilon_of_clipped_part, role | panel",
      "Without a penalty, with one of its terms, with both, a tenth and ten times both. The nearer "
      "the lines, the fairer; the lower, the better.",
      zero=True,
    ),
  ),
  summaries=(
    ex.summary(
      "At the end of training",
      f"excess_risk, excess_risk_of_all, {networks.PRIVATE} ~ data, penalty, group",
      END,
    ),
  ),
)
