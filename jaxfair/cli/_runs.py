"""`jaxfair run`, `audit`, `list` and `report`."""

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from jaxfair import checks
from jaxfair.cli import _console

if TYPE_CHECKING:
  from jaxfair.experiments._cells import Plan
  from jaxfair.experiments._reading import Run

ConfigPath = Annotated[pathlib.Path, typer.Argument(help="A TOML config.")]
Configs = Annotated[pathlib.Path, typer.Argument(help="A TOML config, or a folder of them.")]
Sets = Annotated[
  list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replace a config value.")
]
Size = Annotated[str | None, typer.Option(help="smoke, small or paper, if the config has it.")]
Out = Annotated[pathlib.Path | None, typer.Option(help="Run directory; default runs/FOLDER/NAME.")]
Workers = Annotated[
  str | None,
  typer.Option(
    metavar="N|ray[:ADDRESS]", help="Compute cells on N processes of this machine, or on Ray."
  ),
]
Share = Annotated[
  str | None,
  typer.Option(
    metavar="I/N", help="Compute the I-th of N shares of the cells; see `jaxfair merge`."
  ),
]

Track = Annotated[
  str | None, typer.Option(metavar="NAME", help="Log the run to mlflow, wandb or tensorboard.")
]
Allow = Annotated[
  bool,
  typer.Option(
    "--track-non-private", help="Also log results, which are measured on people without noise."
  ),
]


class Tracked(NamedTuple):
  """Who is told about a run, and whether about its rows."""

  name: str | None = None
  rows: bool = False


def run(
  config: Configs,
  sets: Sets = None,
  size: Size = None,
  out: Out = None,
  workers: Workers = None,
  shard: Share = None,
  track: Track = None,
  track_non_private: Allow = False,
) -> None:
  """Run a study from a config; the same command continues a stopped run.

  The configs of a folder are run one after the other, with one page for all.
  """
  from jaxfair import experiments
  from jaxfair.experiments._shipped import find_config

  config, told = find_config(config), Tracked(track, track_non_private)
  checks.require(
    track is not None or not track_non_private, "--track-non-private needs --track NAME"
  )
  checks.require(
    track is None or shard is None, "--track and --shard cannot be combined; leave one out"
  )
  if config.is_dir():
    checks.require(shard is None, "--shard takes one config; name a .toml file")
    _run_folder(config, size, sets or [], out, workers, told)
    return
  made = experiments.load(config, size=size, sets=sets or [])
  if shard is None:
    _run(config, made, out, workers, told)
  else:
    _run_shard(made, out or _place(config, made), shard, workers)


def merge(config: ConfigPath, sets: Sets = None, size: Size = None, out: Out = None) -> None:
  """Merge the shares that were computed by `jaxfair run CONFIG --shard I/N` into one run."""
  from jaxfair import experiments
  from jaxfair.experiments import _shards
  from jaxfair.experiments._shipped import find_config

  config = find_config(config)
  made = experiments.load(config, size=size, sets=sets or [])
  folder = out or _place(config, made)
  with _console.progress() as (say, _):
    _shards.merge(made, folder, say=say)
  _show(folder)


def audit(config: ConfigPath, sets: Sets = None, size: Size = None, out: Out = None) -> None:
  """Attack private training to bound its epsilon from below."""
  from jaxfair import experiments
  from jaxfair.experiments import _config
  from jaxfair.experiments._shipped import find_config

  config = find_config(config)
  made = experiments.load(config, size=size, sets=sets or [])
  if made.study.name != "audit":
    raise _config.ConfigError(
      f"{config}: study={made.study.name!r} is not an audit; use "
      "`jaxfair run`, or a config such as configs/audit/dp_sgd.toml"
    )
  _run(config, made, out)


def list_all() -> None:
  """List methods, data sets, and studies with their configs."""
  from jaxfair import data, methods
  from jaxfair.experiments import _registry

  typer.echo("Methods (jaxfair train FILE|NAME --method METHOD):")
  for method in methods.METHODS.values():
    if method.protects is not None:
      needs = ", ".join(sorted(method.needs)) or "nothing else"
      kind = type(method).__doc__ or ""
      typer.echo(
        f"  {method.name}: {kind.splitlines()[0]} Protects the {method.protects}; "
        f"needs {needs.replace('_', ' ')}."
      )
  typer.echo("\nData sets (jaxfair data list NAME):")
  for entry in data.catalog():
    here = "" if entry.available else f"; not found: jaxfair data fetch {entry.name}"
    typer.echo(f"  {entry.name}: {entry.source.title}, {entry.rows:,} rows{here}")
  typer.echo("\nStudies and their configs:")
  for name, paths in _configs_of_studies().items():
    typer.echo(f"{name}: {_registry.find(name).summary}")
    for path in paths:
      typer.echo(f"  jaxfair run {path}")


def _configs_of_studies() -> dict[object, list[pathlib.Path]]:
  """Configs by study: those in ./configs, else those that come with jaxfair, by their names."""
  from jaxfair.experiments import _config, _registry
  from jaxfair.experiments._shipped import shipped_configs

  of: dict[object, list[pathlib.Path]] = {name: [] for name in _registry.names()}
  here, shipped = pathlib.Path("configs"), shipped_configs()
  top = here if here.is_dir() else shipped
  for path in sorted(top.rglob("[!_]*.toml")):
    told = path.relative_to(shipped).with_suffix("") if top is shipped else path
    try:
      name = _config.read(path).get("study")
      if name is None and "release" in _config.parse(path):
        continue  # for `jaxfair release`
      _registry.find(name, where=f"{path}: ")
      of.setdefault(name, []).append(told)
    except _config.ConfigError as error:
      typer.echo(f"jaxfair: left out: {error}", err=True)
  return of


def report(
  folder: Annotated[pathlib.Path, typer.Argument(help="A run directory, or a folder of them.")],
) -> None:
  """Draw the figures and the page of a run again."""
  from jaxfair import report as reports
  from jaxfair.experiments import _reading
  from jaxfair.report import _collection

  if _collection.is_collection(folder):
    page = _collection.write_collection(folder)
  else:
    page = reports.write(_reading.read_run(folder))
  _console.say_report(f"report: {page}")


def _run(
  config: pathlib.Path,
  made: "Plan",
  out: pathlib.Path | None,
  workers: str | None = None,
  told: Tracked = Tracked(),
) -> None:
  from jaxfair import experiments
  from jaxfair.experiments import _trackers

  folder = out or _place(config, made)
  with (
    _trackers.opened(told.name, made.study.name, folder) as track,
    _console.progress() as (say, step),
  ):
    experiments.execute(
      made,
      folder,
      say=say,
      progress=step,
      workers=workers,
      track=track,
      track_non_private=told.rows,
    )
  _show(folder)


def _run_shard(made: "Plan", folder: pathlib.Path, shard: str, workers: str | None) -> None:
  from jaxfair.experiments import _shards

  share = _shards.Shard.parse(shard)
  with _console.progress() as (say, step):
    own = _shards.execute_shard(made, folder, share, say=say, progress=step, workers=workers)
  typer.echo(f"cells:  {own / 'cells'}")
  typer.echo("When all shares are there: jaxfair merge, with the same config and options.")


def _show(folder: pathlib.Path) -> None:
  """Draws the page of a run and prints what it found."""
  from jaxfair import report
  from jaxfair.experiments import _reading

  found = _reading.read_run(folder)
  page = report.write(found)
  _print_claims(folder)
  _print_models(found)
  typer.echo(f"rows:   {folder / 'results.csv'}")
  _console.say_report(f"report: {page}")


def _run_folder(
  configs: pathlib.Path,
  size: str | None,
  sets: Sequence[str],
  out: pathlib.Path | None,
  workers: str | None,
  told: Tracked,
) -> None:
  """Runs every config of a folder; all of them are read before the first."""
  from jaxfair import experiments
  from jaxfair.experiments import _config
  from jaxfair.report import _collection

  paths = sorted(configs.glob("[!_]*.toml"))
  if not paths:
    raise _config.ConfigError(f"{configs} holds no config; name a .toml file")
  plans = {path: experiments.load(path, size=size, sets=sets) for path in paths}
  for made in plans.values():
    made.study.load_people(made.settings)  # finds a missing file before any work
  whole = out or _home(configs)
  for i, (path, made) in enumerate(plans.items()):
    typer.echo(f"[{i + 1}/{len(plans)}] {path}")
    _run(path, made, whole / _name(path, made), workers, told)
    page = _collection.write_collection(whole)  # a stopped folder has its page, too
  typer.echo(f"all:    {page}")


def _home(configs: pathlib.Path) -> pathlib.Path:
  """Where runs of a folder's configs go: runs/pate for those in configs/pate.

  Two papers may both have an adult.toml. Configs that lie here, or in configs
  itself, need no folder of their own.
  """
  from jaxfair.experiments._shipped import shipped_configs

  folder, here = configs.resolve(), pathlib.Path.cwd()
  top = folder in (here, here / "configs", shipped_configs().resolve())
  return pathlib.Path("runs") / ("" if top else folder.name)


def _place(config: pathlib.Path, made: "Plan") -> pathlib.Path:
  return _home(config.parent) / _name(config, made)


def _name(config: pathlib.Path, made: "Plan") -> str:
  return config.stem if made.size is None else f"{config.stem}-{made.size}"


def _print_models(found: "Run") -> None:
  """The baselines, models that are useless, and who pays, if the rows tell."""
  from jaxfair.experiments._words import named
  from jaxfair.studies import explanation

  study, table = found.plan.study, found.table
  judged = study.judge(table)
  for level in study.levels(table):
    typer.echo(f"{level.told}.")
  for one in judged:
    if one.why:
      typer.secho(f"      USELESS: {named(one.setting) or 'the model'} {one.why}", fg="red")
  answers = explanation.explain(
    found.plan, table, command=f"jaxfair run {found.folder}/config.toml"
  )
  for line in explanation.sentences(explanation.hardest(answers), answers) if answers else ():
    typer.echo(line)


def _print_claims(folder: pathlib.Path) -> None:
  from jaxfair.experiments import _folders

  for claim in _folders.read_verdicts(folder):
    found = claim.found(4)
    told = f" ({found})" if found else ""
    ours = "" if claim.source else " [ours]"
    typer.echo(f"{claim.verdict:>13}: {claim.statement}{told}{ours}")
    if claim.source:
      typer.secho(f"{'':>15}{claim.origin}", dim=True)
