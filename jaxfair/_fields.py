"""Settings that validate themselves: what a field may hold is part of its type.

    class Config(Settings):
      data: People = People("adult", group="sex")
      teachers: Sweep[Count] = (20, 150)
      sigma: Positive = 50.0
      delta: Probability = 1e-6

A config is checked when it is made, from a file or in Python; a value outside
its range is an error that names the field and the range.
"""

import dataclasses
import functools
import math
import types
import typing
from typing import Annotated, Any, TypeAlias, TypeVar

from jaxfair import checks

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Within:
  """A number between two bounds, both allowed unless said otherwise."""

  low: float | None = None
  high: float | None = None
  open_low: bool = False
  open_high: bool = False

  def check(self, name: str, value: Any) -> None:
    """Raises if the value is out of range."""
    if isinstance(value, int) and not (self.open_low or self.open_high):
      low, high = (None if end is None else int(end) for end in (self.low, self.high))
      checks.integer(name, value, low=low, high=high)
      return
    checks.number(
      name,
      value,
      low=-math.inf if self.low is None else self.low,
      high=math.inf if self.high is None else self.high,
      open_low=self.open_low,
      open_high=self.open_high,
    )


@dataclasses.dataclass(frozen=True)
class OneOf:
  """One of some values that are known where the class is defined."""

  allowed: tuple[Any, ...]

  def check(self, name: str, value: Any) -> None:
    """Raises for another value, and suggests the nearest."""
    checks.one_of(name, value, self.allowed)


@dataclasses.dataclass(frozen=True)
class Several:
  """A list of one or more values (two or more if they are compared), all different."""

  compared: bool = False

  def check(self, name: str, value: Any) -> None:
    """Raises if the list is too short or names something twice."""
    checks.require(bool(value), f"{name} is empty; give at least one value")
    checks.require(
      len(value) > self.compared, f"{name}={list(value)} needs at least two values to compare"
    )
    checks.require(len(set(value)) == len(value), f"{name}={list(value)} names something twice")


Count = Annotated[int, Within(1)]
Positive = Annotated[float, Within(0.0, open_low=True)]
NonNegative = Annotated[float, Within(0.0)]
Probability = Annotated[float, Within(0.0, 1.0, open_low=True, open_high=True)]
Share = Annotated[float, Within(0.0, 1.0)]
Sweep = Annotated[tuple[T, ...], Several()]
Compared = Annotated[tuple[T, ...], Several(compared=True)]
OneOrMany: TypeAlias = Sweep[T] | T


def several(values: tuple[T, ...] | T) -> tuple[T, ...]:
  """The values of a `OneOrMany` field."""
  return values if isinstance(values, tuple) else (values,)


@typing.dataclass_transform(frozen_default=True)
class Settings:
  """Base of a config: a frozen dataclass whose fields are checked.

  A subclass is a dataclass without a decorator. It may define `check(self)`
  for what concerns several fields at once; it begins with `super().check()`.
  """

  def __init_subclass__(cls) -> None:
    dataclasses.dataclass(frozen=True)(cls)

  def __post_init__(self) -> None:
    for name, hint in _hints(typing.cast(Any, type(self))).items():
      _check(name, hint, getattr(self, name))
    self.check()

  def check(self) -> None:
    """Raises if the fields do not go together."""


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
  return typing.get_type_hints(cls, include_extras=True)


def _check(name: str, hint: Any, value: Any) -> None:
  if value is None:
    return
  origin, arguments = typing.get_origin(hint), typing.get_args(hint)
  if origin is Annotated:
    _check(name, arguments[0], value)
    for rule in arguments[1:]:
      rule.check(name, value)
  elif origin is tuple:
    for item in value:
      _check(name, arguments[0], item)
  elif origin in (typing.Union, types.UnionType):
    if type(value) in arguments:
      return  # any int is one, of int | Literal["all"]
    for choice in arguments:
      if choice is not type(None) and _is_list(choice) == isinstance(value, tuple):
        _check(name, choice, value)
  elif origin is typing.Literal:
    checks.one_of(name, value, arguments)


def _is_list(hint: Any) -> bool:
  if typing.get_origin(hint) is Annotated:
    hint = typing.get_args(hint)[0]
  return typing.get_origin(hint) is tuple
