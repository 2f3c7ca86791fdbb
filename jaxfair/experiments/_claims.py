"""Claims: a statistic of the table, its 95% interval, a bound, a verdict.

    claim("who pays", "Noise costs one group more than another",
          (spread("accuracy_cost", "group") > 0).at(labels="hard"),
          source="Fig. 4.3")

A statistic becomes a check by comparing it: `mean("gap") < 0.02`. Both can be
narrowed to some rows with `.at(...)`. Over the values of a column, a check can
be asked for in each ("always"), in some ("can") or in most ("often").
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from jaxfair import checks
from jaxfair.experiments._quotes import Quote, split_places
from jaxfair.experiments._table import NoColumnError, Table

Verdict = Literal["supported", "not supported", "undecided", "not run"]
Where = Mapping[str, Any]
LEVEL = 0.95  # of intervals


class CannotTellError(Exception):
  """A statistic that these rows do not have; the message says why."""


@dataclasses.dataclass(frozen=True)
class Estimate:
  """A number with its interval, at 95% unless a check asks for another level."""

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
  low: float = math.nan  # lower end of its interval
  high: float = math.nan  # upper end
  why: str = ""  # the reason, if the check could not be run
  missing: str = ""  # the column that the rows do not have, if that is the reason


@dataclasses.dataclass(frozen=True)
class Check:
  """A function from a table and the level of intervals to a finding."""

  run: Callable[[Table, float], Finding]

  def __call__(self, table: Table, level: float = LEVEL) -> Finding:
    """Looks at the whole table; without rows it is "not run"."""
    if not len(table):
      return Finding("not run", why="no rows")
    try:
      return self.run(table, level)
    except CannotTellError as reason:
      return Finding("not run", why=str(reason))
    except NoColumnError as reason:
      return Finding("not run", why=f"the table has {reason}", missing=reason.column)

  def at(self, **where: object) -> "Check":
    """The check on some rows only; see `narrowed`."""
    return Check(lambda table, level: self.run(narrowed(table, where), level))

  def of(self, change: Callable[[Table], Table]) -> "Check":
    """The check on a table made from the whole one."""
    return Check(lambda table, level: self(change(table), level))

  def in_each(self, *columns: str) -> "Check":
    """The check must be supported for every value of the columns ("always"); see `every`."""
    return every(self._by(columns))

  def in_some(self, *columns: str) -> "Check":
    """The check must be supported for at least one value of the columns ("can"); see `some`."""
    return some(self._by(columns))

  def in_most(self, *columns: str) -> "Check":
    """The check must be supported for most values of the columns ("often"); see `most`."""
    return most(self._by(columns))

  def _by(self, columns: tuple[str, ...]) -> "Checks":
    def on(rows: Table) -> Check:
      return Check(lambda table, level: self(rows, level))

    return lambda table: {_Value(columns, at): on(rows) for at, rows in table.split(*columns)}


Checks = Mapping[Any, Check] | Callable[[Table], Mapping[Any, Check]]
Found = Mapping[Any, Finding]


def every(checks: Checks, **where: object) -> Check:
  """Several checks that must all be supported; which ones may depend on the table.

  Every one must hold at its own 95%, so no correction is needed. All values
  are listed; the interval is that of the first that is not supported, else
  of the one nearest to 0.
  """
  return _combined(checks, where, lambda look, level: _worst(look(level)))


def some(checks: Checks, **where: object) -> Check:
  """Several checks of which at least one must be supported: "can", "may", "in some cases".

  With k looks, one of them must hold at level 1 - 0.05 / k (Bonferroni), so that a claim that is
  false everywhere is called supported with a probability of at most 5%. It is not supported if
  every one is on the other side, each at its own 95%, which needs no correction.
  """

  def judge(look: Callable[[float], Found], level: float) -> Finding:
    plain = look(level)
    stricter = 1 - (1 - level) / len(plain)
    found = look(stricter)
    if all(one.verdict == "not supported" for one in plain.values()):
      return _listed(next(iter(plain.values())), plain)
    # Whatever is not supported at the higher level is not at the lower one, so one of these occurs.
    shown = _first(found, "supported", "not run", "undecided")
    told = f"{shown.statistic}, in at least one of {len(found)} (intervals at {stricter:.2%})"
    return _listed(dataclasses.replace(shown, statistic=told), found)

  return _combined(checks, where, judge)


def most(checks: Checks, **where: object) -> Check:
  """Several checks of which more than half must be supported: "often", "typically", "mostly".

  The majority is our reading of such words. Each check counts by its own 95% interval. It is not
  supported if half or more are not supported, whatever the undecided ones are.
  """

  def judge(look: Callable[[float], Found], level: float) -> Finding:
    found = look(level)
    verdicts = [one.verdict for one in found.values()]
    verdict: Verdict = "undecided"
    if 2 * verdicts.count("supported") > len(found):
      verdict = "supported"
    elif 2 * verdicts.count("not supported") >= len(found):
      verdict = "not supported"
    elif "not run" in verdicts:
      verdict = "not run"
    shown = _first(found, verdict, "undecided", "supported", "not supported")
    told = f"{shown.statistic}, in {verdicts.count('supported')} of {len(found)}"
    return _listed(dataclasses.replace(shown, verdict=verdict, statistic=told), found)

  return _combined(checks, where, judge)


@dataclasses.dataclass(frozen=True)
class Statistic:
  """A function from a table and a level to an estimate; comparing it makes a check."""

  estimate: Callable[[Table, float], Estimate]

  def at(self, **where: object) -> "Statistic":
    """The statistic of some rows only; see `narrowed`."""
    return Statistic(lambda table, level: self.estimate(narrowed(table, where), level))

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
    def run(table: Table, level: float) -> Finding:
      found = self.estimate(table, level)
      verdict: Verdict = "undecided"
      if holds(found):
        verdict = "supported"
      elif fails(found):
        verdict = "not supported"
      value, low, high = map(float, (found.value, found.low, found.high))
      return Finding(verdict, found.words, value, low, high)

    return Check(run)


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


def but(*unwanted: object) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
  """For `at`: all values of a column except these."""
  return lambda values: tuple(value for value in values if value not in unwanted)


def or_missing(choose: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
  """For `at`: the chosen value, and rows that have no value in the column."""
  return lambda values: (choose(values), math.nan)


def words(where: Where) -> str:
  """`a=1, b=2`, as people read it."""
  told = ((k, v.__name__ if callable(v) else v) for k, v in where.items())
  return ", ".join(f"{k}={v}" for k, v in told) or "all rows"


@dataclasses.dataclass(frozen=True)
class Claim:
  """A statement that the results table supports or does not support.

  Attributes:
    name: short id, unique in the study.
    statement: what is tested, in our words.
    check: looks at the whole table.
    source: where the claim is made, e.g. "Fig. 3.1" or "Fig. 2; Fig. 8"; empty for our own.
    quotes: the sentences of the source that it tests.
  """

  name: str
  statement: str
  check: Check
  source: str = ""
  quotes: tuple[Quote, ...] = ()


def read_claims(
  table: Mapping[str, Check], quotes: Mapping[str, Quote] | None = None
) -> tuple[Claim, ...]:
  """Claims from `{"name: statement [source]": check}`; a claim without a source is our own.

  Args:
    table: the claims.
    quotes: the sentences of the sources by place; None if they are not written down.
  """
  return tuple(_read_claim(told, check, quotes) for told, check in table.items())


def _read_claim(told: str, check: Check, quotes: Mapping[str, Quote] | None) -> Claim:
  parts = _CLAIM.fullmatch(told)
  if parts is None:
    raise ValueError(f'claim {told!r}: write "name: statement [source]"')
  source = parts["source"] or ""
  if not source or quotes is None:
    return Claim(parts["name"], parts["statement"], check, source)
  places = split_places(source)
  for place in places:
    checks.require(
      place in quotes,
      f"claim {parts['name']!r} names [{place}], which quotes.toml does not have; "
      f"{checks.options(place, quotes)}",
    )
  cited = tuple(quotes[place] for place in places)
  return Claim(parts["name"], parts["statement"], check, source, cited)


_CLAIM = re.compile(r"(?P<name>[^:]+): (?P<statement>.+?)(?: \[(?P<source>[^]]+)\])?")


@dataclasses.dataclass(frozen=True)
class _Value:
  """The name of a check on the rows with these values of columns."""

  columns: tuple[str, ...]
  values: tuple[Any, ...]

  def __str__(self) -> str:
    return " ".join(map(str, self.values))


def _combined(
  checks: Checks, where: Where, judge: Callable[[Callable[[float], Found], float], Finding]
) -> Check:
  def run(table: Table, level: float) -> Finding:
    rows = narrowed(table, where)
    parts = checks(rows) if callable(checks) else checks
    if not parts:
      raise CannotTellError("nothing to compare")
    return judge(lambda own: {name: check(rows, own) for name, check in parts.items()}, level)

  return Check(run)


def _first(found: Found, *verdicts: Verdict) -> Finding:
  """The first finding with the first of these verdicts that occurs."""
  for verdict in verdicts:
    for name, one in found.items():
      if one.verdict == verdict:
        return _located(one, name) if verdict == "not run" else one
  raise AssertionError("a finding has one of four verdicts")


def _located(one: Finding, name: object) -> Finding:
  told = f"{' and '.join(name.columns)} {name}" if isinstance(name, _Value) else name
  return dataclasses.replace(one, why=f"{one.why} ({told})")


def _worst(found: Found) -> Finding:
  """The first finding that is not supported, else the one nearest to 0."""
  if all(one.verdict == "supported" for one in found.values()):
    return _listed(min(found.values(), key=lambda one: abs(one.value)), found)
  shown = _first(found, "not run", "not supported", "undecided")
  return shown if shown.verdict == "not run" else _listed(shown, found)


def _listed(shown: Finding, found: Found) -> Finding:
  listed = ", ".join(f"{name} {one.value:.3g}" for name, one in found.items())
  return dataclasses.replace(shown, statistic=f"{shown.statistic}: {listed}")
