"""`jaxfair account ledger`: what was spent, on one run or on a data set."""

import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from jaxfair.checks import ArgumentError, require

if TYPE_CHECKING:
  from jaxfair.accounting import DatasetLedger, Ledger, Relation


def ledger(
  of: Annotated[
    str | None,
    typer.Argument(help="A ledger.jsonl, a CSV file or a named set; default: all data sets."),
  ] = None,
  delta: Annotated[
    float | None,
    typer.Option(help="Default: that of the budget; without one 1e-6, or more if it is needed."),
  ] = None,
  budget: Annotated[
    str | None,
    typer.Option(
      metavar="EPSILON,DELTA",
      help="Limit on all releases of this data set together for --relation; one for other "
      "neighbors is then refused until they have a limit, too.",
    ),
  ] = None,
  relation: Annotated[
    str, typer.Option(help="Neighboring relation of the budget.")
  ] = "add-or-remove-one",
) -> None:
  """Show what was spent according to a ledger, on what, and what is left."""
  from jaxfair import accounting
  from jaxfair.accounting import _dataset_ledger

  if of is not None and of.endswith(".jsonl"):
    require(budget is None, "--budget applies to a data set, not to the ledger file of a run")
    _tell_run(accounting.Ledger.read(pathlib.Path(of)), delta)
    return
  if of is not None:
    book = _dataset(of)
    if budget is not None:
      book.set_budget(_pair(budget), relation=_relation(relation))
    _tell_dataset(book, delta, entries=True)
    return
  require(budget is None, "--budget needs a data set")
  books = _dataset_ledger.dataset_ledgers()
  for one in books:
    _tell_dataset(one, delta, entries=False)
  if not books:
    typer.echo("no data set has any releases yet")


def _tell_run(book: "Ledger", delta: float | None) -> None:
  require(
    delta is not None or book.budget is not None,
    f"{book.path} has no budget and therefore no delta; pass --delta",
  )
  typer.echo(f"data: {book.data}")
  for entry in book:
    typer.echo(f"  {entry.id}: {entry.event}")
  typer.echo(f"spent: {book.guarantee(delta)}")
  if book.budget is not None:
    typer.echo(
      f"budget: epsilon {book.budget.epsilon:g}, delta {book.budget.delta:g}; "
      f"left: {book.remaining(delta):.4g}"
    )
  if book.torn:
    typer.echo(f"a crash left {book.torn} bytes of an unfinished line")


def _tell_dataset(book: "DatasetLedger", delta: float | None, *, entries: bool) -> None:
  from jaxfair import accounting

  typer.echo(f"data: {book.name}")
  found = book.spent(delta)
  for spent in found:
    if entries:
      for entry in accounting.Ledger.read(spent.path):
        typer.echo(f"  {entry.time} {entry.id}: {entry.event}")
    typer.echo(f"  spent: {spent}")
    if spent.budget is not None:
      epsilon, at = spent.budget
      typer.echo(f"  budget: epsilon {epsilon:g}, delta {at:g}")
    typer.echo(f"  ledger: {spent.path}")
  if delta is None and any(spent.budget is None for spent in found):
    typer.echo(
      "  There is no budget, so delta is a usual one; pass --delta to compare with the epsilon of "
      "a release, at its delta."
    )
  if not found:
    typer.echo("  nothing was released")
  if len(found) > 1:
    typer.echo(
      "  Each line covers its own releases. Their neighboring relations differ, so the "
      "epsilons cannot be added up."
    )


def _dataset(of: str) -> "DatasetLedger":
  from jaxfair import accounting, data
  from jaxfair.data import _identity, _loading

  if of in _loading.names():
    return accounting.DatasetLedger.of(_identity.named_identity(of), name=of)
  path = pathlib.Path(of)
  require(
    path.is_file(),
    f"{of} is not a ledger.jsonl, CSV file or named set; leave it out to list all data sets",
  )
  return accounting.DatasetLedger.of(data.csv_identity(path), name=path.stem)


def _pair(text: str) -> tuple[float, float]:
  try:
    epsilon, delta = map(float, text.split(","))
  except ValueError:
    raise ArgumentError(f"--budget {text!r} must be EPSILON,DELTA, such as 3,1e-5") from None
  return epsilon, delta


def _relation(text: str) -> "Relation":
  from jaxfair import accounting

  known = [relation.value for relation in accounting.Relation]
  require(text in known, f"--relation {text!r} must be one of {known}")
  return accounting.Relation(text)
