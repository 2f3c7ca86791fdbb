"""What an `Answerer` has charged: stretches of queries, and for which votes."""

import pathlib
import re
from typing import Any

import numpy as np

from jaxfair import accounting, checks
from jaxfair.accounting import _locked_file
from jaxfair.pate._answer_log import AnswerLog, AnswerLogError
from jaxfair.pate._answer_noise import Drawn, NoiseSecret


class Charges:
  """The charges of one run in its ledger.

  A charge names the stretch and, by a tag, the votes that it was made for.
  """

  def __init__(self, ledger: accounting.Ledger, log: AnswerLog):
    """Reads what is charged.

    Raises:
      AnswerLogError: if a stretch in the log is not.
    """
    self._ledger, self._run = ledger, log.run
    self._paid: dict[tuple[str, int], dict[int, str]] = {}
    pattern = re.compile(
      f"{self._run}: (tests|answers) of queries ([0-9]{{1,18}}) to "
      "([0-9]{1,18}), votes ([0-9a-f]{32})"
    )
    for entry in ledger:
      found = pattern.fullmatch(entry.id)
      if found is not None:
        what, start, stop, tag = found.groups()
        self._paid.setdefault((what, int(start)), {})[int(stop)] = tag
    for what, start, stop, paid in log.stretches:
      if paid and stop not in self._paid.get((what, start), {}):
        raise AnswerLogError(
          f"{ledger.path} has no charge for the {what} of queries {start} to "
          f"{stop}, which were released: it is older than the answers; put "
          "back a copy that holds every charge, or count them as unaccounted"
        )

  def end(self, what: str, start: int) -> int | None:
    """Where the stretch from this query on ends, if it is charged."""
    return max(self._paid.get((what, start), {}), default=None)

  def pay(
    self,
    what: str,
    start: int,
    stop: int,
    event: accounting.Event,
    rows: np.ndarray,
    *,
    secret: NoiseSecret,
    settings: Any,
  ) -> Drawn:
    """Charges a stretch, unless it is charged for these votes; its noise.

    Args:
      what: "tests" or "answers".
      start: the first query.
      stop: the first query behind them.
      event: of one row.
      rows: the votes that noise is added to.
      secret: of the noise.
      settings: besides the stretch and its votes, what the noise depends on.

    Raises:
      LedgerError: if the stretch is charged for other votes.
    """
    drawn = secret.draw([settings, what, start, stop], rows)
    paid = self._paid.setdefault((what, start), {})
    if paid.get(stop, drawn.tag) != drawn.tag:
      raise _locked_file.LedgerError(
        f"{what} of queries {start} to {stop} are charged for other votes, and "
        "answering these would be a second release; pass the votes that were "
        "charged, or start another folder, which pays for its answers again"
      )
    name = f"{self._run}: {what} of queries {start} to {stop}"
    self._ledger.charge(accounting.Repeated(event, len(rows)), id=f"{name}, votes {drawn.tag}")
    paid[stop] = drawn.tag
    return drawn


def open_ledger(
  path: pathlib.Path, data: str, unit: str, budget: tuple[float, float] | None
) -> accounting.Ledger:
  """The ledger of a folder of answers; begun if it is missing."""
  if path.exists():
    return accounting.Ledger.open(path)
  checks.require(
    budget is not None, "budget is missing; pass (epsilon, delta), or a ledger that has one"
  )
  return accounting.Ledger.create(
    path, data=data, unit=unit, budget=budget, relation=accounting.Relation.REPLACE_ONE
  )


def check_ledger(ledger: accounting.Ledger, budget: tuple[float, float] | None) -> None:
  """Requires a ledger that answers can be charged to until its budget ends."""
  checks.require(
    ledger.budget is not None, f"{ledger.path} has no budget to stop at; create it with one"
  )
  checks.require(
    budget is None or tuple(budget) == ledger.budget,
    f"budget={budget} differs from {ledger.path}, which was started with "
    f"{tuple(ledger.budget or ())}; leave it out to continue",
  )
  checks.require(
    ledger.relation.fixed_size,
    f"{ledger.path} is about people added or removed, which can move everyone "
    "to another teacher; use Relation.REPLACE_ONE",
  )
