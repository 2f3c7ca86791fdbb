"""Table 5: how long FairPATE, PATE, FairDP-SGD and DP-SGD take."""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxfair import experiments as ex
from jaxfair import models, training
from jaxfair.experiments import Claim, Count, Positive, Summary
from jaxfair.studies.fairpate import common, methods
from jaxfair.studies.fairpate.common import Repetition
from jaxfair.studies.fairpate.methods import Point


class Config(common.OneThreshold):
  """Settings of one training each, timed.

  Attributes:
    student_epochs: passes over the labelled queries.
    sgd_epochs: expected passes over the private people; the paper has 30 for
      both.
    sgd_batch: expected batch of DP-SGD.
    public_sample: public people that our FairDP-SGD looks at in a step; the
      paper's Algorithm 6 looks at all.
  """

  epsilon: Positive = 4.0
  max_gap: Positive = 0.01
  lam: ex.NonNegative = 5.0
  student_epochs: Count = 30
  sgd_epochs: Count = 30
  sgd_batch: Count = 80
  public_sample: Count = 256


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """CPU seconds of each method, once the people are loaded."""
  own = common.split(config, cell, context)
  key_votes, key = jax.random.split(jax.random.fold_in(context.key, 1))
  own = own.vote(key=key_votes)
  plain = _dp_sgd(config, own.private.size)

  def fair(placement: Any, sample: int | None) -> training.DpSgdConfig:
    penalty = methods.penalty_of(own, config.lam, placement=placement, sample=sample)
    return dataclasses.replace(plain, penalties=(penalty,))

  jobs: dict[str, Callable[[], Any]] = {
    "teachers": lambda: own.vote(key=key_votes).counts,
    "pate": lambda: _teach(config, own, "pate", key),
    "fairpate": lambda: _teach(config, own, "fairpate", key),
  }
  for name, made in {
    "dp_sgd": plain,
    "fair_dp_sgd": fair("after", config.public_sample),
    "fair_dp_sgd_inside": fair("inside", config.public_sample),
    "fair_dp_sgd_listed": fair("inside", None),
  }.items():
    jobs[name] = functools.partial(_train, own, made, key)
  seconds = {name: _cpu_seconds((config, name), job) for name, job in jobs.items()}
  teachers = seconds.pop("teachers")
  taken = np.array(list(seconds.values()))
  voted = np.array(["sgd" not in name for name in seconds])
  found = {"after_teachers": np.where(voted, taken, np.nan), "seconds": taken + teachers * voted}
  shared, axes = {"data": own.people.name, **cell}, {"method": list(seconds)}
  return ex.Table.from_arrays(shared, axes, found)


_compiled: set[Any] = set()  # what this process has run before


def _cpu_seconds(program: Any, job: Callable[[], Any]) -> float:
  """Of one run without compilation: a program's first run is not timed."""
  if program not in _compiled:
    jax.block_until_ready(job())
    _compiled.add(program)
  start = time.process_time()
  jax.block_until_ready(job())
  return time.process_time() - start


def _teach(config: Config, own: Repetition, method: str, key: jax.Array) -> Any:
  """Query phase and student."""
  key_noise, key_student = jax.random.split(key)
  point = Point(method, config.epsilon, config.max_gap)
  labels = methods.labels_of(own, config.threshold, point, key=key_noise)[None]
  steps = max(1, config.student_epochs * config.queries // config.batch_size)
  return methods.train_students(own, labels, steps, key=key_student)


def _dp_sgd(config: Config, size: int) -> training.DpSgdConfig:
  """DP-SGD over the given passes; choosing its noise is not timed."""
  batch, epsilon, delta = config.sgd_batch, config.epsilon, config.delta
  base = training.DpSgdConfig(
    0.1, steps=max(1, config.sgd_epochs * size // batch), batch_size=batch
  )
  return training.calibrate(base, size, epsilon=epsilon, delta=delta)


def _train(own: Repetition, made: training.DpSgdConfig, key: jax.Array) -> Any:
  loss, private = models.cross_entropy, own.private
  return training.dp_sgd(own.model, loss, private, made, key=key).params


RATIOS = {
  "sgd_over_fairpate": ("fair_dp_sgd", "fairpate", "seconds"),
  "inside_over_fairpate": ("fair_dp_sgd_inside", "fairpate", "seconds"),
  "listed_over_fairpate": ("fair_dp_sgd_listed", "fairpate", "seconds"),
  "sgd_over_setting": ("fair_dp_sgd", "fairpate", "after_teachers"),
  "fairpate_over_pate": ("fairpate", "pate", "seconds"),
}


def _ratios(table: ex.Table) -> ex.Table:
  """Adds how much longer one method takes than another, in every row."""
  if "seconds" not in table:
    return table
  found = {}
  for name, (above, below, column) in RATIOS.items():
    both = table.join(table.where(method=above), ("seed",), above="seconds")
    both = both.join(table.where(method=below), ("seed",), below=column)
    found[name] = both["above"] / both["below"]
  return table.plus(**found)


def _slower(name: str, told: str, ratio: str, source: str = "") -> Claim:
  statement = f"{told} takes over 20 times as long as FairPATE"
  return Claim(name, statement, ex.mean(ratio) > 20.0, source)


STUDY = common.study(
  "fairpate.times",
  "CPU time of FairPATE, PATE, FairDP-SGD and DP-SGD (Table 5)",
  Config,
  run,
  derive=_ratios,
  notes=lambda config: [
    "CPU seconds of one training each, on all cores, without compilation and without reading "
    "and scaling the people. PATE and FairPATE include their teachers; after_teachers is the "
    "time that follows, which is all that a further setting needs. The teachers' votes on the "
    "queries are included, too, and do not grow with the number of epochs: with few epochs the "
    "ratios come out too small."
  ],
  summaries=(
    Summary("CPU seconds", ("data", "method"), ("seconds", "after_teachers")),
    Summary("Ratios", ("data",), tuple(RATIOS)),
  ),
  claims=(
    Claim(
      "FairPATE costs what PATE does",
      "FairPATE takes at most 1.2 times as long as PATE",
      ex.mean("fairpate_over_pate") < 1.2,
      "Table 5",
    ),
    _slower(
      "FairDP-SGD is slower, after the noise",
      "FairDP-SGD with the penalty after the noise, on a sample of the public people,",
      "sgd_over_fairpate",
      "Table 5",
    ),
    _slower(
      "FairDP-SGD is slower, inside the clip",
      "FairDP-SGD with the penalty inside the clip, on a sample of the public people,",
      "inside_over_fairpate",
      "Table 5",
    ),
    _slower(
      "FairDP-SGD is slower, as listed",
      "FairDP-SGD as the paper lists it, inside the clip and with all public people in every step,",
      "listed_over_fairpate",
      "Table 5, Algorithm 6",
    ),
    _slower(
      "one more setting",
      "For one more setting, once the teachers are trained, FairDP-SGD",
      "sgd_over_setting",
    ),
  ),
  figures=(ex.Figure("seconds", "CPU seconds of one training", "method", "seconds", log_y=True),),
)
