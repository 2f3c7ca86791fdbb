"""The penalty that balances what privacy costs the groups.

Figures 3.7 and 3.14 of the thesis: DP-SGD with none, one or both of the
penalty's terms. With `public_people` the penalty reads people set apart as
public, and the epsilons cover all of the training.
"""

import dataclasses
from typing import Any, Literal

import jax
import numpy as np

from jaxfair import accounting, checks, training
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common, networks
from jaxfair.studies.dp_erm.gaps import RISKS, gap_ratio, gap_shrinks
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.resampled import resampled
from jaxfair.types import Examples, Params

NONE, CLIP, NOISE, BOTH = "none", "clipping", "noise", "both"
TERMS = {
  NONE: (0.0, 0.0),
  CLIP: (1.0, 0.0),
  NOISE: (0.0, 1.0),
  BOTH: (1.0, 1.0),
}


@dataclasses.dataclass(frozen=True)
class Config(networks.NetworkConfig):
  """Settings.

  Attributes:
    weight: gamma of the terms that are switched on; the thesis takes 1.
    form: what the noise term balances; "closeness" is the thesis's.
    sample: people by whom the penalty is estimated in every step.
    delta: of the epsilons on the axis.
    public_people: so many of each set are taken as public, and the penalty
      reads only them; 0 is the thesis's form, which reads those it trains on.
  """

  weight: float = 1.0
  form: Literal["closeness", "trace"] = "closeness"
  sample: int = 128
  delta: float = 1e-5
  public_people: int = 0

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.positive("weight", self.weight)
    checks.integer("sample", self.sample, low=1)
    checks.integer("public_people", self.public_people, low=0)
    checks.number(
      "delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True
    )


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All four penalties and all seeds of one data set in one program."""
  made = networks.set_up(config, cell, context, public=config.public_people)
  public = made.sample.public
  penalty = training.risk_penalty(
    made.model,
    common.LOSS,
    made.people if public is None else public,
    num_groups=made.sample.num_groups,
    public=public is not None,
    form=config.form,
    sample=config.sample,
  )

  def change(settings: training.DpSgdConfig, weights: Any) -> Any:
    own = dataclasses.replace(
      penalty, clip_weight=weights[0], noise_weight=weights[1]
    )
    return dataclasses.replace(settings, penalty=own)

  def look(params: Params, people: Examples, key: jax.Array) -> Any:
    del key
    return common.group_losses(
      made.model, params, people, made.sample.num_groups
    )

  losses = networks.train_many(
    look,
    made.people,
    made.model,
    config.training,
    seeds=config.seeds,
    key=made.key,
    change=change,
    values=[tuple(config.weight * g for g in w) for w in TERMS.values()],
  )
  steps = config.training.looks
  table = common.group_rows(
    made.sample,
    cell,
    {"penalty": [*TERMS], "seed": range(config.seeds), "step": steps},
    {
      "excess_risk": losses.group - np.asarray(made.plain.group),
      "excess_risk_of_all": losses.population
      - np.asarray(made.plain.population),
    },
  )
  spent = dict(zip(steps, _epsilons(config, made.people.size), strict=True))
  return table.plus(
    epsilon_of_clipped_part=[spent[int(step)] for step in table["step"]],
    panel=[f"{cell['data']}, penalty {name}" for name in table["penalty"]],
    at_end=np.where(table["step"] == steps[-1], "yes", "no"),
  )


def _epsilons(config: Config, size: int) -> list[float]:
  """What the clipped part alone has cost at every look; 0 at the start."""
  found = [0.0]
  for steps in config.training.looks[1:]:
    settings = dataclasses.replace(config.training.private(), steps=steps)
    event = training.clipped_part_event(settings, size)
    cost = accounting.dp_sgd_epsilon(
      noise_multiplier=event.noise_multiplier,
      sampling_rate=event.sampling_rate,
      steps=steps,
      delta=config.delta,
      dataset_size=size,
      max_batch=event.max_batch,
    )
    found.append(float(cost))
  return found


def _useful(labels: Any, *risks: np.ndarray) -> np.ndarray:
  """Share of sets on which everybody's excess risk is smaller with both."""
  of_all = {label[:2]: risks[1][i] for i, label in enumerate(labels)}
  names = dict.fromkeys(name for name, _ in of_all)
  better = [of_all[name, BOTH] < of_all[name, NONE] for name in names]
  share: np.ndarray = np.mean(better, axis=0)
  return share


def _notes(config: Config) -> list[str]:
  if config.public_people:
    return [
      *networks.training_notes(config),
      f"{config.public_people} people of each set are taken as public. The "
      "penalty and the standardisation read only them, so the epsilons on the "
      "axis, those of the clipped part, are those of the whole training.",
    ]
  return [
    *networks.notes(config),
    "The penalty reads private people without clipping or noise, as in the "
    "thesis. The epsilons on the axis are what the clipped part of the "
    "training costs. They do not cover the penalty, so they are no guarantee "
    "for the trained models. On public people the penalty is free: see "
    "docs/why_groups_pay.md.",
  ]


END = {"at_end": "yes"}

STUDY = protocol.Study(
  name="dp_erm.mitigation",
  summary="Does the penalty on gaps of excess risk close them?",
  config=Config,
  cells=networks.cells,
  run=run,
  notes=_notes,
  claims=(
    Claim(
      "gap shrinks",
      "Both terms together shrink the worst gap of excess risk on three of "
      "four data sets",
      gap_shrinks("penalty", NONE, BOTH, where=END),
      source="Fig. 3.7 and 3.14: 6 of 8",
    ),
    Claim(
      "gap ratio",
      "Over all data sets, the gap is smaller with both terms",
      gap_ratio("penalty", NONE, BOTH, where=END),
      source="Fig. 3.7 and 3.14",
    ),
    Claim(
      "utility",
      "Both terms together also lower everybody's excess risk, on three of "
      "four data sets",
      resampled(
        "share of data sets on which everybody's excess risk falls", _useful,
        values=RISKS, points=("data", "penalty", "group"), where=END,
        at_least=0.75,
      ),
      source="Sec. 3.9",
    ),
  ),
  figures=(
    Figure(
      "risks",
      "Excess risk of both groups as privacy is spent",
      x="epsilon_of_clipped_part",
      y="excess_risk",
      color="role",
      facet="panel",
      mark="line",
      reference=0.0,
      x_title="epsilon of the clipped part",
      caption="Without a penalty, with one of its terms, with both. The nearer "
      "the lines, the fairer; the lower, the better.",
    ),
  ),
  summaries=(
    Summary(
      "At the end of training",
      by=("data", "penalty", "group"),
      values=RISKS,
      where=END,
    ),
  ),
)  # fmt: skip
