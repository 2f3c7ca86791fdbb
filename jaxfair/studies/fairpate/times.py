"""Table 5: how long FairPATE, PATE, FairDP-SGD and DP-SGD take."""

import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxfair import experiments as ex
from jaxfair import methods
from jaxfair.experiments import Count, Positive, _study
from jaxfair.studies.fairpate import common
from jaxfair.studies.fairpate.common import Point, Repetition

# Rows of Table 5 by gradients, and the method of the comparison that each is.
SGD = {
  "dp_sgd": "dp_sgd",
  "fair_dp_sgd": "fair_dp_sgd",
  "fair_dp_sgd_inside": "fair_dp_sgd_inside",
  "fair_dp_sgd_listed": "fair_dp_sgd_inside",
}


class Config(common.OneThreshold):
  """Settings of one training each, timed; the paper's Algorithm 6 looks at all public people."""

  epsilon: Positive = 4.0
  max_gap: Positive = 0.01
  lam: ex.NonNegative = 5.0
  student_epochs: Count = 30  # passes over the labeled queries
  sgd_epochs: Count = 30  # expected passes over the private people; the paper has 30 for both
  sgd_batch: Count = 80
  sgd_learning_rate: Positive = 0.1


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """CPU seconds of each method, once the people are loaded."""
  own = common.split(config, cell, context)
  key = jax.random.fold_in(context.key, 1)
  votes = own.votes(key=key)
  jobs: dict[str, Callable[[], Any]] = {"teachers": lambda: own.votes(key=key)}
  for name in ("pate", "fairpate", *SGD):
    point = Point(SGD.get(name, name), config.epsilon, config.max_gap, config.lam)
    changes = _lengths(config, name)
    plan = point.plan(config, own.population.sizes, **changes)  # choosing the noise is not timed
    jobs[name] = functools.partial(_train, own, plan, votes, key)
  seconds = {name: _cpu_seconds((config, name), job) for name, job in jobs.items()}
  teachers = seconds.pop("teachers")
  taken = np.array(list(seconds.values()))
  voted = np.array(["sgd" not in name for name in seconds])
  found = {"after_teachers": np.where(voted, taken, np.nan), "seconds": taken + teachers * voted}
  shared, axes = {"data": own.people.name, **cell}, {"method": list(seconds)}
  return ex.Table.from_arrays(shared, axes, found)


_compiled: set[Any] = set()  # what this process has run before


def _cpu_seconds(program: Any, job: Callable[[], Any]) -> float:
  """The time of one run without compilation: a program's first run is not timed."""
  if program not in _compiled:
    jax.block_until_ready(job())
    _compiled.add(program)
  start = time.process_time()
  jax.block_until_ready(job())
  return time.process_time() - start


def _lengths(config: Config, name: str) -> dict[str, Any]:
  """Settings that the others do not have: passes over the people, and what is looked at."""
  if name not in SGD:
    return {"student_steps": max(1, config.student_epochs * config.queries // config.batch_size)}
  steps = max(1, config.sgd_epochs * config.private_people // config.sgd_batch)
  told: dict[str, Any] = {"steps": steps, "weight_decay": 0.0}
  return told | ({"sample": None} if name == "fair_dp_sgd_listed" else {})


def _train(own: Repetition, plan: methods.Plan, votes: np.ndarray, key: jax.Array) -> Any:
  """A model, for teachers from their votes on."""
  method: Any = methods.get(plan.method)
  if "sgd" in plan.method:
    return method.fit(plan, own.population, key=key).params
  labels = method.labels(plan, own.population, votes, key=key)
  return method.students([plan], own.population, labels[None], key=key)


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


SLOWER = {
  "after the noise": ("after the noise, on a sample of the public people,", "sgd"),
  "inside the clip": ("inside the clip, on a sample of the public people,", "inside"),
}
LONGER = "takes over 20 times as long as FairPATE"
CLAIMS = {
  "FairPATE costs what PATE does: FairPATE takes at most 1.2 times as long as PATE "
  "[Table 5, PATE]": (ex.mean("fairpate_over_pate") < 1.2),
  **{
    f"FairDP-SGD is slower, {name}: FairDP-SGD with the penalty {told} {LONGER} [Table 5]": (
      ex.mean(f"{ratio}_over_fairpate") > 20.0
    )
    for name, (told, ratio) in SLOWER.items()
  },
  "FairDP-SGD is slower, as listed: FairDP-SGD as the paper lists it, inside the clip and with all "
  f"public people in every step, {LONGER} [Table 5]": (ex.mean("listed_over_fairpate") > 20.0),
  f"one more setting: For one more setting, once the teachers are trained, FairDP-SGD {LONGER}": (
    ex.mean("sgd_over_setting") > 20.0
  ),
}

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
    ex.summary("CPU seconds", "seconds, after_teachers ~ data, method"),
    ex.summary("Ratios", f"{', '.join(RATIOS)} ~ data"),
  ),
  claims=CLAIMS,
  figures=(ex.bars("seconds: CPU seconds of one training", "seconds ~ method", log="y"),),
)
