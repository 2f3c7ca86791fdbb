"""`jaxfair decide`: who gains and who loses if these counts get noise?"""

import pathlib
from typing import Annotated, Any, Literal

import typer

from jaxfair.checks import ArgumentError
from jaxfair.cli import _console

SHOWN = 5
COLUMNS = {
  "title-one": ("children", "weight"),
  "minority-language": ("citizens", "limited_english", "little_schooling"),
}
OWN_EYES = (
  "Computed from the counts as they are: for the agency's own eyes. Neither "
  "this nor the page is protected by any noise."
)


def decide(
  counts: Annotated[pathlib.Path, typer.Option(help="CSV file, one place per line.")],
  rule: Annotated[
    Literal["title-one", "minority-language"], typer.Option(help="How the counts are used.")
  ],
  epsilon: Annotated[float, typer.Option(help="Privacy of one person.")],
  remedy: Annotated[
    list[str] | None, typer.Option(help="title-one: a method to compare; default all of them.")
  ] = None,
  column: Annotated[
    list[str] | None,
    typer.Option(
      help="The file's columns, in the rule's order; default children and "
      "weight (may be left out), or citizens, limited_english, "
      "little_schooling."
    ),
  ] = None,
  label: Annotated[str, typer.Option(help="Column of the places' names.")] = "",
  budget: Annotated[float, typer.Option(help="Dollars that are shared.")] = 6.5e9,
  draws: Annotated[int, typer.Option(help="Simulated releases, in each of 3 rounds.")] = 2000,
  out: Annotated[
    pathlib.Path | None, typer.Option(help="Folder of the page; default runs/decide-NAME.")
  ] = None,
) -> None:
  """Who gains and who loses when noisy counts decide, and what would help."""
  from jaxfair import experiments, report
  from jaxfair.experiments import _reading, _registry, _runs

  money = rule == "title-one"
  if remedy and not money:
    raise ArgumentError("--remedy is for --rule title-one; leave it out")
  values: dict[str, Any] = {
    "study": "decisions.allotments" if money else "decisions.rules",
    "title": f"{counts.name}: {rule} at epsilon {epsilon:g}",
    "epsilons": [float(epsilon)],
    "draws": draws,
    "seeds": 3,
    "data": {"csv": str(counts), "columns": column or _columns(counts, rule), "label": label},
  }
  if money:
    values |= {"budget": float(budget)}
    values |= {"methods": _methods(remedy)} if remedy else {}
  else:
    values |= {"made_up": False, "parts": ["errors"]}
  study = _registry.find(values["study"])
  made = _runs.plan(study, values)
  folder = out or pathlib.Path("runs") / f"decide-{counts.stem}"
  with _console.progress() as (say, step):
    table = experiments.execute(made, folder, say=say, progress=step)
    page = report.write(_reading.read_run(folder))
  typer.echo(OWN_EYES)
  if money:
    _print_money(table)
  else:
    _print_rights(table)
  typer.echo(f"page: {page}")


def _columns(path: pathlib.Path, rule: str) -> list[str]:
  """The usual columns; a weight only where the file has one."""
  wanted = list(COLUMNS[rule])
  try:
    with path.open(encoding="utf-8-sig") as file:
      header = {name.strip().strip('"') for name in file.readline().split(",")}
  except (OSError, UnicodeDecodeError):
    return wanted  # the study says what is wrong with the file
  return [name for name in wanted if name != "weight" or name in header]


def _methods(asked: list[str]) -> list[str]:
  """Beside the remedies, what they are to be compared with."""
  return list(dict.fromkeys(["noisy counts", "non-negative", *asked]))


def _print_money(table: Any) -> None:
  places = table.where(row="district", method="non-negative")
  if len(places):
    typer.echo("\nIf noisy counts are made non-negative, dollars a year:")
    order = places["gain"].argsort()
    shown = [*order[:SHOWN], *order[max(SHOWN, len(order) - SHOWN) :]]
    _print_places(places, shown, "district_size", "children", "gain")
  rows = []
  for (method, heat), part in table.where(row="summary").split("method", "heat"):
    name = f"{method}, {heat}" if heat else str(method)
    alpha = float(part["alpha"].mean())
    fair = float(part["alpha_low"].max()) < 1e-12
    rows.append(
      [
        name,
        f"{alpha:.2g}" + (" (0 within error)" if fair else ""),
        _dollars(float(part["mean_error"].mean())),
        _dollars(float(part["cost"].mean())),
        _dollars(float(part["worst_loss"].mean())),
      ]
    )
  typer.echo("")
  heads = ["method", "alpha", "mean error", "cost of privacy", "worst loss"]
  _console.table(heads, rows)


def _print_rights(table: Any) -> None:
  summary = table.where(row="summary")
  typer.echo(
    f"\nwrong decisions: {float(summary['mean_error'].mean()):.2%} of places "
    f"on average; alpha {float(summary['alpha'].mean()):.3f}"
  )
  places = table.where(row="place")
  worst = (-places["error"]).argsort()[: 2 * SHOWN]
  _print_places(places, worst, "citizens", "citizens", "error")


def _print_places(places: Any, order: Any, size: str, head: str, value: str) -> None:
  rows = []
  for i in order:
    number = float(places[value][i])
    shown = f"{number:.1%}" if value == "error" else _dollars(number)
    row = [str(places["name"][i]), f"{places[size][i]:.0f}", shown]
    rows.append(row)
  last = "wrong decision" if value == "error" else "gains"
  _console.table(["place", head, last], rows)


def _dollars(amount: float) -> str:
  if abs(amount) < 0.005:
    return "$0"
  sign = "-" if amount < 0 else ""
  return f"{sign}${abs(amount):,.0f}" if abs(amount) >= 100 else (f"{sign}${abs(amount):.2f}")
