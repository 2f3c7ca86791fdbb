"""`jaxfair run`, `list` and `report`."""

import json
import pathlib
from typing import Annotated

import typer

from jaxfair.cli import console

ConfigPath = Annotated[pathlib.Path, typer.Argument(help="A TOML config.")]
Sets = Annotated[
  list[str] | None,
  typer.Option("--set", metavar="KEY=VALUE", help="Replace a config value."),
]
Size = Annotated[
  str | None, typer.Option(help="smoke, small or paper, if the config has it.")
]
Out = Annotated[
  pathlib.Path | None, typer.Option(help="Run directory; default runs/NAME.")
]


def run(
  config: ConfigPath, sets: Sets = None, size: Size = None, out: Out = None
) -> None:
  """Run a study from a config; the same command continues a stopped run."""
  from jaxfair import report, studies

  values = studies.read(config, size=size, sets=sets or [])
  study = studies.find(values.get("study"))
  made = studies.plan(study, values, where=f"{config}: ")
  name = config.stem if made.size is None else f"{config.stem}-{made.size}"
  folder = out or pathlib.Path("runs") / name
  with console.progress() as (say, step):
    studies.execute(made, folder, say=say, progress=step)
    page = report.write(folder)
  _print_claims(folder)
  typer.echo(f"rows:   {folder / 'results.csv'}")
  typer.echo(f"report: {page}")


def list_studies() -> None:
  """List the studies, and the configs for them in ./configs."""
  import tomllib

  from jaxfair import studies

  configs: dict[object, list[pathlib.Path]] = {}
  for path in sorted(pathlib.Path("configs").rglob("*.toml")):
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    configs.setdefault(values.get("study"), []).append(path)
  for name in studies.NAMES:
    typer.echo(f"{name}: {studies.find(name).summary}")
    for path in configs.get(name, []):
      typer.echo(f"  jaxfair run {path}")


def report(
  folder: Annotated[pathlib.Path, typer.Argument(help="A run directory.")],
) -> None:
  """Draw a run's figures and page again."""
  from jaxfair import report as reports

  typer.echo(f"report: {reports.write(folder)}")


def _print_claims(folder: pathlib.Path) -> None:
  claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
  for claim in claims:
    number = f" ({claim['why']})" if claim["why"] else ""
    if claim["value"] is not None:
      ends = f"[{claim['low']:.4g}, {claim['high']:.4g}]"
      number = f" ({claim['statistic']}: {claim['value']:.4g} {ends})"
    typer.echo(f"{claim['verdict']:>13}: {claim['statement']}{number}")
