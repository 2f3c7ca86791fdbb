"""How long each method trains: CPU seconds at one epsilon (Table 1)."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxfair import checks, data, training
from jaxfair.experiments.people import set_name
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check, difference_above, in_each
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.sf_pate import common, methods

ONE_BY_ONE = "PF-LD, gradient by gradient"
BLIND = "theta*"


@dataclasses.dataclass(frozen=True)
class Config(common.Config):
  """Settings; one epsilon is timed."""

  epsilons: tuple[float, ...] = (1.0,)

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.require(
      len(self.epsilons) == 1,
      f"epsilons={list(self.epsilons)} must be a single one: it is timed",
    )


def cells(config: Config) -> list[protocol.Settings]:
  """One cell per data set: its methods are timed in turn."""
  for one in config.sets:
    common.sizes(config, common.load_set(config, set_name(one))[0])
  return [{"data": set_name(one)} for one in config.sets]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """CPU seconds of every method, on every split; one before warms up."""
  people, note = common.load_set(config, cell["data"])
  context.say(note)
  model = common.model_of(config, people)
  more = dataclasses.replace(config, splits=config.splits + 1)
  rows = []
  for turn, split in enumerate(common.splits(more, people, context)):
    seconds, found = _timed(common.with_plain, config, people, split)
    timed = {BLIND: (seconds, methods.plain(config, people, found))}
    for name, method in _methods().items():
      timed[name] = _timed(method, config, people, found)
    if turn == 0:
      continue
    for name, (seconds, trained) in timed.items():
      measured = common.measure(config, people, model, trained, split.test)
      rows.append(
        {
          **cell, "method": name, "seed": turn - 1, "seconds": seconds,
          "log10_seconds": np.log10(seconds),
          **{key: values[0] for key, values in measured.items()},
        }
      )  # fmt: skip
  return Table({name: [row[name] for row in rows] for name in rows[0]})


def _methods() -> dict[str, methods.Method]:
  names = (methods.SF_S, methods.SF_T, methods.M, methods.PF_LD)
  found = {name: methods.METHODS[name] for name in names}

  def one_by_one(
    config: common.Config, people: data.Dataset, split: common.Repetition
  ) -> Any:
    settings = methods.private_config(
      config, people, split.train.size, config.epsilons[0]
    )
    fit = training.private_lagrangian(
      common.model_of(config, people), methods.LOSS, split.train,
      dataclasses.replace(settings, method="vmap"),
      key=split.key, initial=split.plain,
    )  # fmt: skip
    return jax.tree.map(lambda leaf: leaf[None], fit.params)

  return {**found, ONE_BY_ONE: one_by_one}


def _timed(job: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
  start = time.process_time()
  found = jax.block_until_ready(job(*arguments))
  return time.process_time() - start, found


def _notes(config: Config) -> list[str]:
  return [
    "CPU seconds of one training, compiled programs at hand: for SF-PATE its "
    "teachers, votes and student; for all of them without theta*, which has "
    "its own line. The search for PF-LD's noise is included.",
    "PF-LD twice: with gradients clipped through activations, as jaxfair "
    "does, and with every person's gradient built, as the paper's does.",
    f"Epsilon {config.epsilons[0]:g} for the group of one person. "
    f"{config.teachers} teachers take {config.teacher_steps} steps, each on "
    f"all of its part; the others {config.rounds * config.steps_per_round} "
    f"steps of {config.batch_size} people.",
  ]


def _times(factor: float, slow: str, fast: str) -> Check:
  """In every set, one takes so many times as long as the other."""
  return in_each(
    "data",
    difference_above(
      "log10_seconds", float(np.log10(factor)), first={"method": slow},
      second={"method": fast},
    ),
  )  # fmt: skip


def _claims() -> list[Claim]:
  made = [
    Claim(
      "SF_S faster than M",
      "SF_S-PATE trains faster than M",
      _times(1.0, methods.M, methods.SF_S),
      "Table 1",
    )
  ]
  made += [
    Claim(
      f"{ours} ten times faster, {rival}",
      f"{ours} trains at least ten times faster than {rival}",
      _times(10.0, rival, ours),
      "Table 1",
    )
    for ours in (methods.SF_S, methods.SF_T)
    for rival in (methods.PF_LD, ONE_BY_ONE)
  ]
  return made


STUDY = protocol.Study(
  name="sf_pate.times",
  summary="CPU seconds of SF-PATE, M and PF-LD",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  summaries=(
    Summary(
      "CPU seconds of one training",
      by=("data", "method"),
      values=("seconds", "accuracy", "violation"),
    ),
  ),
  claims=_claims(),
  figures=(
    Figure(
      "seconds",
      "CPU seconds of one training",
      x="method",
      y="seconds",
      facet="data",
    ),
  ),
)
