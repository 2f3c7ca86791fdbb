"""A worker: computes cells by name and answers with plain values.

`python -m jaxfair.experiments._worker` is started by `_workers.LocalEngine`. Each line of its
standard input is a JSON list of a config's text and a cell's name; each line of its standard
output is the answer. The process ends with its input.
"""

import dataclasses
import functools
import json
import os
import sys
import tomllib
import traceback
from typing import Any

import jax

from jaxfair import checks
from jaxfair.experiments import _registry
from jaxfair.experiments._cells import Plan, code_digest, compute_cell, software
from jaxfair.experiments._runs import plan
from jaxfair.experiments._study import cell_name


def answer(config: str, name: str) -> dict[str, Any]:
  """Computes a cell; what goes wrong is part of the answer.

  Args:
    config: text of the run's config.toml, with a fixed seed: the operating system's key stays
      with the driver.
    name: of the cell.
  """
  told: dict[str, Any] = {"software": {"code": code_digest(), **software()}}
  try:
    made = _plan(config)
    assert made.seed != "os"
    (cell,) = (one for one in made.study.plan_cells(made.settings) if cell_name(one) == name)
    result = compute_cell(made, cell, jax.random.key(made.seed))
    return told | {"result": dataclasses.asdict(result)}
  except checks.JaxfairError as error:
    return told | {"mistake": str(error)}
  except Exception:  # the driver raises it
    return told | {"failure": traceback.format_exc()}


@functools.lru_cache(maxsize=1)
def _plan(config: str) -> Plan:
  """One plan for all cells, so that programs are compiled once."""
  values = tomllib.loads(config)
  return plan(_registry.find(values["study"]), values)


def main() -> None:
  """Answers until the driver closes the pipe."""
  answers = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)  # what a study prints must not mix with the answers
  for line in sys.stdin:
    config, name = json.loads(line)
    answers.write(json.dumps(answer(config, name)) + "\n")
    answers.flush()


if __name__ == "__main__":
  main()
