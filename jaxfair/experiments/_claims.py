"""Claims: a statistic of the table, its 95% interval, a bound, a verdict.

    claim("who pays", "Noise costs one group more than another",
          (spread("accuracy_cost", "group") > 0).at(labels="hard"),
          source="Fig. 4.3")

A statistic becomes a check by comparing it: `mean("gap") < 0.02`. Both can be
narrowed to some rows with `.at(...)` and a check can be asked for in every
value of a column with `.in_each(...)`.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from jaxfair.experiments._table import NoColumnError, Table

Verdict = Literal["supported", "not supported", "undecided", "not run"]
Where = Mapping[str, Any]


class CannotTellError(Exception):
  """A statistic that these rows do not have; the message says why."""


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A number with its 95% interval."""

  words: str  # what was computed
  value: float  # the estimate
  low: float  # lower end of the interval; the value itself if there is none
  high: float  # upper end


@dataclasses.dataclass(frozen=True)
class Finding:
  """What a check found on the table."""

  # Supported if the whole interval lies on the claim's side, not supported if it lies on the other,
  # undecided if it holds both answers, not run if there is no interval.
  verdict: Verdict
  statistic: str = ""  # what was computed, in words
  value: float = math.nan  # its estimate
  low: float = math.nan  # lower end of its 95% interval
  high: float = math.nan  # upper end
  why: str = ""  # the reason, if the check could not be run
  missing: str = ""  # the column that the rows do not have, if that is the reason


@dataclasses.dataclass(frozen=True)
class Check:
  """A function from a table to a finding."""

  run: Callable[[Table], Finding]

  def __call__(self, table: Table) -> Finding:
    """Looks at the whole table; without rows it is "not run"."""
    if not len(table):
      return Finding("not run", why="no rows")
    try:
      return self.run(table)
    except CannotTellError as reason:
      return Finding("not run", why=str(reason))
    except NoColumnError as reason:
      return Finding("not run", why=f"the table has {reason}", missing=reason.column)

  def at(self, **where: Any) -> "Check":
    """The check on some rows only; see `narrowed`."""
    return Check(lambda table: self.run(narrowed(table, where)))

  def of(self, change: Callable[[Table], Table]) -> "Check":
    """The check on a table made from the whole one."""
    return Check(lambda table: self(change(table)))

  def in_each(self, column: str) -> "Check":
    """The check must be supported for every value of a column.

    Every one must hold at its own 95%, so no correction is needed. All values
    are listed; the interval is that of the first that is not supported, else
    of the one nearest to 0.
    """

    def run(table: Table) -> Finding:
      found = {name: self(table.where(**{column: name})) for name in table.unique(column)}
      return _worst(found, lambda name: f" ({column} {name})")

    return Check(run)


def every(checks: Callable[[Table], Mapping[Any, Check]], **where: Any) -> Check:
  """Several checks that must all be supported; which ones depends on the table.

  Args:
    checks: the checks by name, given the rows.
    **where: chooses these rows; see `narrowed`.
  """

  def run(table: Table) -> Finding:
    rows = narrowed(table, where)
    found = {name: check(rows) for name, check in checks(rows).items()}
    if not found:
      raise CannotTellError("nothing to compare")
    return _worst(found, lambda name: f" ({name})")

  return Check(run)


@dataclasses.dataclass(frozen=True)
class Statistic:
  """A function from a table to an estimate; comparing it makes a check."""

  estimate: Callable[[Table], Estimate]

  def at(self, **where: Any) -> "Statistic":
    """The statistic of some rows only; see `narrowed`."""
    return Statistic(lambda table: self.estimate(narrowed(table, where)))

  def __gt__(self, bound: float) -> Check:
    return self._check(lambda e: e.low > bound, lambda e: e.high <= bound)

  def __ge__(self, bound: float) -> Check:
    return self._check(lambda e: e.low >= bound, lambda e: e.high < bound)

  def __lt__(self, bound: float) -> Check:
    return self._check(lambda e: e.high < bound, lambda e: e.low >= bound)

  def __le__(self, bound: float) -> Check:
    return self._check(lambda e: e.high <= bound, lambda e: e.low > bound)

  def between(self, low: float, high: float) -> Check:
    """The statistic lies between two bounds."""
    return self._check(
      lambda e: low < e.low and e.high < high, lambda e: e.high <= low or high <= e.low
    )

  def _check(self, holds: Callable[[Estimate], Any], fails: Callable[[Estimate], Any]) -> Check:
    def run(table: Table) -> Finding:
      found = self.estimate(table)
      verdict: Verdict = "undecided"
      if holds(found):
        verdict = "supported"
      elif fails(found):
        verdict = "not supported"
      value, low, high = map(float, (found.value, found.low, found.high))
      return Finding(verdict, found.words, value, low, high)

    return Check(run)


@dataclasses.dataclass(frozen=True)
class Claim:
  """A statement that the results table supports or does not support.

  Attributes:
    name: short id, unique in the study.
    statement: what is tested, in our words.
    check: looks at the whole table.
    source: where the claim is made, e.g. "Fig. 3.1"; empty for our own.
    quote: the sentence of the source that it tests.
  """

  name: str
  statement: str
  check: Check
  source: str = ""
  quote: str = ""


def read_claims(table: Mapping[str, Check]) -> tuple[Claim, ...]:
  """Claims from `{"name: statement [source]": check}`; the source may be left out."""
  found = [(_CLAIM.fullmatch(told), told, check) for told, check in table.items()]
  for parts, told, _ in found:
    if parts is None:
      raise ValueError(f'claim {told!r}: write "name: statement [source]"')
  return tuple(
    Claim(parts["name"], parts["statement"], check, parts["source"] or "")
    for parts, _, check in found
    if parts
  )


_CLAIM = re.compile(r"(?P<name>[^:]+): (?P<statement>.+?)(?: \[(?P<source>[^]]+)\])?")


def narrowed(table: Table, where: Where) -> Table:
  """The rows with these values, chosen column by column.

  A value is compared; a tuple means any of its values; a function such as
  `min`, `max` or `but(...)` chooses among the values that occur.
  """
  for name, wanted in where.items():
    if callable(wanted):
      known = [value for value in table.unique(name) if value == value]
      if not known:
        raise CannotTellError(f"no rows with {name}")
      wanted = wanted(known)
    table = table.where(**{name: wanted})
    if not len(table):
      raise CannotTellError(f"no rows with {words({name: wanted})}")
  return table


def but(*unwanted: Any) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
  """For `at`: all values of a column except these."""
  return lambda values: tuple(value for value in values if value not in unwanted)


def or_missing(choose: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
  """For `at`: the chosen value, and rows that have no value in the column."""
  return lambda values: (choose(values), math.nan)


def words(where: Where) -> str:
  """`a=1, b=2`, as people read it."""
  return ", ".join(f"{k}={v}" for k, v in where.items()) or "all rows"


def _worst(found: Mapping[Any, Finding], where: Callable[[Any], str]) -> Finding:
  """The first finding that is not supported, else the one nearest to 0."""
  for verdict in ("not run", "not supported", "undecided"):
    failed = [(name, one) for name, one in found.items() if one.verdict == verdict]
    if failed and verdict == "not run":
      name, first = failed[0]
      return dataclasses.replace(first, why=f"{first.why}{where(name)}")
    if failed:
      return _listed(failed[0][1], found)
  return _listed(min(found.values(), key=lambda one: abs(one.value)), found)


def _listed(shown: Finding, found: Mapping[Any, Finding]) -> Finding:
  listed = ", ".join(f"{name} {one.value:.3g}" for name, one in found.items())
  return dataclasses.replace(shown, statistic=f"{shown.statistic}: {listed}")
