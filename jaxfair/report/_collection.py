"""One page for a folder of runs: every verdict, every figure."""

import collections
import html
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jaxfair import experiments
from jaxfair._whole_files import write_whole
from jaxfair.experiments import _figures, _folders, _reading
from jaxfair.experiments._folders import ClaimRecord, RunError
from jaxfair.report import _html_parts, _own_figures


class _Run(NamedTuple):
  folder: pathlib.Path
  title: str
  claims: tuple[ClaimRecord, ...]
  figures: list[str]
  seconds: float
  finished: bool


def is_collection(folder: pathlib.Path) -> bool:
  """Whether a folder holds runs instead of being one."""
  return not (folder / "config.toml").exists() and bool(_run_folders(folder))


def write_collection(folder: pathlib.Path) -> pathlib.Path:
  """Writes report.html and verdicts.md over the runs in a folder.

  Each run's own page must have been written (see `write`); this one has the verdicts and
  figures of all, and links to them.

  Returns:
    The page's path.
  """
  folder = pathlib.Path(folder)
  runs = [_read(run) for run in _run_folders(folder)]
  if not runs:
    raise RunError(f"{folder} holds no run with verdicts; see `jaxfair run`")
  write_whole(folder / "verdicts.md", "\n".join(_markdown(runs)) + "\n")
  path = folder / "report.html"
  sections = [_header(folder.name, runs), _contents(runs), *map(_section, runs)]
  write_whole(path, _html_parts.page(folder.name, sections))
  return path


def count(claims: Sequence[ClaimRecord]) -> str:
  """How many of the claims are supported, in words."""
  verdicts = collections.Counter(claim.verdict for claim in claims)
  text = f"{verdicts['supported']} of {len(claims)} claims supported"
  rest = (f"{verdicts[name]} {name}" for name in ("undecided", "not run") if verdicts[name])
  return ", ".join([text, *rest])


def _run_folders(folder: pathlib.Path) -> list[pathlib.Path]:
  found = [path.parent for path in folder.glob("*/claims.json")]
  return sorted(found, key=_by_numbers)


def _by_numbers(folder: pathlib.Path) -> list[tuple[bool, int, str]]:
  """fig_3_9 comes before fig_3_10."""
  parts = folder.name.replace("-", "_").split("_")
  return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def _read(folder: pathlib.Path) -> _Run:
  made, record = _reading.read_plan(folder), _folders.read_record(folder)
  results = folder / "results.csv"
  table = experiments.Table.read(results) if results.exists() else experiments.Table({})
  return _Run(
    folder,
    made.title,
    _folders.read_verdicts(folder),
    [_figure(figure, table) for figure in made.study.figures],
    record.seconds,
    record.finished,
  )


def _all_claims(runs: Sequence[_Run]) -> list[ClaimRecord]:
  return [claim for run in runs for claim in run.claims]


def _header(name: str, runs: Sequence[_Run]) -> str:
  badges = [
    count(_all_claims(runs)),
    f"computed in {_html_parts.duration(sum(run.seconds for run in runs))}",
  ]
  unfinished = sum(not run.finished for run in runs)
  if unfinished:
    badges.append(f"{unfinished} unfinished")
  return _html_parts.header(name, f"{len(runs)} runs on one page.", badges)


def _contents(runs: Sequence[_Run]) -> str:
  lines = "".join(
    f'<tr><th><a href="#{html.escape(run.folder.name)}">'
    f"{html.escape(run.folder.name)}</a></th><td>{html.escape(run.title)}</td>"
    f"<td>{count(run.claims)}</td></tr>"
    for run in runs
  )
  return (
    "<section><h2>Runs</h2><div class='wide'><table><thead><tr><th>run</th>"
    "<th>what</th><th>verdicts</th></tr></thead>"
    f"<tbody>{lines}</tbody></table></div></section>"
  )


def _section(run: _Run) -> str:
  name = html.escape(run.folder.name)
  took = _html_parts.duration(run.seconds)
  state = "" if run.finished else " Unfinished: only the cells so far."
  return (
    f'<section id="{name}"><h2>{name}: {html.escape(run.title)}</h2>'
    f"{_html_parts.claims(run.claims)}{''.join(run.figures)}"
    f"<p class='caption'>Computed in {took}.{state} "
    f'<a href="{name}/report.html">Its own page</a></p></section>'
  )


def _figure(figure: _figures.Figure | _figures.OwnFigure, table: experiments.Table) -> str:
  chart = _own_figures.chart(figure, table)
  return chart and f"<h3>{html.escape(figure.title)}</h3>{chart}"


def _markdown(runs: Sequence[_Run]) -> Iterator[str]:
  yield "| run | claim | found [95% interval] | verdict |"
  yield "|---|---|---|---|"
  for run in runs:
    for claim in run.claims:
      found = claim.found(3).replace("|", r"\|")  # bars would end the cell
      statement = claim.statement.replace("|", r"\|")
      cells = (run.folder.name, statement, found, claim.verdict)
      yield f"| {' | '.join(cells)} |"
