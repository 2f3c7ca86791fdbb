"""One self-contained HTML page per run: opens offline, prints, no server."""

import html
import math
import pathlib
from collections.abc import Iterable, Sequence

import numpy as np

from jaxfair._whole_files import write_whole
from jaxfair.experiments import Run, Study, Summary, Table, _folders
from jaxfair.experiments._folders import ClaimRecord
from jaxfair.experiments._measures import seed_interval
from jaxfair.report import _html_parts, _interactive, _series, _static


def write(run: Run) -> pathlib.Path:
  """Draws the figures of a run and writes its report.html.

  Args:
    run: from `experiments.read_run`.

  Returns:
    The page's path.
  """
  study, table = run.plan.study, run.table
  figures = run.folder / "figures"
  figures.mkdir(exist_ok=True)
  for figure in study.figures:
    _static.save(figure, table, figures / f"{figure.name}.png")
  sections = [
    _header(run),
    _notes(run.notes),
    *(_summary(summary, table) for summary in study.summaries),
    _claims(run.claims),
    *_figures(study, table),
    _details(run.folder),
  ]
  path = run.folder / "report.html"
  write_whole(path, _html_parts.page(run.plan.title, sections))
  return path


def _header(run: Run) -> str:
  study, record, values = run.plan.study, run.record, run.plan.values
  badges = [f"study: {study.name}"]
  if values.get("size"):
    badges.append(f"size: {values['size']}")
  if record.seconds or record.finished:
    badges.append(f"computed in {_html_parts.duration(record.seconds)}")
  fixed = values.get("seed") != "os"
  seed = f"fixed seed {values.get('seed')}: reproducible, not for release"
  badges.append(seed if fixed else "seed from the operating system")
  if not record.finished:
    badges.append("unfinished: only the cells computed so far")
  return _html_parts.header(run.plan.title, study.summary, badges)


def _notes(notes: Sequence[str]) -> str:
  if not notes:
    return ""
  items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
  return f'<section class="notes"><h2>Notes</h2><ul>{items}</ul></section>'


def _summary(summary: Summary, table: Table) -> str:
  if any(name not in table for name in (*summary.by, *summary.where)):
    return ""
  values = [name for name in summary.values if name in table]
  heads = [*map(_series.words, summary.by), *map(_series.words, values)]
  lines = []
  for names, rows in table.where(**summary.where).split(*summary.by):
    cells = [f"<th>{html.escape(_series.label(name))}</th>" for name in names]
    cells += [f"<td>{_estimate(value, rows[value])}</td>" for value in values]
    lines.append(f"<tr>{''.join(cells)}</tr>")
  head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
  return (
    f"<section><h2>{html.escape(summary.title)}</h2><div class='wide'><table>"
    f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    "</div><p class='caption'>Mean over repetitions, and its 95% interval."
    "</p></section>"
  )


def _estimate(column: str, values: np.ndarray) -> str:
  if values.dtype.kind != "f" or np.isnan(values).all():
    return "-"
  if np.isinf(values).any():
    return "infinite"
  found = seed_interval(column, values)
  text = f"{float(found.estimate):.3f}"
  if math.isfinite(found.low):
    ends = f"{float(found.low):.3f}, {float(found.high):.3f}"
    text += f" <small>[{ends}]</small>"
  return text


def _claims(claims: Sequence[ClaimRecord]) -> str:
  table = _html_parts.claims(claims)
  return table and f"<section><h2>Claims</h2>{table}</section>"


def _figures(study: Study, table: Table) -> Iterable[str]:
  for figure in study.figures:
    chart = _interactive.chart(figure, table)
    if chart:
      yield (
        f"<section><h2>{html.escape(figure.title)}</h2>{chart}"
        f"<p class='caption'>{html.escape(figure.caption)}</p></section>"
      )


def _details(folder: pathlib.Path) -> str:
  config = html.escape((folder / "config.toml").read_text("utf-8"))
  versions = _folders.read_words(folder / "versions.json")
  lines = "".join(
    f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in versions.items()
  )
  return (
    "<section><h2>To repeat this</h2><p>Save the config and call "
    "<code>jaxfair run config.toml</code>. All rows are in "
    "<code>results.csv</code>, one per setting, seed and group.</p>"
    f"<details><summary>Config</summary><pre>{config}</pre></details>"
    f"<details><summary>Versions</summary><table>{lines}</table></details>"
    "</section>"
  )
