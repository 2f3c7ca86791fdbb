"""Columns that cannot be features: empty, constant, names and ids, dates, numbers among words."""

import re
from collections.abc import Collection

import numpy as np

from jaxfair import checks
from jaxfair.data import _tables
from jaxfair.data._tables import Column, Table

# More numbers than this, and a column is a measurement rather than a code.
MAX_CODES = 20
# More words than this, and a column is a name or an id.
MAX_WORDS = 1000
# Fewer rows than this may be numbered by chance.
_MIN_NUMBERED = 30
_TIME = r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AP]M)?(Z|[+-]\d{2}:?\d{2})?)?"
_DATE = re.compile(
  rf"(\d{{4}}([-/.])\d{{1,2}}\2\d{{1,2}}|\d{{1,2}}([-/.])\d{{1,2}}\3(\d{{4}}|\d{{2}})){_TIME}",
  re.ASCII | re.IGNORECASE,
)
_CODES = "or name it in categorical= if these are codes"


def check_features(
  table: Table, roles: Collection[str | None], declared: Collection[str], codes: Collection[str]
) -> None:
  """Raises for columns that cannot be features or carry no information.

  Args:
    table: the people.
    roles: columns that are not features.
    declared: columns whose range or categories are declared: they may hold anything.
    codes: columns that are declared to be categories.
  """
  gaps_of = {name: _tables.unknown(table[name]) for name in table if name not in roles}
  empty = [name for name, gaps in gaps_of.items() if gaps.all()]
  checks.require(
    not empty,
    f"column {', '.join(map(repr, empty))} {'is' if len(empty) == 1 else 'are'} empty; name "
    f"{'it' if len(empty) == 1 else 'each'} in drop=",
  )
  for name, gaps in gaps_of.items():
    values = table[name]
    if name in declared:
      continue
    if _tables.is_number(values):
      constant = not gaps.any() and bool((values == values[0]).all())
    else:
      constant = len(_tables.levels(values).words) == 1
    checks.require(
      not constant, f"column {name!r} has the same value in every row; name it in drop="
    )
    if _tables.is_number(values):
      _check_row_numbers(name, values)
    else:
      _check_words(name, values, coded=name in codes)


def _check_row_numbers(name: str, values: Column) -> None:
  """Raises for whole numbers that count the rows: the model would learn the order of the file."""
  size = len(values)
  if size < _MIN_NUMBERED:
    return
  first = np.min(values)
  counted = bool(np.array_equal(np.sort(values), first + np.arange(size)))
  checks.require(
    not counted,
    f"column {name!r} numbers the rows from {first:g} to {first + size - 1:g}; name it in drop=, "
    "or declare its range if it is a feature",
  )


def _check_words(name: str, values: Column, *, coded: bool) -> None:
  words = [word for word in _tables.levels(values).words if word]
  numbers = [word for word in words if _is_number(word)]
  if not coded and len(words) > MAX_CODES:
    dates = all(map(_DATE.fullmatch, words))
    checks.require(
      not dates,
      f"column {name!r} holds dates such as {words[0]!r}; turn them into numbers, name it in "
      f"drop=, {_CODES}",
    )
    mixed = len(numbers) > MAX_CODES and 2 * len(numbers) > len(words)
    if mixed:
      strange = next(word for word in words if not _is_number(word))
      raise checks.ArgumentError(
        f"column {name!r} has numbers, and text such as {checks.shown(strange)}; leave these "
        f"cells empty, {_CODES}"
      )
  checks.require(
    len(words) <= MAX_WORDS,
    f"column {name!r} has {len(words)} different values, each of which would become a feature; "
    "name it in drop=, or make it coarser",
  )


def _is_number(word: str) -> bool:
  return any(_tables.number(word, sign) is not None for sign in (".", ","))
