"""How long each method trains: CPU seconds at one epsilon (Table 1)."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxfair import checks, training
from jaxfair import experiments as ex
from jaxfair.studies.sf_pate import common, methods
from jaxfair.types import Params

ONE_BY_ONE = "PF-LD, gradient by gradient"
BLIND = "theta*"


class Config(common.Config):
  """Settings; one epsilon is timed."""

  epsilons: ex.Sweep[ex.Positive] = (1.0,)

  def check(self) -> None:
    """One epsilon."""
    checks.require(
      len(self.epsilons) == 1, f"epsilons={list(self.epsilons)} must be a single one: it is timed"
    )


def one_by_one(split: common.Repetition) -> Params:
  """PF-LD with every person's gradient built, as the paper's."""
  settings = methods.private_config(split, split.config.epsilons[0])
  fit = training.private_lagrangian(
    split.model,
    common.LOSS,
    split.train,
    dataclasses.replace(settings, method="vmap"),
    key=split.key,
    initial=split.plain,
  )
  return jax.tree.map(lambda leaf: leaf[None], fit.params)


TIMED = {
  name: methods.METHODS[name] for name in (methods.SF_S, methods.SF_T, methods.M, methods.PF_LD)
} | {ONE_BY_ONE: one_by_one}


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """CPU seconds of every method, on every split; one before warms up."""
  rows = []
  for turn, bare in enumerate(common.splits(config, cell, context, more=1)):
    seconds, plain = _timed(bare.plain_model)
    split = dataclasses.replace(bare, plain=plain)
    timed = {BLIND: (seconds, methods.plain(split))}
    timed |= {name: _timed(train, split) for name, train in TIMED.items()}
    for name, (seconds, trained) in timed.items() if turn else ():
      own = {**cell, "method": name, "seed": turn - 1, "seconds": seconds}
      own["log10_seconds"] = np.log10(seconds)
      found = split.measure(trained).items()
      rows.append(own | {key: values[0] for key, values in found})
  return ex.Table.from_rows(rows)


def _timed(job: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
  start = time.process_time()
  found = jax.block_until_ready(job(*arguments))
  return time.process_time() - start, found


def _notes(config: Config) -> list[str]:
  return [
    "CPU seconds of one training, compiled programs at hand: for SF-PATE its teachers, votes and "
    "student; for all of them without theta*, which has its own line. The search for PF-LD's "
    "noise is included.",
    "PF-LD twice: with gradients clipped through activations, as jaxfair does, and with every "
    "person's gradient built, as the paper's does.",
    f"Epsilon {config.epsilons[0]:g} for the group of one person. {config.teachers} teachers "
    f"take {config.teacher_steps} steps, each on all of its part; the others "
    f"{config.rounds * config.steps_per_round} steps of {config.batch_size} people.",
  ]


def _times(factor: float, slow: str, fast: str) -> ex.Check:
  """In every set, one takes at least `factor` times as long as the other."""
  longer = ex.difference("log10_seconds", {"method": slow}, {"method": fast})
  return (longer > float(np.log10(factor))).in_each("data")


STUDY = common.study(
  "sf_pate.times",
  "CPU seconds of SF-PATE, M and PF-LD",
  Config,
  run,
  notes=_notes,
  summaries=(
    ex.Summary(
      "CPU seconds of one training", ("data", "method"), ("seconds", "accuracy", "violation")
    ),
  ),
  claims=(
    ex.Claim(
      "SF_S faster than M",
      "SF_S-PATE trains faster than M",
      _times(1.0, methods.M, methods.SF_S),
      "Table 1",
    ),
    *(
      ex.Claim(
        f"{ours} ten times faster, {rival}",
        f"{ours} trains at least ten times faster than {rival}",
        _times(10.0, rival, ours),
        "Table 1",
      )
      for ours in (methods.SF_S, methods.SF_T)
      for rival in (methods.PF_LD, ONE_BY_ONE)
    ),
  ),
  figures=(ex.Figure("seconds", "CPU seconds of one training", "method", "seconds", facet="data"),),
)
