"""A user's own rule, loaded from a Python file: `grant.py:allot`."""

import dataclasses
import inspect
import pathlib
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxfair import checks


@dataclasses.dataclass(frozen=True)
class OwnRule:
  """A Python function of columns, checked at every call.

  Attributes:
    name: name for messages, `grant.py:allot`.
    function: from one NumPy array per column to one number or boolean per place.
    parameters: names of its arguments: the columns that it reads unless told otherwise.
  """

  name: str
  function: Callable[..., Any]
  parameters: tuple[str, ...]

  def __call__(self, columns: Sequence[np.ndarray], *, told: str = "the true counts") -> np.ndarray:
    """[n] amounts (float64) or decisions (bool); raises `ArgumentError` for anything else."""
    own = [np.array(column) for column in columns]  # the function may write to its arguments
    try:
      with np.errstate(all="ignore"):
        found = np.asarray(self.function(*own))
    except Exception as error:
      raise checks.ArgumentError(
        f"{self.name} fails on {told} ({_told(error)}); call it in Python with these columns "
        "to debug it"
      ) from None
    checks.require(
      found.shape == own[0].shape,
      f"{self.name} returns shape {found.shape} on {told}; return {len(own[0])} values, one per "
      "place",
    )
    checks.require(
      found.dtype.kind in "biuf",
      f"{self.name} returns {found.dtype} values; return one number (an amount) or one boolean (a "
      "decision) per place",
    )
    if found.dtype.kind == "b":
      return found
    checks.require(
      bool(np.isfinite(found).all()),
      f"{self.name} returns {np.sum(~np.isfinite(found))} values that are not finite on {told}; "
      "noisy counts may be 0 or below: guard divisions, logarithms and roots",
    )
    return found.astype(np.float64)


def load_rule(where: str) -> OwnRule:
  """Loads the function that `FILE.py:NAME` names; runs the file.

  Raises:
    ArgumentError: if there is no such file or function, or the file cannot be imported.
  """
  place, _, name = where.rpartition(":")
  path = pathlib.Path(place)
  checks.require(
    path.suffix == ".py" and name.isidentifier(),
    f"rule={where!r} is not a rule; pass title-one, minority-language, or FILE.py:FUNCTION",
  )
  checks.require(path.is_file(), f"rule={where!r}: there is no file {place}; check the path")
  module = types.ModuleType(path.stem)
  try:  # not by importlib, which would leave a __pycache__ beside the file
    exec(compile(path.read_bytes(), place, "exec"), vars(module))
  except (Exception, SystemExit) as error:
    raise checks.ArgumentError(
      f"{place} cannot be imported ({_told(error)}); try `python {place}`"
    ) from None
  function = getattr(module, name, None)
  made = [key for key, value in vars(module).items() if inspect.isfunction(value)]
  checks.require(
    callable(function), f"{place} has no function {name}; {checks.options(name, made)}"
  )
  assert callable(function)
  return OwnRule(f"{path.name}:{name}", function, _parameters(function))


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
  """Its positional arguments without a default."""
  try:
    found = inspect.signature(function).parameters.values()
  except (TypeError, ValueError):
    return ()
  kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
  return tuple(p.name for p in found if p.kind in kinds and p.default is p.empty)


def _told(error: BaseException) -> str:
  return f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]
