"""`jaxfair predict` and `jaxfair export`: using a released model."""

import csv
import pathlib
import sys
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import numpy as np
import typer

from jaxfair import checks

if TYPE_CHECKING:
  from jaxfair.methods import Released
  from jaxfair.methods._serving import Served

Folder = Annotated[pathlib.Path, typer.Argument(help="A release folder.")]


def predict(
  folder: Folder,
  people: Annotated[
    pathlib.Path, typer.Argument(help="New people: a table, or features as .npy or .npz.")
  ],
  out: Annotated[
    pathlib.Path | None, typer.Option(help="CSV file of predictions; default: the terminal.")
  ] = None,
  probabilities: Annotated[
    bool, typer.Option("--probabilities", help="Also the probability of each class.")
  ] = False,
  group: Annotated[
    str | None, typer.Option(help="Column of the groups, if it has another name than in training.")
  ] = None,
  state: Annotated[
    pathlib.Path | None,
    typer.Option(help="File of this deployment's answers by group; continued if it exists."),
  ] = None,
) -> None:
  """Predict labels of new people with a released model."""
  from jaxfair import methods
  from jaxfair.methods._serving import serve

  _require_place(out)
  for name, written, read in (("out", out, [people, state]), ("state", state, [people])):
    checks.require(
      written is None or written.resolve() not in {p.resolve() for p in read if p is not None},
      f"--{name} {written} would overwrite a file that is read; name another one",
    )
  released = methods.load(folder)
  x, groups, notes = _read(released, people, group)
  served = serve(released, x, groups, state=state)
  if out is None:
    _write(sys.stdout, released, served, probabilities)
  else:
    with open(out, "w", encoding="utf-8", newline="") as file:
      _write(file, released, served, probabilities)
    typer.echo(f"{len(served.labels)} predictions: {out}", err=True)
  for note in (*notes, *served.notes):
    typer.echo(f"note: {note}", err=True)
  if served.coverage is not None:
    told = ", ".join(
      f"{name} {'nobody came' if share != share else f'{100 * share:.1f}%'}"
      for name, share in served.coverage.items()
    )
    typer.echo(f"answered, by group: {told}", err=True)


def export(
  folder: Folder,
  to: Annotated[str, typer.Option(help="stablehlo, or onnx for dense networks.")] = "stablehlo",
  out: Annotated[
    pathlib.Path | None, typer.Option(help="The file; default model.stablehlo or model.onnx.")
  ] = None,
  platforms: Annotated[str, typer.Option(help="Target platforms of StableHLO.")] = "cpu,cuda,tpu",
) -> None:
  """Write a released model as a program for another runtime."""
  from jaxfair import methods

  _require_place(out)
  path = out or pathlib.Path(f"model.{to}")
  chosen: Any = to
  methods.export(folder, path, to=chosen, platforms=tuple(platforms.split(",")))
  typer.echo(f"{path}: takes unscaled features, returns class ids and probabilities")


def _require_place(out: pathlib.Path | None) -> None:
  checks.require(
    out is None or (out.parent.is_dir() and not out.is_dir()),
    f"--out {out}: name a file in an existing folder",
  )


def _read(
  released: "Released", path: pathlib.Path, column: str | None
) -> tuple[np.ndarray, np.ndarray | None, tuple[str, ...]]:
  """Features, group ids if the release needs them, and what could not be placed."""
  from jaxfair.data import _tables

  needed = released.abstention is not None
  if path.suffix in (".npy", ".npz"):
    checks.require(column is None, "--group names a column of a table; put group ids into an .npz")
    return *_arrays(path, needed), ()
  encoder = released.encoder
  if encoder is None:
    raise checks.ArgumentError(
      f"this release of {released.data_name} was trained on arrays and reads no tables; pass "
      f"features {released.shape} of each person as .npy, or x and group in an .npz"
    )
  table = encoder.read(path)
  checks.require(_tables.num_rows(table) > 0, f"{path} has a header alone; there is nobody in it")
  if column is not None:
    own = encoder.group.columns
    checks.require(
      len(own) == 1, f"--group: the groups follow from {', '.join(own)}; rename the columns instead"
    )
    checks.require(
      column in table, f"--group {column!r} is not a column; {checks.options(column, table)}"
    )
    table = {**table, own[0]: table[column]}
  try:
    found = encoder.encode(table, need_group=needed)
  except checks.ArgumentError as error:
    raise checks.ArgumentError(f"{path}, as the model needs it: {error}") from None
  return found.x, found.group, encoder.notes(table)


def _arrays(path: pathlib.Path, needed: bool) -> tuple[np.ndarray, np.ndarray | None]:
  try:
    with open(path, "rb") as file:
      loaded = np.load(file, allow_pickle=False)
      if isinstance(loaded, np.ndarray):
        return loaded, None
      checks.require("x" in loaded, f"{path} has no array named x for the features")
      return loaded["x"], loaded["group"] if needed and "group" in loaded else None
  except (OSError, ValueError) as error:
    if isinstance(error, checks.ArgumentError):
      raise
    raise checks.ArgumentError(f"{path} cannot be read ({error}); pass an .npy file") from None


def _write(file: TextIO, released: "Released", served: "Served", probabilities: bool) -> None:
  """One line per person, in their order; nothing where the rule abstains."""
  from jaxfair.experiments._table import safe_cell

  writer = csv.writer(file, lineterminator="\n")
  names = [*map(safe_cell, released.class_names)]  # of a release that somebody else may have made
  more = [f"probability of {name}" for name in released.class_names] if probabilities else []
  writer.writerow(["row", "prediction", *more])
  for i, label in enumerate(served.labels.tolist()):
    shown = label >= 0
    # The shortest text that gives the same float32 back.
    scores = [str(score) if shown else "" for score in served.scores[i]] if probabilities else []
    writer.writerow([i + 1, names[label] if shown else "", *scores])
