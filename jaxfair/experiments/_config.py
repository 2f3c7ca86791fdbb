"""Strict TOML configs: a file becomes a frozen dataclass, or an error.

An unknown key, a wrong type or an impossible value is an error that names the
key and what is allowed. Sizes (`[sizes.smoke]`, ...) and `--set key=value`
replace values before the dataclass is made, so nothing is overwritten later.
A file may extend another: `extends = "base.toml"`, seen from where it lies.
"""

import dataclasses
import difflib
import pathlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from jaxfair import _schema, checks
from jaxfair.experiments._shipped import shipped_configs

C = TypeVar("C")
SIZES = ("smoke", "small", "paper")


class ConfigError(checks.JaxfairError):
  """A config that cannot be used: file, key, and what is allowed."""


def read(
  path: str | pathlib.Path, *, size: str | None = None, sets: Sequence[str] = ()
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
  raw = _extended(path, ())
  sizes = raw.pop("sizes", {})
  tables = isinstance(sizes, dict) and all(isinstance(table, dict) for table in sizes.values())
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
        f"{path}: size={checks.shown(size)} is not known; {checks.options(size, sizes)}"
      )
    merge(raw, sizes[size])
    raw["size"] = size
  for one in sets:
    key, value = assignment(one)
    names = key.split(".")
    if names[0] in ("size", "sizes"):
      raise ConfigError(f"--set {checks.shown(one)}: choose a size with --size")
    assign(raw, names, value)
  return raw


def assignment(text: str) -> tuple[str, Any]:
  """The key and the value of `"a.b=value"`; the value is TOML, or else a bare string."""
  key, separator, value = text.partition("=")
  key = key.strip()
  if not separator or not all(key.split(".")):
    raise ConfigError(f"--set {checks.shown(text)}: write it as key=value")
  found = _value(value.strip())
  _check_values({key: found}, "--set ")
  return key, found


def parse(path: pathlib.Path) -> dict[str, Any]:
  """The TOML file as it is."""
  try:
    if not path.is_file():
      raise ConfigError(f"{path}: no such config file{_nearby(path)}")
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    _check_values(values, f"{path}: ")
  except OSError as error:
    raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
  except RecursionError:
    raise ConfigError(f"{path}: tables or lists nest too deeply") from None
  except ValueError as error:  # not TOML, not UTF-8, or not a number
    raise ConfigError(f"{path}: not valid TOML: {error}") from None
  return values


def _extended(path: pathlib.Path, seen: tuple[pathlib.Path, ...]) -> dict[str, Any]:
  """The file's values over those of the file that it extends, if any."""
  if path.resolve() in seen:
    raise ConfigError(f"{path}: extends leads back to itself")
  raw = parse(path)
  base = raw.pop("extends", None)
  if base is None:
    return raw
  named = isinstance(base, str) and base.isprintable() and 0 < len(base) < 1000
  if not named:
    raise ConfigError(f"{path}: extends={checks.shown(base)} must be the path of a config file")
  values = _extended(path.parent / base, (*seen, path.resolve()))
  merge(values, raw)
  return values


def merge(base: dict[str, Any], changes: Mapping[str, Any]) -> None:
  """Replaces values of `base` in place, table by table."""
  for key, value in changes.items():
    if isinstance(value, Mapping) and isinstance(base.get(key), dict):
      merge(base[key], value)
    else:
      base[key] = value


def build(cls: type[C], values: Mapping[str, Any], *, where: str = "") -> C:
  """Makes the dataclass `cls` from plain values, checking names and types."""
  try:
    return _schema.build(cls, values, where=where)
  except checks.ArgumentError as error:
    raise ConfigError(str(error)) from None


def check_sizes(path: pathlib.Path, cls: type) -> None:
  """Checks the names and types in every `[sizes.*]` table of a file.

  A size that nobody has chosen yet must not hide a misspelled key.
  """
  for size, table in _extended(path, ()).get("sizes", {}).items():
    own, where = dict(table), f"{path}: sizes.{size}."
    check_frame({key: own.pop(key) for key in ("seed", "title") if key in own}, where)
    try:
      _schema.check_part(cls, own, where=where)
    except checks.ArgumentError as error:
      raise ConfigError(str(error)) from None


def check_frame(values: Mapping[str, Any], where: str) -> None:
  """Checks what every config may have: a seed, a title and a size."""
  seed, title, size = (values.get(key) for key in ("seed", "title", "size"))
  is_int = isinstance(seed, int) and not isinstance(seed, bool)
  if seed not in (None, "os") and not (is_int and 0 <= seed < 2**31):
    raise ConfigError(
      f"{where}seed={checks.shown(seed)} must be a whole number from 0 to "
      '2147483647, or "os" for a release'
    )
  if title is not None and not isinstance(title, str):
    raise ConfigError(f"{where}title={checks.shown(title)} must be a string")
  if size is not None and size not in SIZES:
    raise ConfigError(
      f"{where}size={checks.shown(size)} is not known; {checks.options(size, SIZES)}"
    )


def plain(config: Any) -> dict[str, Any]:
  """The config as nested dictionaries of TOML values (None is left out)."""
  return _plain(dataclasses.asdict(config))


def dump(values: Mapping[str, Any]) -> str:
  """The values as TOML text that `read` takes back."""
  lines: list[str] = []
  _dump_table(values, (), lines)
  return "\n".join(lines).strip() + "\n"


def _value(text: str) -> Any:
  try:
    return tomllib.loads(f"value = {text}")["value"]
  except RecursionError:
    raise ConfigError(f"--set {checks.shown(text)}: lists nest too deeply") from None
  except ValueError:
    return text


def _check_values(value: object, where: str) -> None:
  """Raises for values that TOML allows but no setting can have.

  Whole numbers have 64 bits in TOML, names and paths have no NUL in them, and
  a text that is no Unicode could not be written to a run's config.toml.
  """
  if isinstance(value, Mapping):
    joint = "" if where.endswith((" ", ".")) else "."
    for key, item in value.items():
      _check_text(key, where)
      _check_values(item, f"{where}{joint}{key}")
  elif isinstance(value, list):
    for i, item in enumerate(value):
      _check_values(item, f"{where}[{i}]")
  elif isinstance(value, str):
    _check_text(value, where)
  elif isinstance(value, int) and not -(2**63) <= value < 2**63:
    raise ConfigError(f"{where}={checks.shown(value)} must be a whole number of at most 64 bits")


def _check_text(text: str, where: str) -> None:
  wrong = "\0" in text or any("\ud800" <= c <= "\udfff" for c in text)
  if wrong:
    raise ConfigError(
      f"{where}: {checks.shown(text)} has a NUL or half a character in it; write it without"
    )


def assign(values: dict[str, Any], path: list[str], value: object) -> None:
  """Sets the value at a path of table names, in place."""
  for name in path[:-1]:
    values = values.setdefault(name, {})
    if not isinstance(values, dict):
      raise ConfigError(f"--set {'.'.join(path)}: {name} is not a table")
  values[path[-1]] = value


def _plain(value: object) -> Any:
  if isinstance(value, Mapping):
    return {k: _plain(v) for k, v in value.items() if v is not None}
  if isinstance(value, tuple | list):
    return [_plain(item) for item in value]
  return value


def _dump_table(values: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
  scalars = {k: v for k, v in values.items() if not isinstance(v, Mapping)}
  if path and (scalars or not values):
    lines += ["", f"[{'.'.join(map(_key, path))}]"]
  lines += [f"{_key(key)} = {_toml(value)}" for key, value in scalars.items()]
  for key, value in values.items():
    if isinstance(value, Mapping):
      _dump_table(value, (*path, key), lines)


def _toml(value: object) -> str:
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
  """The configs that may have been meant: those next to it, in ./configs, or those of jaxfair."""
  beside = path.parent.glob("*.toml") if path.parent.is_dir() else ()
  found = {*beside, *pathlib.Path("configs").rglob("*.toml")}
  shipped = shipped_configs()
  found |= (
    set()
    if found or path.is_absolute()
    else {f.relative_to(shipped) for f in shipped.rglob("[!_]*.toml")}
  )
  names = sorted(str(f) for f in found if not f.name.startswith("."))

  def unlike(name: str) -> float:
    return -difflib.SequenceMatcher(None, str(path), name).ratio()

  nearest = sorted(names, key=unlike)[:12]
  return f"; {checks.options(path, nearest)}" if names else ""
