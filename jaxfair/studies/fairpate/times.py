"""Table 5: how long FairPATE, PATE, FairDP-SGD and DP-SGD take."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxfair import checks, models, training
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check, mean_above
from jaxfair.studies.fairpate import config as settings
from jaxfair.studies.fairpate import students
from jaxfair.studies.fairpate.config import Repetition
from jaxfair.studies.fairpate.students import Point
from jaxfair.studies.protocol import Claim, Figure, Summary


@dataclasses.dataclass(frozen=True)
class Config(settings.OneThreshold):
  """Settings of one training each, timed.

  Attributes:
    epsilon: of all of them.
    max_gap: of FairPATE.
    lam: of FairDP-SGD.
    student_epochs: passes over the labelled queries.
    sgd_epochs: expected passes over the private people; the paper has 30 for
      both.
    sgd_batch: expected batch of DP-SGD.
    public_sample: public people that our FairDP-SGD looks at in a step; the
      paper's Algorithm 6 looks at all.
  """

  epsilon: float = 4.0
  max_gap: float = 0.01
  lam: float = 5.0
  student_epochs: int = 30
  sgd_epochs: int = 30
  sgd_batch: int = 80
  public_sample: int = 256

  def __post_init__(self) -> None:
    super().__post_init__()
    for name in ("student_epochs", "sgd_epochs", "sgd_batch", "public_sample"):
      checks.integer(name, getattr(self, name), low=1)
    for name in ("epsilon", "max_gap"):
      checks.positive(name, getattr(self, name))
    checks.non_negative("lam", self.lam)


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """CPU seconds of each method, once the people are there."""
  own = settings.without_votes(config, cell, context)
  key_votes, key = jax.random.split(jax.random.fold_in(context.key, 1))
  own = own._replace(counts=settings.votes_of(config, own, key=key_votes))
  made = _calibrated(config, own.private.size)
  some, everybody = min(config.public_sample, config.queries), None
  jobs: dict[str, Callable[[], Any]] = {
    "teachers": lambda: settings.votes_of(config, own, key=key_votes),
    "pate": lambda: _taught(config, own, "pate", key),
    "fairpate": lambda: _taught(config, own, "fairpate", key),
    "dp_sgd": lambda: _private(config, own, made, None, some, key),
    "fair_dp_sgd": lambda: _private(config, own, made, "after", some, key),
    "fair_dp_sgd_inside": lambda: _private(
      config, own, made, "inside", some, key
    ),
    "fair_dp_sgd_listed": lambda: _private(
      config, own, made, "inside", everybody, key
    ),
  }
  seconds = {
    name: _cpu_seconds((config, name), job) for name, job in jobs.items()
  }
  teachers = seconds.pop("teachers")
  rows = []
  for name, value in seconds.items():
    voted = "sgd" not in name
    rows.append(
      {
        "data": own.people.name, **cell, "method": name,
        "after_teachers": value if voted else np.nan,
        "seconds": value + teachers * voted,
      }
    )  # fmt: skip
  return Table({name: [row[name] for row in rows] for name in rows[0]})


_compiled: set[Any] = set()  # what this process has run before


def _cpu_seconds(program: Any, job: Callable[[], Any]) -> float:
  """Of one run, without compilation: a program's first run is not timed."""
  if program not in _compiled:
    jax.block_until_ready(job())
    _compiled.add(program)
  start = time.process_time()
  jax.block_until_ready(job())
  return time.process_time() - start


def _taught(
  config: Config, own: Repetition, method: str, key: jax.Array
) -> Any:
  """Query phase and student."""
  key_noise, key_student = jax.random.split(key)
  point = Point(method, config.epsilon, config.max_gap)
  labels = students.labels_of(config, own, point, key=key_noise)[None]
  steps = max(1, config.student_epochs * config.queries // config.batch_size)
  return students.train_students(
    config, own, labels, steps=steps, key=key_student
  )


def _calibrated(config: Config, size: int) -> training.DpSgdConfig:
  """DP-SGD over the given passes; choosing its noise is not timed."""
  steps = max(1, config.sgd_epochs * size // config.sgd_batch)
  base = training.DpSgdConfig(
    learning_rate=0.1, steps=steps, batch_size=config.sgd_batch
  )
  return training.calibrate(
    base, size, epsilon=config.epsilon, delta=config.delta
  )


def _private(
  config: Config,
  own: Repetition,
  made: training.DpSgdConfig,
  placement: Any,
  sample: int | None,
  key: jax.Array,
) -> Any:
  """DP-SGD, plain or with the penalty."""
  if placement is None:
    return training.dp_sgd(
      own.model, models.cross_entropy, own.private, made, key=key
    ).params
  return training.fair_dp_sgd(
    own.model, models.cross_entropy, own.private, made, key=key,
    public_x=own.public.x, public_group=own.public.group,
    num_groups=own.people.num_groups, lam=config.lam, placement=placement,
    sample=sample,
  ).params  # fmt: skip


RATIOS = {
  "sgd_over_fairpate": ("fair_dp_sgd", "fairpate", "seconds"),
  "inside_over_fairpate": ("fair_dp_sgd_inside", "fairpate", "seconds"),
  "listed_over_fairpate": ("fair_dp_sgd_listed", "fairpate", "seconds"),
  "sgd_over_setting": ("fair_dp_sgd", "fairpate", "after_teachers"),
  "fairpate_over_pate": ("fairpate", "pate", "seconds"),
}


def _ratios(table: Table) -> Table:
  """Adds how much longer one method takes than another, in every row."""
  if "seconds" not in table:
    return table
  known = {(row["seed"], row["method"]): row for row in table.rows()}
  return table.plus(
    **{
      name: [
        known[seed, above]["seconds"] / known[seed, below][column]
        for seed in table["seed"].tolist()
      ]
      for name, (above, below, column) in RATIOS.items()
    }
  )


def _below(column: str, limit: float) -> Check:
  """The mean over seeds is below a limit: its interval is."""

  def check(table: Table) -> protocol.Finding:
    found = mean_above(column, limit)(table)
    if found.holds is None:
      return found
    return dataclasses.replace(found, holds=found.high < limit)

  return check


STUDY = protocol.Study(
  name="fairpate.times",
  summary="CPU time of FairPATE, PATE, FairDP-SGD and DP-SGD (Table 5)",
  config=Config,
  cells=settings.cells,
  run=run,
  derive=_ratios,
  notes=lambda config: [
    "CPU seconds of one training each, on all cores, without compilation and "
    "without reading and scaling the people. "
    "Teachers are in the time of PATE and FairPATE; after_teachers is what "
    "comes after them, of which a sweep over settings needs no more. Their "
    "votes on the queries are in it, too, and no epoch multiplies those: with "
    "few epochs the ratios come out too small.",
  ],
  summaries=(
    Summary(
      "CPU seconds",
      by=("data", "method"),
      values=("seconds", "after_teachers"),
    ),
    Summary(
      "Ratios",
      by=("data",),
      values=tuple(RATIOS),
    ),
  ),
  claims=(
    Claim(
      "FairPATE costs what PATE does",
      "FairPATE takes at most 1.2 times as long as PATE",
      _below("fairpate_over_pate", 1.2),
      "Table 5",
    ),
    Claim(
      "FairDP-SGD is slower, after the noise",
      "FairDP-SGD with the penalty after the noise, on a sample of the public "
      "people, takes over 20 times as long as FairPATE",
      mean_above("sgd_over_fairpate", 20.0),
      "Table 5",
    ),
    Claim(
      "FairDP-SGD is slower, inside the clip",
      "FairDP-SGD with the penalty inside the clip, on a sample of the public "
      "people, takes over 20 times as long as FairPATE",
      mean_above("inside_over_fairpate", 20.0),
      "Table 5",
    ),
    Claim(
      "FairDP-SGD is slower, as listed",
      "FairDP-SGD as the paper lists it, inside the clip and with all public "
      "people in every step, takes over 20 times as long as FairPATE",
      mean_above("listed_over_fairpate", 20.0),
      "Table 5, Algorithm 6",
    ),
    Claim(
      "one more setting",
      "For one more setting, once the teachers are there, FairDP-SGD takes "
      "over 20 times as long as FairPATE",
      mean_above("sgd_over_setting", 20.0),
    ),
  ),
  figures=(
    Figure(
      "seconds", "CPU seconds of one training", x="method", y="seconds",
      log_y=True,
    ),
  ),
)  # fmt: skip
