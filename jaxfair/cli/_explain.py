"""`jaxfair explain`: who pays for a model's privacy, why, and what to try."""

import math
import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from jaxfair.cli import _console

if TYPE_CHECKING:
  from jaxfair.studies.explanation import NonPrivateExplanation

MOST = 40  # lines that are read


def explain(
  folder: Annotated[pathlib.Path, typer.Argument(help="Directory of a run with rows by group.")],
) -> None:
  """Explain which group pays for a model's privacy, why, and what to try first."""
  from jaxfair.studies import explanation

  found = explanation.explain_run(folder)
  _print_groups(found)
  typer.echo("")
  for line in explanation.sentences(explanation.hardest(found), found):
    typer.echo(line)
  typer.echo(
    "Settings chosen by looking at private people are not covered by epsilon: choose on public "
    "people. These numbers are computed without noise: not for release."
  )


def _print_groups(found: "list[NonPrivateExplanation]") -> None:
  from jaxfair.experiments._words import named
  from jaxfair.studies.reasons import REASONS

  rows = []
  for one in found:
    top = one.reasons[0] if one.reasons else None
    why = f"{REASONS[top.column]}: {top.ratio:.2f} times everybody's" if top else "-"
    for i, group in enumerate(one.costs[: max(2, MOST // len(found))]):
      cost = group.cost
      rows.append(
        [
          named(one.setting) if i == 0 else "",
          group.name,
          "-" if math.isnan(group.size) else f"{group.size:,.0f}",
          f"{cost.estimate:.3g}{_interval(cost.low, cost.high)}",
          (f"USELESS: {one.useless}" if one.useless else why) if i == 0 else "",
        ]
      )
  _console.table(["setting", "group", "people", f"cost in {found[0].unit}", "why"], rows)


def _interval(low: float, high: float) -> str:
  """In brackets; nothing for a single model, whose cost has no interval over seeds."""
  return "" if math.isnan(low) else f" [{low:.3g}, {high:.3g}]"
