"""`jaxfair release`: from people and a budget to a model that may be published."""

import os
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxfair import checks
from jaxfair.cli import _option_words, _train

if TYPE_CHECKING:
  from jaxfair.experiments._release_config import ReleaseConfig


def release(
  source: Annotated[
    pathlib.Path | None,
    typer.Argument(
      metavar="CONFIG|RUN_DIR",
      help="A TOML file with a [release] table, or a run directory with --point.",
    ),
  ] = None,
  point: Annotated[
    int | None, typer.Option(help="Number of a setting on the frontier page of RUN_DIR.")
  ] = None,
  method: Annotated[
    str | None, typer.Option(help="The method, such as dp_sgd, pate or fairpate.")
  ] = None,
  data: Annotated[
    str | None,
    typer.Option(help="A named data set, your own file with --label and --group, or a folder."),
  ] = None,
  label: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
  group: Annotated[str | None, typer.Option(help="Column of the groups.")] = None,
  positive: _train.Positive = None,
  drop: _train.Drop = None,
  ranges: _train.Ranges = None,
  public: _train.Public = None,
  epsilon: Annotated[float | None, typer.Option(help="Epsilon that may be spent.")] = None,
  delta: Annotated[float | None, typer.Option(help="Delta that may be spent.")] = None,
  sets: Annotated[
    list[str] | None,
    typer.Option(
      "--set", metavar="KEY=VALUE", help="A setting of the method, or data.KEY of your own file."
    ),
  ] = None,
  figures: Annotated[
    float | None,
    typer.Option(
      metavar="EPSILON", help="Epsilon for figures of test people that may be published."
    ),
  ] = None,
  use: _train.Use = None,
  devices: _train.Devices = None,
  out: Annotated[
    pathlib.Path | None, typer.Option(help="Folder; default runs/release/DATA-METHOD.")
  ] = None,
  dry_run: Annotated[
    bool, typer.Option("--dry-run", help="Print the plan and its cost; charge nothing.")
  ] = False,
) -> None:
  """Release a private model: plan, charge the ledger, train, write model and model card.

  The same command continues a release that was stopped.
  """
  from jaxfair.experiments import _releases

  given: dict[str, Any] = {
    "method": method,
    "epsilon": epsilon,
    "delta": delta,
    "figures_epsilon": figures,
    "intended_use": use,
    "devices": _train.counted(devices),
    **_train.public_people(public, "public"),
  }
  columns = {"label": label, "group": group, "positive": positive, "drop": drop, "ranges": ranges}
  settings, more = _settings(sets or [])
  given |= {"settings": settings, "data": {**_people(data, columns), **more}}
  given = {key: value for key, value in given.items() if value not in (None, {})}
  with _option_words.in_options():
    config = _config(source, point, given)
    planned = _releases.plan_release(config)
  folder = out or pathlib.Path("runs") / "release" / f"{planned.dataset.name}-{config.method}"
  _require_writable(folder)
  for line in planned.priced(folder):
    typer.echo(line)
  if point is not None:
    typer.echo("The setting was chosen by looking at these people: no epsilon covers that choice.")
  if dry_run:
    typer.echo("Nothing was computed or charged (--dry-run).")
    return
  _, found, _ = _releases.release_model(planned, folder)
  assert found is not None
  for warning in found.warnings:
    typer.secho(warning, fg="red", bold=True)
  _train.print_epsilons(found)
  typer.echo(f"release:    {folder / 'release'}  (may be published; see model_card.html)")
  typer.echo(f"evaluation: {folder / 'evaluation' / 'evaluation.html'}  (not for release)")
  if planned.figures is not None:
    typer.echo(f"figures:    {folder / 'published_figures' / 'figures.html'}  (may be published)")
  typer.echo(f"predict:    jaxfair predict {folder / 'release'} NEW.csv")


def _config(
  source: pathlib.Path | None, point: int | None, given: dict[str, Any]
) -> "ReleaseConfig":
  from jaxfair.experiments import _config as configs
  from jaxfair.experiments import _release_config, _releases

  if source is None:
    checks.require(point is None, "--point names a setting of a run; also pass the run directory")
    for name in ("method", "epsilon", "data"):
      checks.require(name in given, f"--{name} is missing; pass it, or a config file")
    return configs.build(_release_config.ReleaseConfig, given, where="--")
  if source.is_dir():
    checks.require(
      point is not None, f"{source} is a run; choose a setting with --point (jaxfair frontier)"
    )
    assert point is not None
    return _releases.read_point(source, point, given)
  checks.require(point is None, "--point is for a run directory, not for a config file")
  return _releases.read_release(source, given)


def _require_writable(folder: pathlib.Path) -> None:
  """Raises if the folder cannot be made or written, before anything is charged."""
  above = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
  checks.require(
    above.is_dir() and os.access(above, os.W_OK | os.X_OK),
    f"--out {folder} cannot be written: {above} is "
    f"{'write-protected' if above.is_dir() else 'not a folder'}; choose another folder",
  )


def _settings(sets: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
  """Settings of the method, and values of its data: `data.KEY=VALUE`."""
  from jaxfair.experiments import _config as configs

  found = dict(configs.assignment(one) for one in sets)
  data = {key: value for key, value in found.items() if key.startswith("data.")}
  settings = {key: value for key, value in found.items() if key not in data}
  return settings, {key.removeprefix("data."): value for key, value in data.items()}


def _people(data: str | None, columns: dict[str, Any]) -> dict[str, Any]:
  if data is not None:
    return _train.people_table(
      data, **{**columns, "drop": columns["drop"] or [], "ranges": columns["ranges"] or []}
    )
  for name in ("positive", "drop", "ranges"):
    checks.require(
      not columns[name], f"--{name.removesuffix('s')} applies to your own file; name it with --data"
    )
  return {name: columns[name] for name in ("label", "group") if columns[name] is not None}
