"""One module per experiment: config -> tidy table -> claims and figures.

Studies train and measure by calling the packages above; they never draw.
"""

import importlib

from jaxfair.studies import claims
from jaxfair.studies.config import ConfigError, read
from jaxfair.studies.people import People, load_people
from jaxfair.studies.protocol import (
  Claim,
  Context,
  Figure,
  Finding,
  Settings,
  Study,
  Summary,
)
from jaxfair.studies.repeats import repeat
from jaxfair.studies.runs import Plan, RunError, execute, plan, write_claims
from jaxfair.studies.table import Table

NAMES = ("quickstart",)

__all__ = [
  "NAMES",
  "Claim",
  "ConfigError",
  "Context",
  "Figure",
  "Finding",
  "People",
  "Plan",
  "RunError",
  "Settings",
  "Study",
  "Summary",
  "Table",
  "claims",
  "execute",
  "find",
  "load_people",
  "plan",
  "read",
  "repeat",
  "write_claims",
]


def find(name: object) -> Study:
  """The study of this name."""
  from jaxfair import checks

  if name not in NAMES:
    told = (
      "study is missing" if name is None else f"study={name!r} is not known"
    )
    raise ConfigError(f"{told}; {checks.options(name, NAMES)}")
  study: Study = importlib.import_module(f"jaxfair.studies.{name}").STUDY
  return study
