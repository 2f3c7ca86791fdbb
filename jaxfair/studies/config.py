"""Strict TOML configs: a file becomes a frozen dataclass, or an error.

An unknown key, a wrong type or an impossible value is an error that names the
key and what is allowed. Sizes (`[sizes.smoke]`, ...) and `--set key=value`
replace values before the dataclass is made, so nothing is overwritten later.
"""

import dataclasses
import difflib
import pathlib
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from jaxfair import checks

C = TypeVar("C")
SIZES = ("smoke", "small", "paper")


class ConfigError(checks.JaxfairError):
  """A config that cannot be used: file, key, and what is allowed."""


def read(
  path: str | pathlib.Path,
  *,
  size: str | None = None,
  sets: Sequence[str] = (),
) -> dict[str, Any]:
  """Reads a TOML file and applies one size and `key=value` replacements.

  Args:
    path: the TOML file. Its `size` key names the default size.
    size: one of the file's `[sizes.*]` tables.
    sets: `"a.b=value"` strings; the value is TOML, or else a bare string.

  Returns:
    The plain nested dictionary, without the `sizes` table.
  """
  path = pathlib.Path(path)
  raw = parse(path)
  sizes = raw.pop("sizes", {})
  tables = isinstance(sizes, dict) and all(
    isinstance(table, dict) for table in sizes.values()
  )
  if not tables or set(sizes) - set(SIZES):
    raise ConfigError(f"{path}: sizes: use tables named {', '.join(SIZES)}")
  # A run's own config.toml names the size that was applied to it, and has no
  # tables left.
  if size is None and sizes:
    size = raw.get("size")
  if size is not None:
    if not sizes:
      raise ConfigError(f"{path}: size={size!r}: this config has no sizes")
    if size not in list(sizes):
      raise ConfigError(
        f"{path}: size={size!r} is not known; {checks.options(size, sizes)}"
      )
    merge(raw, sizes[size])
    raw["size"] = size
  for assignment in sets:
    key, separator, text = assignment.partition("=")
    names = key.strip().split(".")
    if not separator or not all(names):
      raise ConfigError(f"--set {assignment!r}: write it as key=value")
    if names[0] in ("size", "sizes"):
      raise ConfigError(f"--set {assignment!r}: choose a size with --size")
    _assign(raw, names, _value(text.strip()))
  return raw


def parse(path: pathlib.Path) -> dict[str, Any]:
  """The TOML file as it is."""
  if not path.is_file():
    raise ConfigError(f"{path}: no such config file{_nearby(path)}")
  try:
    return tomllib.loads(path.read_text(encoding="utf-8"))
  except OSError as error:
    raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
  except ValueError as error:  # not TOML, not UTF-8, or not a number
    raise ConfigError(f"{path}: not valid TOML: {error}") from None


def merge(base: dict[str, Any], changes: Mapping[str, Any]) -> None:
  """Replaces values of `base` in place, table by table."""
  for key, value in changes.items():
    if isinstance(value, Mapping) and isinstance(base.get(key), dict):
      merge(base[key], value)
    else:
      base[key] = value


def build(cls: type[C], values: Mapping[str, Any], *, where: str = "") -> C:
  """Makes the dataclass `cls` from plain values, checking names and types."""
  fields = {f.name: f for f in dataclasses.fields(typing.cast(Any, cls))}
  hints = typing.get_type_hints(cls)
  for key in values:
    if key not in fields:
      raise ConfigError(
        f"{where}{key}: unknown key; {checks.options(key, fields)}"
      )
  for name, field in fields.items():
    has_default = (
      field.default is not dataclasses.MISSING
      or field.default_factory is not dataclasses.MISSING
    )
    if name not in values and not has_default:
      raise ConfigError(f"{where}{name}: missing; this key has no default")
  made = {
    key: _convert(hints[key], value, f"{where}{key}")
    for key, value in values.items()
  }
  try:
    return cls(**made)
  except checks.ArgumentError as error:
    raise ConfigError(f"{where}{error}") from None


def plain(config: Any) -> dict[str, Any]:
  """The config as nested dictionaries of TOML values (None is left out)."""
  return _plain(dataclasses.asdict(config))


def dump(values: Mapping[str, Any]) -> str:
  """The values as TOML text that `read` takes back."""
  lines: list[str] = []
  _dump_table(values, (), lines)
  return "\n".join(lines).strip() + "\n"


def _convert(hint: Any, value: Any, where: str) -> Any:
  origin, arguments = typing.get_origin(hint), typing.get_args(hint)
  if origin in (typing.Union, types.UnionType):
    return _convert_union(arguments, value, where)
  if origin is typing.Literal:
    if value not in arguments:
      raise ConfigError(
        f"{where}={value!r} is not known; {checks.options(value, arguments)}"
      )
    return value
  if origin is tuple:
    if not isinstance(value, list | tuple):
      raise ConfigError(f"{where}={value!r} must be a list")
    if len(arguments) != 2 or arguments[1] is not Ellipsis:
      raise TypeError(f"{where}: configs hold tuple[T, ...] only")
    return tuple(
      _convert(arguments[0], item, f"{where}[{i}]")
      for i, item in enumerate(value)
    )
  if dataclasses.is_dataclass(hint):
    if not isinstance(value, Mapping):
      raise ConfigError(f"{where}={value!r} must be a table")
    return build(typing.cast(type, hint), value, where=f"{where}.")
  if hint is float and isinstance(value, int) and not isinstance(value, bool):
    return float(value)
  if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
    raise ConfigError(
      f"{where}={value!r} must be {_TYPE_NAMES.get(hint, hint)}"
    )
  return value


def _convert_union(choices: tuple[Any, ...], value: Any, where: str) -> Any:
  if value is None and type(None) in choices:
    return None
  choices = tuple(choice for choice in choices if choice is not type(None))
  is_list = isinstance(value, list | tuple)
  fitting = [c for c in choices if (typing.get_origin(c) is tuple) == is_list]
  errors = []
  for choice in fitting or choices:  # a list is told of lists only
    try:
      return _convert(choice, value, where)
    except ConfigError as error:
      errors.append(str(error))
  raise ConfigError(" or ".join(errors))


_TYPE_NAMES = {
  int: "a whole number",
  float: "a number",
  str: "a string",
  bool: "true or false",
}


def _value(text: str) -> Any:
  try:
    return tomllib.loads(f"value = {text}")["value"]
  except ValueError:
    return text


def _assign(values: dict[str, Any], path: list[str], value: Any) -> None:
  for name in path[:-1]:
    values = values.setdefault(name, {})
    if not isinstance(values, dict):
      raise ConfigError(f"--set {'.'.join(path)}: {name} is not a table")
  values[path[-1]] = value


def _plain(value: Any) -> Any:
  if isinstance(value, Mapping):
    return {k: _plain(v) for k, v in value.items() if v is not None}
  if isinstance(value, tuple | list):
    return [_plain(item) for item in value]
  return value


def _dump_table(
  values: Mapping[str, Any], path: tuple[str, ...], lines: list[str]
) -> None:
  scalars = {k: v for k, v in values.items() if not isinstance(v, Mapping)}
  if path and (scalars or not values):
    lines += ["", f"[{'.'.join(map(_key, path))}]"]
  lines += [f"{_key(key)} = {_toml(value)}" for key, value in scalars.items()]
  for key, value in values.items():
    if isinstance(value, Mapping):
      _dump_table(value, (*path, key), lines)


def _toml(value: Any) -> str:
  if isinstance(value, bool):
    return "true" if value else "false"
  if isinstance(value, str):
    return '"' + "".join(map(_escape, value)) + '"'
  if isinstance(value, list | tuple):
    return "[" + ", ".join(_toml(item) for item in value) + "]"
  if isinstance(value, Mapping):  # a table within a list
    pairs = (f"{_key(key)} = {_toml(item)}" for key, item in value.items())
    return "{" + ", ".join(pairs) + "}"
  return repr(value)


def _key(name: str) -> str:
  return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _escape(character: str) -> str:
  if character in '"\\':
    return "\\" + character
  if ord(character) < 0x20 or ord(character) == 0x7F:
    return f"\\u{ord(character):04x}"
  return character


def _nearby(path: pathlib.Path) -> str:
  """The configs that may have been meant: those next to it, and ./configs."""
  beside = path.parent.glob("*.toml") if path.parent.is_dir() else ()
  found = {*beside, *pathlib.Path("configs").rglob("*.toml")}
  names = sorted(str(f) for f in found if not f.name.startswith("."))

  def unlike(name: str) -> float:
    return -difflib.SequenceMatcher(None, str(path), name).ratio()

  nearest = sorted(names, key=unlike)[:12]
  return f"; {checks.options(path, nearest)}" if names else ""
