"""Studies by name: those of the papers, and users' own."""

import importlib
import importlib.metadata
import importlib.util
import pathlib
from collections.abc import Sequence
from typing import Any

from jaxfair import checks
from jaxfair.experiments._cells import Plan
from jaxfair.experiments._config import ConfigError, check_sizes, read
from jaxfair.experiments._runs import plan
from jaxfair.experiments._study import Study

GROUP = "jaxfair.studies"  # entry points of packages that bring studies


def names() -> tuple[str, ...]:
  """The names of all studies that are installed."""
  own: tuple[str, ...] = importlib.import_module("jaxfair.studies").NAMES
  others = (entry.name for entry in importlib.metadata.entry_points(group=GROUP))
  return (*own, *others)


def find(name: object, *, where: str = "") -> Study:
  """The study of this name.

  Args:
    name: one of `names()`, a Python file (`my_study.py`) or a module
      (`package.my_study`) that defines `STUDY`.
    where: an error begins with it.
  """
  if not isinstance(name, str):
    raise ConfigError(f"{where}study is missing; {checks.options(name, names())}")
  if name.endswith(".py"):
    return _study(_load_file(pathlib.Path(name), where), name, where)
  own = importlib.import_module("jaxfair.studies")
  if name in own.NAMES:
    module = importlib.import_module(f"jaxfair.studies.{own.MODULES.get(name, name)}")
    return _study(getattr(module, "STUDIES", {}).get(name, module), name, where)
  for entry in importlib.metadata.entry_points(group=GROUP):
    if entry.name == name:
      return _study(entry.load(), name, where)
  try:
    module = importlib.import_module(name)
  except ImportError:
    told = f"study={checks.shown(name)} is unknown; {checks.options(name, names())}"
    raise ConfigError(f"{where}{told}, or a Python file that defines STUDY") from None
  return _study(module, name, where)


def load(path: pathlib.Path, *, size: str | None = None, sets: Sequence[str] = ()) -> Plan:
  """Reads a config file for the study that it names; all its sizes are checked.

  Args:
    path: the TOML file.
    size: one of its `[sizes.*]` tables.
    sets: `"a.b=value"` strings that replace values.
  """
  values, where = read(path, size=size, sets=sets), f"{path}: "
  study = find(values.get("study"), where=where)
  check_sizes(path, study.config)
  return plan(study, values, where=where)


def _load_file(path: pathlib.Path, where: str) -> Any:
  if not path.is_file():
    raise ConfigError(f"{where}study={str(path)!r}: there is no such file")
  spec = importlib.util.spec_from_file_location(path.stem, path)
  assert spec is not None
  assert spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _study(found: object, name: str, where: str) -> Study:
  study = found if isinstance(found, Study) else getattr(found, "STUDY", None)
  if not isinstance(study, Study):
    raise ConfigError(f"{where}{name} defines no STUDY; see docs/studies.md")
  return study
