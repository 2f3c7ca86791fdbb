"""`jaxfair train`: from people and a budget to a released model, measured and explained."""

import pathlib
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxfair import checks
from jaxfair.cli import _console, _hosts, _option_words, _train_on_disk

if TYPE_CHECKING:
  from jaxfair.experiments._cells import Plan
  from jaxfair.methods._evaluation import NonPrivateEvaluation
  from jaxfair.training._group import Group

Ranges = Annotated[
  list[str] | None,
  typer.Option(
    "--range", metavar="COLUMN=LOW:HIGH", help="Bounds known without the data; repeatable."
  ),
]
Public = Annotated[
  str | None,
  typer.Option(metavar="FILE|SHARE", help="A table of public people, or the share that is public."),
]
Positive = Annotated[
  str | None,
  typer.Option(metavar="VALUE", help="Value of the label that is class 1; all others are class 0."),
]
Drop = Annotated[
  list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; repeatable.")
]
Use = Annotated[
  str | None, typer.Option(help="The intended use, in a sentence for the model card.")
]
Devices = Annotated[
  str | None,
  typer.Option(
    metavar="N|all", help="How many devices share the training of the released model; default one."
  ),
]
MOST_FIGURES = 4  # of a group in the terminal; the evaluation has all
SEEDS = 5  # repetitions that measure what privacy costs each group


def train(
  context: typer.Context,
  people: Annotated[
    str,
    typer.Argument(
      metavar="FILE|NAME|FOLDER",
      help="Your own table, a named data set, or a folder of data.write_source.",
    ),
  ],
  epsilon: Annotated[float | None, typer.Option(help="Total epsilon that may be spent.")] = None,
  label: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
  group: Annotated[
    str | None, typer.Option(help="Column of the groups; sex*race for intersections.")
  ] = None,
  positive: Positive = None,
  drop: Drop = None,
  method: Annotated[str | None, typer.Option(help="Default dp_sgd; see `jaxfair list`.")] = None,
  delta: Annotated[
    float | None, typer.Option(help="Default: a power of ten, at most a tenth of 1 / n.")
  ] = None,
  ranges: Ranges = None,
  public: Public = None,
  scaler: Annotated[
    str | None,
    typer.Option(help="public, declared or private (paid for by the budget). Default: automatic."),
  ] = None,
  tune: Annotated[
    int | None,
    typer.Option(
      help="Tune learning rate and steps of DP-SGD over about N trainings; all are charged."
    ),
  ] = None,
  config: Annotated[
    pathlib.Path | None, typer.Option(help="A TOML config of the study methods to start from.")
  ] = None,
  sets: Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A value of the config; repeatable."),
  ] = None,
  use: Use = None,
  on_disk: Annotated[
    bool, typer.Option("--on-disk", help="Leave the people of a Parquet or Arrow file on disk.")
  ] = False,
  devices: Devices = None,
  host: _hosts.Host = None,
  coordinator: _hosts.Coordinator = None,
  wait: _hosts.Wait = 300,
  seed: Annotated[
    int | None, typer.Option(help="Makes the run reproducible, and therefore not for release.")
  ] = None,
  out: Annotated[
    pathlib.Path | None, typer.Option(help="Run directory; default runs/train/NAME-METHOD-EPSILON.")
  ] = None,
) -> None:
  """Train a private model, measure what it does to every group, explain and release it.

  The same command continues a run that was stopped.
  """
  number = counted(devices if host is None else devices or "all")
  more = [str(one) for one in (public, config) if one is not None and pathlib.Path(one).is_file()]
  with (
    _hosts.joined(context, host, coordinator, wait, [people, *more]) as party,
    _option_words.in_options(),
  ):
    table = people_table(people, label, group, positive, drop or [], ranges or [])
    if on_disk or "source" in table:
      checks.require(epsilon is not None, NO_EPSILON)
      for name, value in (("config", config), ("tune", tune)):
        checks.require(value is None, f"--{name} needs people in memory; leave it out")
      folder = out or _folder(people, method or "dp_sgd", epsilon or 0.0)
      asked = {"method": method, "epsilon": epsilon, "delta": delta, "scaling": scaler}
      asked |= {"intended_use": use, "devices": number, **public_people(public)}
      _train_on_disk.train(table, folder, asked, sets or [], seed, party)
      if party is None or party.is_first:
        print_summary(folder, people)
      return
    given: dict[str, Any] = {
      "data": table,
      "methods": [_method(method, tune)] if method or tune or not config else None,
      "epsilons": None if epsilon is None else [epsilon],
      "release_epsilon": epsilon,
      "delta": delta,
      "scaling": scaler,
      "intended_use": use,
      "devices": number,
      "seed": "os" if seed is None else seed,
      **public_people(public),
    }
    if tune is not None:
      given["settings"] = {TUNED: {"mean_runs": float(tune)}}
    made = _planned(config, {k: v for k, v in given.items() if v is not None}, sets or [])
    settings = made.settings
    assert settings.release_epsilon is not None
    folder = out or _folder(people, settings.released_method, settings.release_epsilon)
    _hosts.require_same(made)
    _hosts.require_devices(party, made)
    _hosts.require_shared(party, folder)
    if party is None or party.is_first:
      _execute(made, folder, people, party)
    else:
      _hosts.follow(party, made, folder)


def _execute(made: "Plan", folder: pathlib.Path, people: str, party: "Group | None") -> None:
  """Measures, releases and explains, in the process that writes and prints."""
  from jaxfair import experiments, report
  from jaxfair.experiments import _reading

  with _console.progress() as (say, step):
    step = _hosts.announced(party, made, folder, step)
    experiments.execute(made, folder, say=say, progress=step)
    page = report.write(_reading.read_run(folder))
  print_summary(folder, people, _who_pays(folder))
  _console.say_report(f"report:     {page}  (not for release)")


TUNED = "tuned_dp_sgd"
NO_EPSILON = "--epsilon is missing: pass the privacy budget, such as 1"


def counted(devices: str | None) -> int | str | None:
  """A number of devices, or "all"."""
  if devices is None or devices == "all":
    return devices
  checks.require(devices.isdecimal(), f"--devices {devices}: pass a number of devices, or all")
  return int(devices)


def _folder(people: str, method: str, epsilon: float) -> pathlib.Path:
  return pathlib.Path("runs") / "train" / f"{pathlib.Path(people).stem}-{method}-{epsilon:g}"


def _method(method: str | None, tune: int | None) -> str:
  if tune is None:
    return method or "dp_sgd"
  checks.require(
    method in (None, "dp_sgd", TUNED), f"--tune is for dp_sgd, not for {method}; leave one out"
  )
  return TUNED


def people_table(
  source: str,
  label: str | None,
  group: str | None,
  positive: str | None,
  drop: list[str],
  ranges: list[str],
) -> dict[str, Any]:
  """The `[data]` table: of a file, if it looks like one."""
  from jaxfair.data import _loading, _sources

  path = pathlib.Path(source)
  if path.is_dir() and source not in _loading.names():
    checks.require(
      (path / _sources.RECORD).is_file(),
      f"{source} is a folder, but not one of data.write_source; pass a file of people",
    )
    roles = {"label": label, "group": group, "positive": positive, "drop": drop, "ranges": ranges}
    return {"source": source, **{key: one for key, one in roles.items() if one not in (None, [])}}
  own = source not in _loading.names()
  checks.require(
    not own or path.is_file() or not path.suffix, f"there is no file {source}; check the path"
  )
  checks.require(
    not own or path.is_file(),
    f"{source!r} is neither a file nor a named data set; "
    f"{checks.options(source, _loading.names())}",
  )
  for name, column in (("label", label), ("group", group)):
    checks.require(
      not own or column is not None, f"--{name} is missing: name the column of {source} to use"
    )
  value: Any = positive
  if positive is not None:
    try:
      value = float(positive)
    except ValueError:
      value = positive
  given = {
    "csv" if own else "name": source,
    "label": label,
    "group": group,
    "positive": value,
    "drop": drop,
    "ranges": ranges,
  }
  return {key: one for key, one in given.items() if one not in (None, [])}


def public_people(public: str | None, share: str = "public_fraction") -> dict[str, Any]:
  """The config's public people: a file, or a share under this name."""
  if public is None:
    return {}
  try:
    return {share: float(public)}
  except ValueError:
    checks.require(
      pathlib.Path(public).is_file(),
      f"--public {public}: there is no such file; pass a file, or a share such as 0.1",
    )
    return {"public_csv": public}


def _planned(config: pathlib.Path | None, given: dict[str, Any], sets: list[str]) -> "Plan":
  from jaxfair.experiments import _config as configs
  from jaxfair.experiments import _registry, _runs
  from jaxfair.experiments._shipped import find_config

  values: dict[str, Any] = {"seeds": SEEDS}
  if config is not None:
    config = find_config(config)
    values |= configs.read(config)
    checks.require(
      values.get("study") == "methods",
      f"{config} is a config of study {values.get('study')!r}; name one of 'methods', such as "
      "configs/train/dp_sgd_adult.toml",
    )
    values.pop("data", None)
  configs.merge(values, given)
  for key, value in map(configs.assignment, sets):
    configs.assign(values, key.split("."), value)
  checks.require("release_epsilon" in values, NO_EPSILON)
  values |= {"study": "methods"}
  source = given["data"]
  values.setdefault("title", f"Private training on {source.get('csv') or source['name']}")
  return _runs.plan(_registry.find("methods"), values)


def print_summary(folder: pathlib.Path, people: str, who_pays: Sequence[str] = ()) -> None:
  """Warnings first; then the guarantee, the figures, who pays, and what to do next."""
  from jaxfair import methods
  from jaxfair.methods._evaluation import read_evaluation

  found, model = read_evaluation(folder), methods.load(folder / "release")
  for warning in found.warnings:
    typer.secho(warning, fg="red", bold=True)
  if not model.guarantee.for_release:
    typer.secho("NOT FOR RELEASE: a fixed seed was given, so the noise can be undone.", fg="red")
  typer.echo(str(model.guarantee))
  typer.echo("")
  _print_models(found)
  typer.echo("")
  print_epsilons(found)
  _print_groups(found)
  typer.echo("")
  for line in who_pays:
    typer.echo(line)
  if who_pays:
    typer.echo("")
  release = folder / "release"
  typer.echo(f"release:    {release}  (may be published; read model_card.html)")
  typer.echo(f"evaluation: {folder / 'evaluation' / 'evaluation.html'}  (not for release)")
  if model.encoder is not None:
    command = shlex.join(["jaxfair", "predict", str(release), _new_people(people)])
    typer.echo(f"predict:    {command}")


def print_epsilons(found: "NonPrivateEvaluation") -> None:
  """The epsilons of a method whose teachers vote, side by side."""
  from jaxfair.methods._evaluation import epsilon_rows

  if found.epsilons:
    _console.table(("epsilon", "value"), epsilon_rows(found))
    typer.echo("")


def _new_people(people: str) -> str:
  return people if pathlib.Path(people).is_file() else "NEW.csv"


def _print_models(found: "NonPrivateEvaluation") -> None:
  heads = ("model", "accuracy", "balanced accuracy")
  rows = [
    (name, *(_interval(figures[what]) for what in ("accuracy", "balanced_accuracy")))
    for name, figures in found.models.items()
  ]
  _console.table(heads, rows)


def _print_groups(found: "NonPrivateEvaluation") -> None:
  everyone = sum(found.sizes.values())
  figures = list(next(iter(found.groups.values())))[:MOST_FIGURES]
  _console.table(
    ("group", "test people", *figures),
    [
      (name, f"{found.sizes.get(name, everyone):,}", *(_interval(own[what]) for what in figures))
      for name, own in found.groups.items()
    ],
  )


def _interval(ends: list[float]) -> str:
  value, low, high = ends
  return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _who_pays(folder: pathlib.Path) -> list[str]:
  from jaxfair.studies import explanation

  found = explanation.explain_run(folder)
  return explanation.sentences(explanation.hardest(found), found)
