"""Reads and checks the user's file and rule before any work."""

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxfair import checks

if TYPE_CHECKING:
  from jaxfair.decisions._ways import NonPrivateCase

SHARING, LANGUAGE = "title-one", "minority-language"
COLUMNS = {
  SHARING: ("children", "weight"),
  LANGUAGE: ("citizens", "limited_english", "little_schooling"),
}


class OfficeFile(NamedTuple):
  """Places, and the rule that decides about them."""

  case: "NonPrivateCase"
  names: np.ndarray  # [n]
  regions: np.ndarray | None  # [n]
  sizes: np.ndarray  # [n] the first count
  private: tuple[str, ...]  # columns that get noise


def read(
  path: pathlib.Path,
  rule: str,
  *,
  columns: Sequence[str],
  public: Sequence[str],
  names: str,
  region: str,
) -> OfficeFile:
  """Reads the file, loads the rule and computes what every place is due."""
  import jax

  from jaxfair import data
  from jaxfair.data import _tables
  from jaxfair.decisions import _own_rules, _problems, _ways

  own = None
  if rule == LANGUAGE:
    own = _own_rules.OwnRule(rule, _problems.minority_language, COLUMNS[rule])
  elif rule != SHARING:
    own = _own_rules.load_rule(rule)
  table = data.read_table(path, text=[name for name in (names, region) if name])
  wanted = list(columns) or list(own.parameters if own else COLUMNS[SHARING])
  if own is None and not columns and "weight" not in table:
    wanted.remove("weight")
  checks.require(bool(wanted), f"rule={rule} names no columns; pass them with --column")
  unknown = [] if columns else [name for name in wanted if name not in table]
  checks.require(
    not unknown,
    f"{path.name} has no column {unknown and unknown[0]!r}, which {rule} reads; its columns are "
    f"{', '.join(table)}; name your own with --column, in the order {', '.join(wanted)}",
  )
  for name in public:
    checks.one_of("public", name, wanted)
  values = [_numbers(_tables.column(table, name), name) for name in wanted]
  labels = np.array([f"row {i + 1}" for i in range(_tables.size(table))])
  if names:
    labels = _tables.words(_tables.column(table, names, "names"))
  regions = _tables.words(_tables.column(table, region, "region")) if region else None
  checks.require(
    len(labels) > 1, f"{path.name} has {len(labels)} places; a comparison needs at least 2"
  )
  if own is None:
    checks.require(
      len(values) <= 2 and not public,
      f"rule={SHARING} reads a count and a public weight; name at most these two with --column",
    )
    weights = values[1] if len(values) > 1 else np.ones(len(labels))
    _problems.check_counts(values[0], weights=weights, names=labels)
    case = _ways.sharing_case(values[0], weights)
    return OfficeFile(case, labels, regions, values[0], (wanted[0],))
  private = tuple(name for name in wanted if name not in public)
  checks.require(bool(private), "public names every column; noise needs a private count")
  by_name = dict(zip(wanted, values, strict=True))
  counts = tuple(by_name[name] for name in private)
  for one in counts:
    _problems.check_counts(one, names=labels)
  for name in public:
    checks.finite(f"column {name}", by_name[name])

  def whole(noisy: list[np.ndarray], told: str = "the true counts") -> np.ndarray:
    both = by_name | dict(zip(private, noisy, strict=True))
    return own([both[name] for name in wanted], told=told)

  case = _ways.rule_case(whole, counts, key=jax.random.key(1))
  return OfficeFile(case, labels, regions, counts[0], private)


def _numbers(found: np.ndarray, name: str) -> np.ndarray:
  from jaxfair.data import _tables

  checks.require(
    bool(_tables.is_number(found)), f"column {name!r} holds text; name a numeric column"
  )
  return np.asarray(found, np.float64)
