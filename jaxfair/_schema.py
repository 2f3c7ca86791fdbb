"""Plain values (of TOML, of JSON) checked against Python types.

A dataclass says which keys there are and what each holds. Values become that
dataclass, or an error in one line that names the key and what is allowed.
"""

import dataclasses
import json
import pathlib
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from jaxfair import checks

T = TypeVar("T")


def build(cls: type[T], values: Mapping[str, Any], *, where: str = "") -> T:
  """Makes the dataclass `cls` from plain values, checking names and types.

  Args:
    cls: a dataclass whose fields are annotated with str, int, float, bool,
      None, Literal, unions, tuple[T, ...], dict[str, T] or dataclasses.
    values: plain values by field name.
    where: begins every message.

  Raises:
    ArgumentError: for an unknown or missing key, a wrong type, or what the
      class refuses itself.
  """
  fields = {f.name: f for f in dataclasses.fields(typing.cast(Any, cls))}
  hints = typing.get_type_hints(cls)
  _refuse_unknown(fields, values, where)
  for name, field in fields.items():
    has_default = (
      field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    )
    checks.require(
      name in values or has_default, f"{where}{name}: missing; this key has no default"
    )
  made = {key: convert(hints[key], value, f"{where}{key}") for key, value in values.items()}
  try:
    return cls(**made)
  except checks.ArgumentError as error:
    raise checks.ArgumentError(f"{where}{error}") from None


def check_part(cls: type, values: Mapping[str, Any], *, where: str) -> None:
  """Checks the names and types of some fields, without making the dataclass.

  Which values go together is not looked at: the other fields are not known.
  """
  hints = typing.get_type_hints(cls)
  _refuse_unknown(hints, values, where)
  for key, value in values.items():
    hint, place = hints[key], f"{where}{key}"
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
      check_part(typing.cast(type, hint), value, where=f"{place}.")
    else:
      convert(hint, value, place)


def convert(hint: Any, value: Any, where: str) -> Any:
  """The value as this type.

  Lists become tuples, and whole numbers become floats where a float is asked
  for; nothing else is converted.

  Raises:
    ArgumentError: if it is of another type; the message begins with `where`.
  """
  origin, arguments = typing.get_origin(hint), typing.get_args(hint)
  told = f"{where}={checks.shown(value)}"
  if hint is Any:
    return value
  if origin in (typing.Union, types.UnionType):
    return _convert_union(arguments, value, where)
  if origin is typing.Literal:
    known = any(type(value) is type(one) and value == one for one in arguments)
    checks.require(known, f"{told} is not known; {checks.options(value, arguments)}")
    return value
  if origin is tuple:
    checks.require(
      isinstance(value, list | tuple), f"{told} must be a list; write [{checks.shown(value)}]"
    )
    if len(arguments) != 2 or arguments[1] is not Ellipsis:
      raise TypeError(f"{where}: only tuple[T, ...] can be read")
    return tuple(convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
  if origin is dict or dataclasses.is_dataclass(hint):
    checks.require(isinstance(value, Mapping), f"{told} must be a table")
    if origin is dict:
      inner = arguments[1]
      return {k: convert(inner, v, f"{where}.{k}") for k, v in value.items()}
    return build(typing.cast(type, hint), value, where=f"{where}.")
  if hint is float and isinstance(value, int) and not isinstance(value, bool):
    try:
      return float(value)
    except OverflowError:
      raise checks.ArgumentError(
        f"{told} must be a number that a float64 can hold, below 1.8e308"
      ) from None
  fits = isinstance(value, hint) and (hint is bool or type(value) is not bool)
  checks.require(fits, f"{told} must be {_TYPE_NAMES.get(hint, hint)}")
  return value


def read_json(path: pathlib.Path, hint: Any, *, remedy: str) -> Any:
  """Reads a JSON file and checks it against a type.

  Raises:
    ArgumentError: if it cannot be read, is no JSON, or holds something else.
  """
  try:
    text = path.read_text(encoding="utf-8")
    # NaN and Infinity are no JSON, though Python would read them.
    found = json.loads(text, parse_constant=_refuse_constant)
    if dataclasses.is_dataclass(hint):
      checks.require(isinstance(found, Mapping), "no table of names")
      return build(typing.cast(type, hint), found)
    return convert(hint, found, "content")
  except OSError as error:
    raise checks.ArgumentError(f"{path} cannot be read ({error.strerror}); {remedy}") from None
  except RecursionError:
    raise checks.ArgumentError(f"{path} is damaged (nested too deeply); {remedy}") from None
  except ValueError as error:  # no text, no JSON, or not what it should hold
    raise checks.ArgumentError(f"{path} is damaged ({error}); {remedy}") from None


def _refuse_constant(name: str) -> None:
  raise ValueError(f"{name} is not a number")


def _refuse_unknown(known: Mapping[str, Any], values: Mapping[str, Any], where: str) -> None:
  for key in values:
    checks.require(
      key in known, f"{where}{key[: checks.LONGEST]}: unknown key; {checks.options(key, known)}"
    )


def _convert_union(choices: tuple[Any, ...], value: object, where: str) -> Any:
  if value is None and type(None) in choices:
    return None
  choices = tuple(choice for choice in choices if choice is not type(None))
  is_list = isinstance(value, list | tuple)
  fitting = [c for c in choices if (typing.get_origin(c) is tuple) == is_list]
  errors = []
  for choice in fitting or choices:  # a list is told of lists only
    try:
      return convert(choice, value, where)
    except checks.ArgumentError as error:
      errors.append(str(error))
  raise checks.ArgumentError(" or ".join(errors))


_TYPE_NAMES = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
