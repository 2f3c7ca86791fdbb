"""`jaxfair data list`, `check` and `fetch`."""

from typing import Annotated

import typer

from jaxfair.cli import _console

app = typer.Typer(no_args_is_help=True, help="Data sets: list, check, fetch.")
Names = Annotated[list[str] | None, typer.Argument(help="Names; default: all.")]


@app.command(name="list")
def list_sets(names: Names = None) -> None:
  """List data sets: rows, groups and their sizes, license, location."""
  from jaxfair import data
  from jaxfair.data import _inventory

  if names:
    for name in names:
      _describe(_inventory.describe(name))
    return
  rows = []
  for entry in data.catalog():
    sizes = entry.group_sizes.get(entry.groups[0], ()) if entry.groups else ()
    group = f"{entry.groups[0]}: {_short(sizes)}" if entry.groups else "none"
    rows.append(
      (
        entry.name,
        f"{entry.rows:,}",
        str(len(entry.classes)),
        group,
        "found" if entry.available else "not found",
        entry.source.license,
      )
    )
  heads = ("name", "rows", "classes", "groups", "files", "license")
  _console.table(heads, rows)
  typer.echo("Details of one: jaxfair data list NAME. To get one: jaxfair data fetch NAME.")


@app.command()
def check(names: Names = None) -> None:
  """Verify checksums and known figures of the sets on this machine."""
  from jaxfair import data
  from jaxfair.data import _inventory

  chosen = names or [e.name for e in data.catalog() if e.available]
  failed = 0
  for name in chosen:
    found = _inventory.check(name)
    wrong = [item for item in found if not item.ok]
    failed += bool(wrong)
    typer.echo(f"{name}: {'wrong' if wrong else f'{len(found)} checks passed'}")
    for item in wrong:
      typer.echo(f"  {item.what}: expected {item.expected}, found {item.found}")
  raise typer.Exit(1 if failed else 0)


@app.command()
def fetch(names: Annotated[list[str], typer.Argument(help="Names of data sets.")]) -> None:
  """Fetch data sets into the cache and verify them."""
  from jaxfair import data

  for name in names:
    with _console.download() as progress:
      fetched = data.fetch(name, progress=progress)
    typer.echo(f"{name}: from {fetched.origin}")
    for path in fetched.paths:
      typer.echo(f"  {path}")


def _describe(entry: object) -> None:
  from jaxfair.data._inventory import Description

  assert isinstance(entry, Description)
  typer.echo(f"{entry.name}: {entry.source.title}")
  typer.echo(f"  license: {entry.source.license}")
  typer.echo(f"  origin:  {entry.source.origin}")
  for caution in entry.source.cautions:
    typer.echo(f"  mind:    {caution}")
  typer.echo(f"  rows:    {entry.rows:,}")
  typer.echo(f"  labels:  {', '.join(entry.labels)}")
  for group in entry.groups:
    named = entry.group_names.get(group)
    sizes = entry.group_sizes.get(group, ())
    told = ", ".join(f"{k} {v:,}" for k, v in named.items()) if named else _short(sizes)
    typer.echo(f"  group {group}: {told}")
  if entry.paths:
    for path in entry.paths:
      typer.echo(f"  file:    {path}")
  elif entry.paths is None:
    typer.echo(f"  not found: {entry.how}")


def _short(sizes: tuple[int, ...]) -> str:
  if not sizes:
    return "sizes are known once it is fetched"
  shown = ", ".join(f"{size:,}" for size in sizes[:4])
  return shown if len(sizes) <= 4 else f"{shown}, ... ({len(sizes)} groups)"
