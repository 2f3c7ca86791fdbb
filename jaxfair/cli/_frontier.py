"""`jaxfair frontier`: the Pareto frontier of a run, and the setting to choose."""

import pathlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from jaxfair import checks
from jaxfair.cli import _console

if TYPE_CHECKING:
  from jaxfair.experiments._frontiers import RunFrontier
  from jaxfair.fairness._intervals import Interval


def frontier(
  folder: Annotated[
    pathlib.Path, typer.Argument(help="Directory of a run over settings and seeds.")
  ],
  limit: Annotated[
    list[str] | None,
    typer.Option(
      "--limit", metavar="NAME=VALUE", help="A limit, such as gap=0.1 or accuracy=0.8; repeatable."
    ),
  ] = None,
  by: Annotated[
    str, typer.Option(help="The objective to optimize within the limits.")
  ] = "accuracy",
  confidence: Annotated[
    float | None,
    typer.Option(help="Apply limits to the confidence bound over seeds, such as 0.95."),
  ] = None,
  data: Annotated[str | None, typer.Option(help="Which data set, if the run has several.")] = None,
  against: Annotated[
    str | None,
    typer.Option(
      metavar="DATA|RUN_DIR", help="Compare with another data set of this run, or with another run."
    ),
  ] = None,
  out: Annotated[
    pathlib.Path | None, typer.Option(help="The page; default RUN_DIR/frontier.html.")
  ] = None,
) -> None:
  """Write a page for choosing a setting, and print the best one."""
  from jaxfair import frontier as frontiers
  from jaxfair.experiments import _frontiers, _reading
  from jaxfair.report import _frontier_page

  limits = dict(map(_limit, limit or []))
  path = out or folder / "frontier.html"
  checks.require(
    out is None or (path.parent.is_dir() and not path.is_dir()),
    f"--out {path}: name a file in an existing folder",
  )
  found = _frontiers.read_frontier(folder, data=data)
  other = None if against is None else _other(folder, against)
  left = frontiers.specify(found.points, limits, confidence=confidence)
  chosen = frontiers.best(found.points, left.satisfied, objective=by)
  made = _reading.read_plan(folder)
  notes = tuple(made.study.notes(made.settings))
  _frontier_page.write_frontier(found, path, notes=notes)
  count, seeds, _ = found.points.values.shape
  typer.echo(
    f"{count} settings over {seeds} seeds; "
    f"{int(found.attained.on.sum())} of them Pareto-optimal (no other setting is better in every "
    f"objective); {int(left.satisfied.sum())} satisfy "
    "the limits."
  )
  _print_reach(found)
  _print_each(found, left.satisfied, by)
  _print(found, left.on, chosen, by)
  if other is not None:
    _compare(found, other, str(against))
  typer.echo(f"page: {path}")


def _other(folder: pathlib.Path, against: str) -> "RunFrontier":
  """A set of the same run by name, or another run by its directory."""
  from jaxfair.experiments import _frontiers

  path = pathlib.Path(against)
  if path.is_dir():
    return _frontiers.read_frontier(path)
  return _frontiers.read_frontier(folder, data=against)


def _compare(first: "RunFrontier", second: "RunFrontier", name: str) -> None:
  from jaxfair.experiments import _frontiers

  found = _frontiers.compare_frontiers(first, second)
  shapes = found.shapes
  typer.echo(
    f"Shape against {name}, as best accuracy within limits on epsilon and "
    f"gap: correlation {_interval(shapes.correlation)}; level "
    f"{_interval(shapes.shift)} higher here; apart from the level "
    f"{_interval(shapes.apart)}."
  )
  if found.transfer is None:
    typer.echo("The two have no settings in common, so no choice carries over.")
    return
  typer.echo(
    f"Of {found.shared} settings in both, the one chosen here breaks a limit "
    f"there in {_interval(found.transfer.violated, percent=True)} of the "
    "limits; where it keeps them it loses accuracy of "
    f"{_interval(found.transfer.regret)}."
  )


def _interval(found: "Interval", *, percent: bool = False) -> str:
  ends = [float(x) for x in (found.estimate, found.low, found.high)]
  at, low, high = (f"{100 * x:.0f}%" if percent else f"{x:.3f}" for x in ends)
  return f"{at} [{low}, {high}]"


def _limit(assignment: str) -> tuple[str, float]:
  name, separator, value = assignment.partition("=")
  try:
    number = float(value)
  except ValueError:
    separator = ""
  checks.require(bool(separator), f"--limit {assignment!r}: write it as gap=0.1")
  return name.strip(), number


def _print_reach(found: "RunFrontier") -> None:
  """Each method's part in the frontier, if there are several."""
  if not found.reach:
    return
  rows = []
  for name, share in found.reach.items():
    own = np.array([method == name for method in found.methods])
    on = int((found.attained.on & own).sum())
    volume = _interval(share.volume)
    rows.append([name, str(share.settings), str(on), volume])
  _console.table(["method", "settings", "Pareto-optimal", "volume by itself"], rows)
  typer.echo("")


def _print_each(found: "RunFrontier", kept: np.ndarray, by: str) -> None:
  """The best of each method within the limits, if there are several.

  With a limit on one objective: the parts of the FairPATE paper's Table 1.
  """
  from jaxfair import frontier as frontiers

  if not found.reach:
    return
  methods, best, none = np.array(found.methods), [], []
  for name in found.reach:
    own = frontiers.best(found.points, kept & (methods == name), objective=by)
    if own is None:
      none.append(name)
    else:
      best.append(own)
  if best:
    typer.echo(f"Best {by} of each method within the limits:")
    _table(found, best)
    if none:
      typer.echo(f"no setting within the limits: {', '.join(none)}")
    typer.echo("\nPareto-optimal, within the limits:")


MOST = 12  # lines that a screen holds


def _print(found: "RunFrontier", on: np.ndarray, chosen: int | None, by: str) -> None:
  if chosen is None:
    typer.echo("No setting satisfies these limits; the page shows which to loosen.")
    return
  points = found.points
  means, column = points.means, points.column(by)
  sign = -1.0 if points.better[column] == "high" else 1.0
  order = np.flatnonzero(on)
  order = order[np.argsort(sign * means[order, column], kind="stable")]
  _table(found, order[:MOST])
  if len(order) > MOST:
    typer.echo(f"... and {len(order) - MOST} more, on the page")
  if found.majority == found.majority:
    typer.echo(f"The majority class alone: accuracy {found.majority:.3f}, gap 0, epsilon 0.")
  if found.useless[chosen]:
    typer.secho(f"USELESS: the chosen setting {found.useless[chosen]}", fg="red")
  typer.echo(f"Best {by} within the limits: {found.command(chosen)}")


def _table(found: "RunFrontier", chosen: Iterable[int]) -> None:
  """One line per setting."""
  from jaxfair.frontier import _objectives

  points = found.points
  low, high = _objectives.bounds(points)
  means = points.means
  heads = ["method", *found.keys, *points.names, "on frontier"]
  rows = []
  for i in chosen:
    figures = [_figure(means[i, j], low[i, j], high[i, j]) for j in range(means.shape[1])]
    named = [_value(found.settings[i][key]) for key in found.keys]
    share = f"{100 * found.attained.probability[i]:.0f}%"
    rows.append([found.methods[i] or "-", *named, *figures, share])
  _console.table(heads, rows)


def _value(value: object) -> str:
  return "-" if value is None else str(value)


def _figure(mean: float, low: float, high: float) -> str:
  if not low < high:
    return f"{mean:.3g}"
  return f"{mean:.3f} [{low:.3f}, {high:.3f}]"
