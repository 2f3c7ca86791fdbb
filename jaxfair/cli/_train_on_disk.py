"""`jaxfair train` of people who stay on disk: one release, measured on people who fit in memory."""

import pathlib
from typing import Any

import typer

from jaxfair import checks
from jaxfair.cli import _console

STORE = "people"  # in the run directory: the private people as arrays


def train(
  table: dict[str, Any],
  folder: pathlib.Path,
  asked: dict[str, Any],
  sets: list[str],
  seed: int | None,
) -> None:
  """Releases a model into `folder` and measures it; the same call continues it.

  Args:
    table: the `[data]` table: a folder of `data.write_source`, or a file that is rewritten first.
    folder: the run directory.
    asked: other values of the release; None is left out.
    sets: `settings.METHOD.KEY=VALUE`, as for people in memory.
    seed: makes the release reproducible, and therefore not for release.
  """
  import jax

  from jaxfair.experiments import _config as configs
  from jaxfair.experiments import _release_config, _releases

  given = {key: value for key, value in asked.items() if value is not None}
  method = given.setdefault("method", "dp_sgd")
  checks.require(
    "public_fraction" not in given,
    "--public as a share needs people in memory; name a file of public people",
  )
  changed: dict[str, Any] = {}
  for key, value in map(configs.assignment, sets):
    configs.assign(changed, key.split("."), value)
  given["settings"] = changed.pop("settings", {}).get(method, {})
  checks.require(not changed, f"--set {next(iter(changed), '')}: use settings.{method}.KEY=VALUE")
  # Everything but the people is checked before a large file is read.
  stand_in = {**given, "data": {"source": str(folder)}}
  configs.build(_release_config.ReleaseConfig, stand_in, where="--")
  if "source" not in table:
    table = _stored(table, given.get("public_csv"), folder)
  config = configs.build(_release_config.ReleaseConfig, {**given, "data": table}, where="--")
  planned = _releases.plan_release(config)
  with _console.progress() as (say, _):
    for line in planned.priced():
      say(line)
    _releases.release_model(planned, folder, key=None if seed is None else jax.random.key(seed))


def _stored(table: dict[str, Any], public: str | None, folder: pathlib.Path) -> dict[str, Any]:
  """The table of a file after it was rewritten in the run directory, once."""
  from jaxfair import _whole_files, data
  from jaxfair.data._sources import RECORD
  from jaxfair.experiments._config import build
  from jaxfair.experiments._people import People, load_people

  path = pathlib.Path(table.get("csv", ""))
  checks.require(
    public is not None,
    "--on-disk needs --public FILE: a table of public people, with whose ranges and categories "
    "the others are encoded",
  )
  store = folder / STORE
  if not (store / RECORD).exists():
    known = build(People, {**table, "csv": public}, where="--")
    encoder = load_people(known)[0].encoder
    assert encoder is not None
    for part in store.glob("*"):  # of a run that was stopped
      part.unlink()
    _whole_files.owner_only(store)
    typer.echo(
      f"writing {path} to {store}, which holds the private people: not for release", err=True
    )
    data.write_source(path, store, encoder=encoder)
  return {"source": str(store), "name": path.stem}
