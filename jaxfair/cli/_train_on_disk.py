"""`jaxfair train` of people who stay on disk: one release, measured on people who fit in memory."""

import dataclasses
import json
import pathlib
from typing import TYPE_CHECKING, Any

import typer

from jaxfair import checks
from jaxfair.cli import _console, _hosts

if TYPE_CHECKING:
  from jaxfair.training._group import Group

STORE = "people"  # in the run directory: the private people as arrays


def train(
  table: dict[str, Any],
  folder: pathlib.Path,
  asked: dict[str, Any],
  sets: list[str],
  seed: int | None,
  group: "Group | None" = None,
) -> None:
  """Releases a model into `folder` and measures it; the same call continues it.

  Args:
    table: the `[data]` table: a folder of `data.write_source`, or a file that is rewritten first.
    folder: the run directory.
    asked: other values of the release; None is left out.
    sets: `settings.METHOD.KEY=VALUE`, as for people in memory.
    seed: makes the release reproducible, and therefore not for release.
    group: the hosts that share the training, all of which make the same call; None for one.
  """
  import jax

  from jaxfair.experiments import _config as configs
  from jaxfair.experiments import _release_config, _releases
  from jaxfair.training._hosts import from_first

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
  _hosts.require_shared(group, folder)
  if "source" not in table:
    table = from_first(lambda: _stored(table, given, folder))
  config = configs.build(_release_config.ReleaseConfig, {**given, "data": table}, where="--")
  planned = _releases.plan_release(config)
  fixed = None if seed is None else jax.random.key(seed)
  if group is not None and not group.is_first:
    _releases.release_model(planned, folder, key=fixed)
    return
  with _console.progress() as (say, _):
    for line in planned.priced(folder):
      say(line)
    _releases.release_model(planned, folder, key=fixed)


def _stored(table: dict[str, Any], given: dict[str, Any], folder: pathlib.Path) -> dict[str, Any]:
  """The table of a file after it was rewritten in the run directory, once."""
  from jaxfair import _whole_files, data, methods
  from jaxfair.data import _source_files
  from jaxfair.data._sources import RECORD
  from jaxfair.experiments._config import build
  from jaxfair.experiments._people import People, fit_streamed, load_people

  path, public = pathlib.Path(table.get("csv", "")), given.get("public_csv")
  store = folder / STORE
  _source_files.chunks_of(path, 1)  # which may be no file of this kind
  own = build(People, table, where="--")
  if public is not None:
    own = dataclasses.replace(own, csv=public)
  encoder = fit_streamed(own) if public is None else load_people(own)[0].encoder
  assert encoder is not None
  if (store / RECORD).exists():
    same = _source_files.record_of(path, encoder, fitted_here=public is None).items()
    found = json.loads((store / RECORD).read_text(encoding="utf-8")).items()
    checks.require(
      all(pair in found for pair in same),
      f"{store} holds people of another file than {path}, or encoded by other public people; "
      "choose another folder (--out)",
    )
  else:
    if given.get("scaling") == "declared":
      methods.Preprocessing.declared(encoder)  # which may lack a range
    for part in store.glob("*"):  # of a run that was stopped
      part.unlink()
    _whole_files.owner_only(store)
    typer.echo(
      f"writing {path} to {store}, which holds the private people: not for release", err=True
    )
    data.write_source(path, store, encoder=encoder, fitted_here=public is None)
  return {"source": str(store), "name": path.stem}
