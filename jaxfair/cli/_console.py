"""Progress bars and tables."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

import typer

Say = Callable[[str], None]
Advance = Callable[[int, int, str], None]


@contextlib.contextmanager
def progress() -> Iterator[tuple[Say, Advance]]:
  """A bar over cells with time left, and a way to say something above it."""
  from rich.console import Console
  from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
  )

  console = Console(stderr=True)
  bar = Progress(
    SpinnerColumn(),
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TextColumn("left"),
    TimeRemainingColumn(),
    console=console,
    transient=True,
    disable=not console.is_terminal,  # in a file a bar is an empty line
  )
  task = bar.add_task("starting", total=None)

  def say(message: str) -> None:
    console.print(message, style="yellow", markup=False, highlight=False)

  def advance(done: int, total: int, name: str) -> None:
    told = name or "writing the page"
    bar.update(task, completed=done, total=total, description=told)

  with bar:
    yield say, advance


@contextlib.contextmanager
def download() -> Iterator[Callable[[str, int, int | None], None]]:
  """A bar over bytes."""
  from rich.console import Console
  from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

  bar = Progress(
    TextColumn("{task.description}"),
    BarColumn(),
    DownloadColumn(),
    TimeRemainingColumn(),
    console=(console := Console(stderr=True)),
    transient=True,
    disable=not console.is_terminal,
  )
  task = bar.add_task("starting", total=None)

  def advance(what: str, done: int, total: int | None) -> None:
    bar.update(task, description=what, completed=done, total=total)

  with bar:
    yield advance


def say_report(line: str) -> None:
  """Prints where a run's page is, and what would draw its figures as files, too."""
  from jaxfair.report import _static

  typer.echo(line)
  if not _static.can_draw():
    typer.echo("jaxfair: no PNG files of the figures: pip install 'jaxfair[figures]'", err=True)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
  """Prints columns, each as wide as it needs."""
  from rich.cells import cell_len  # an emoji takes two places

  lines = [list(heads), *map(list, rows)]
  widths = [max(cell_len(line[i]) for line in lines) for i in range(len(heads))]
  for line in lines:
    padded = (
      cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)
    )
    typer.echo("  ".join(padded).rstrip())
