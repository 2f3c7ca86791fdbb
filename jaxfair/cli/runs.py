"""`jaxfair run`, `audit`, `list` and `report`."""

import json
import pathlib
from typing import Annotated, Any

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
  from jaxfair import studies

  _run(config, studies.read(config, size=size, sets=sets or []), out)


def audit(
  config: ConfigPath, sets: Sets = None, size: Size = None, out: Out = None
) -> None:
  """Attack private training: how much of its epsilon can be shown?"""
  from jaxfair import studies

  values = studies.read(config, size=size, sets=sets or [])
  if values.get("study") != "audit":
    raise studies.ConfigError(
      f"{config}: study={values.get('study')!r} is not an audit; use "
      "`jaxfair run`, or a config such as configs/audit/dp_sgd.toml"
    )
  _run(config, values, out)


def list_studies() -> None:
  """List the studies, and the configs for them in ./configs."""
  from jaxfair import studies

  of: dict[object, list[pathlib.Path]] = {name: [] for name in studies.NAMES}
  for path in sorted(pathlib.Path("configs").rglob("*.toml")):
    try:
      name = studies.parse(path).get("study")
      studies.find(name, where=f"{path}: ")
      of[name].append(path)
    except studies.ConfigError as error:
      typer.echo(f"jaxfair: left out: {error}", err=True)
  for name, paths in of.items():
    typer.echo(f"{name}: {studies.find(name).summary}")
    for path in paths:
      typer.echo(f"  jaxfair run {path}")


def report(
  folder: Annotated[pathlib.Path, typer.Argument(help="A run directory.")],
) -> None:
  """Draw a run's figures and page again."""
  from jaxfair import report as reports

  typer.echo(f"report: {reports.write(folder)}")


def _run(
  config: pathlib.Path, values: dict[str, Any], out: pathlib.Path | None
) -> None:
  from jaxfair import report, studies

  study = studies.find(values.get("study"), where=f"{config}: ")
  made = studies.plan(study, values, where=f"{config}: ")
  name = config.stem if made.size is None else f"{config.stem}-{made.size}"
  folder = out or pathlib.Path("runs") / name
  with console.progress() as (say, step):
    studies.execute(made, folder, say=say, progress=step)
    page = report.write(folder)
  _print_claims(folder)
  typer.echo(f"rows:   {folder / 'results.csv'}")
  typer.echo(f"report: {page}")


def _print_claims(folder: pathlib.Path) -> None:
  claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
  for claim in claims:
    number = f" ({claim['why']})" if claim["why"] else ""
    if claim["value"] is not None:
      ends = f"[{claim['low']:.4g}, {claim['high']:.4g}]"
      number = f" ({claim['statistic']}: {claim['value']:.4g} {ends})"
    typer.echo(f"{claim['verdict']:>13}: {claim['statement']}{number}")
