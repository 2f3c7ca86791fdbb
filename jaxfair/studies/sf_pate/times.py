"""How long each method trains: CPU seconds at one epsilon (Table 1)."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxfair import checks, methods
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _study
from jaxfair.studies.sf_pate import common
from jaxfair.studies.sf_pate.common import PF_LD, SF_S, SF_T, M
from jaxfair.types import Params

ONE_BY_ONE = "PF-LD, gradient by gradient"
BLIND = "theta*"


class Config(common.Config):
  """Settings; one epsilon is timed."""

  epsilons: ex.Sweep[ex.Positive] = (1.0,)

  def check(self) -> None:
    """One epsilon."""
    super().check()
    checks.require(
      len(self.epsilons) == 1, f"epsilons={list(self.epsilons)} must be a single one: it is timed"
    )


def one_by_one(split: common.Repetition) -> Params:
  """PF-LD with every person's gradient built, as the paper's."""
  [plan] = split.plans(PF_LD)
  plan = dataclasses.replace(plan, config=dataclasses.replace(plan.config, method="vmap"))
  own: Any = methods.get(plan.method)
  return own.fit_many([plan], split.people, key=split.key, start=split.start).params


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """CPU seconds of every method, on every split; one before warms up."""
  rows = []
  for turn, bare in enumerate(common.splits(config, cell, context, more=1)):
    seconds, split = _timed(bare.started)
    timed = {BLIND: (seconds, split.train(common.PLAIN))}
    timed |= {name: _timed(split.train, name) for name in (SF_S, SF_T, M, PF_LD)}
    timed[ONE_BY_ONE] = _timed(one_by_one, split)
    for name, (seconds, trained) in timed.items() if turn else ():
      own = {**cell, "method": name, "seed": turn - 1, "seconds": seconds}
      own["log10_seconds"] = np.log10(seconds)
      found = split.measure(trained).items()
      rows.append(own | {key: values[0] for key, values in found})
  return ex.Table.from_rows(rows)


def _timed(job: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
  start = time.process_time()
  found = job(*arguments)
  jax.block_until_ready(getattr(found, "start", found))
  return time.process_time() - start, found


def _notes(config: Config) -> list[str]:
  return [
    "CPU seconds of one training, compiled programs at hand: for SF-PATE its teachers, votes and "
    "student; for all of them without theta*, which has its own line. The search for PF-LD's "
    "noise is included.",
    "PF-LD twice: with gradients clipped through activations, as jaxfair does, and with every "
    "person's gradient built, as the paper's does.",
    f"Epsilon {config.epsilons[0]:g} for the group of one person. {config.num_teachers} teachers "
    f"take {config.teacher_steps} steps, each on all of its part; the others "
    f"{config.rounds * config.steps_per_round} steps of {config.batch_size} people.",
  ]


def _times(factor: float, slow: str, fast: str) -> _claims.Check:
  """One takes at least `factor` times as long as the other."""
  longer = ex.difference("log10_seconds", {"method": slow}, {"method": fast})
  return longer > float(np.log10(factor))


STUDY = common.study(
  "sf_pate.times",
  "CPU seconds of SF-PATE, M and PF-LD",
  Config,
  run,
  notes=_notes,
  summaries=(
    ex.summary("CPU seconds of one training", "seconds, accuracy, violation ~ data, method"),
  ),
  claims={
    "SF_S faster than M: SF_S-PATE trains faster than M [Table 1]": _times(1.0, M, SF_S).in_each(
      "data"
    ),
    "SF_S three times faster than M: SF_S-PATE is up to three times faster than M: three times in "
    "some set [Table 1]": _times(3.0, M, SF_S).in_some("data"),
    **{
      f"{SF_S} a hundred times faster, {rival}: SF_S-PATE is up to two orders of magnitude faster "
      f"than {rival}: a hundred times in some set [Table 1]": _times(100.0, rival, SF_S).in_some(
        "data"
      )
      for rival in (PF_LD, ONE_BY_ONE)
    },
    **{
      f"{ours} ten times faster, {rival}: {ours} trains at least ten times faster than {rival}": (
        _times(10.0, rival, ours).in_each("data")
      )
      for ours in (SF_S, SF_T)
      for rival in (PF_LD, ONE_BY_ONE)
    },
  },
  figures=(ex.bars("seconds: CPU seconds of one training", "seconds ~ method | data"),),
)
