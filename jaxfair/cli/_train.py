"""`jaxfair train`: from people and a budget to a released model, measured and explained."""

import pathlib
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxfair import checks
from jaxfair.cli import _console

if TYPE_CHECKING:
  from jaxfair.experiments._cells import Plan
  from jaxfair.methods._evaluation import NonPrivateEvaluation

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
Use = Annotated[
  str | None, typer.Option(help="The intended use, in a sentence for the model card.")
]
SEEDS = 5  # repetitions that measure what privacy costs each group


def train(
  people: Annotated[
    str, typer.Argument(metavar="FILE|NAME", help="Your own table, or a named data set.")
  ],
  epsilon: Annotated[float | None, typer.Option(help="Total epsilon that may be spent.")] = None,
  label: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
  group: Annotated[
    str | None, typer.Option(help="Column of the groups; sex*race for intersections.")
  ] = None,
  positive: Annotated[
    str | None, typer.Option(help="Value of the label that is class 1, if there are several.")
  ] = None,
  drop: Annotated[list[str] | None, typer.Option(help="A column to leave out; repeatable.")] = None,
  method: Annotated[str | None, typer.Option(help="Default dp_sgd; see `jaxfair list`.")] = None,
  delta: Annotated[
    float | None, typer.Option(help="Default: a power of ten, at most a tenth of 1 / n.")
  ] = None,
  ranges: Ranges = None,
  public: Public = None,
  scaler: Annotated[
    str | None,
    typer.Option(help="public, declared or private (bought from the budget). Default: automatic."),
  ] = None,
  tune: Annotated[
    int | None,
    typer.Option(help="Tune rate and steps of DP-SGD over about N trainings; all are charged."),
  ] = None,
  config: Annotated[
    pathlib.Path | None, typer.Option(help="A TOML config of the study methods to start from.")
  ] = None,
  sets: Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A value of the config; repeatable."),
  ] = None,
  use: Use = None,
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
  from jaxfair import experiments, report
  from jaxfair.experiments import _reading

  given: dict[str, Any] = {
    "data": people_table(people, label, group, positive, drop or [], ranges or []),
    "methods": [_method(method, tune)] if method or tune or not config else None,
    "epsilons": None if epsilon is None else [epsilon],
    "release_epsilon": epsilon,
    "delta": delta,
    "scaling": scaler,
    "intended_use": use,
    "seed": "os" if seed is None else seed,
    **public_people(public),
  }
  if tune is not None:
    given["settings"] = {TUNED: {"mean_runs": float(tune)}}
  made = _planned(config, {k: v for k, v in given.items() if v is not None}, sets or [])
  settings = made.settings
  name = f"{pathlib.Path(people).stem}-{settings.released_method}-{settings.release_epsilon:g}"
  folder = out or pathlib.Path("runs") / "train" / name
  with _console.progress() as (say, step):
    experiments.execute(made, folder, say=say, progress=step)
    page = report.write(_reading.read_run(folder))
  _print_summary(made, folder, people)
  _console.say_report(f"report:     {page}  (not for release)")


TUNED = "tuned_dp_sgd"


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
  from jaxfair.data import _loading

  path = pathlib.Path(source)
  own = source not in _loading.names()
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
      f"--public {public}: there is no such file; name one, or a share such as 0.1",
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
  checks.require(
    "release_epsilon" in values, "--epsilon is missing: pass how much may be spent, such as 1"
  )
  values |= {"study": "methods"}
  source = given["data"]
  values.setdefault("title", f"Private training on {source.get('csv') or source['name']}")
  return _runs.plan(_registry.find("methods"), values)


def _print_summary(made: "Plan", folder: pathlib.Path, people: str) -> None:
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
  _print_groups(found)
  typer.echo("")
  for line in _who_pays(folder):
    typer.echo(line)
  typer.echo("")
  release = folder / "release"
  typer.echo(f"release:    {release}  (may be published; read model_card.html)")
  typer.echo(f"evaluation: {folder / 'evaluation' / 'evaluation.html'}  (not for release)")
  if model.encoder is not None:
    command = shlex.join(["jaxfair", "predict", str(release), _new_people(people)])
    typer.echo(f"predict:    {command}")


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
  figures = next(iter(found.groups.values()))
  _console.table(
    ("group", "test people", *figures),
    [
      (name, f"{found.sizes.get(name, everyone):,}", *map(_interval, own.values()))
      for name, own in found.groups.items()
    ],
  )


def _interval(ends: list[float]) -> str:
  value, low, high = ends
  return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _who_pays(folder: pathlib.Path) -> list[str]:
  from jaxfair.studies import explanation

  return explanation.sentences(explanation.hardest(explanation.explain_run(folder)))
