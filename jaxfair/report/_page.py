"""One self-contained HTML page per run: opens offline, prints, no server."""

import html
import pathlib
import re
from collections.abc import Iterable, Sequence

from jaxfair._whole_files import owner_only, write_whole
from jaxfair.experiments import Study, Table, _folders, _words
from jaxfair.experiments._folders import ClaimRecord
from jaxfair.experiments._reading import Run
from jaxfair.report import _html_parts, _own_figures, _static, _tables
from jaxfair.studies import explanation


def write(run: Run) -> pathlib.Path:
  """Draws the figures of a run and writes its report.html.

  The page holds its own drawings. The PNG files need matplotlib (extra `figures`) and are left
  out without it.

  Args:
    run: from `experiments.read_run`.

  Returns:
    The page's path.
  """
  study, table = run.plan.study, run.table
  figures = run.folder / "figures"
  if run.plan.for_release:
    owner_only(figures)
  figures.mkdir(exist_ok=True)
  if _static.can_draw():
    for figure in study.column_figures:
      _static.save(figure, table, figures / f"{figure.name}.png")
  judged = study.judge(table)
  sections = [
    _header(run),
    _answer(run),
    _tables.alarm(judged),
    *_figures(study, table, figures),
    *(_tables.summary(summary, table, judged) for summary in study.summaries),
    _tables.beside_constant(judged, table, study.plain),
    _claims(run.claims, [level.told for level in study.levels(table)]),
    _notes(run.notes),
    _glossary(table),
    _details(run.folder),
  ]
  path = run.folder / "report.html"
  write_whole(path, _html_parts.page(run.plan.title, sections), mode=run.plan.mode)
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
  badges.append(seed if fixed else "seed from the operating system; this page is not for release")
  if not record.finished:
    badges.append("unfinished: only the cells computed so far")
  return _html_parts.header(run.plan.title, study.summary, badges)


def _answer(run: Run) -> str:
  """Who pays, why, and what to try, if the run has costs by group."""
  found = explanation.explain(run.plan, run.table, command=f"jaxfair run {run.folder}/config.toml")
  if not found:
    return ""
  told = [_marked(line) for line in explanation.sentences(explanation.hardest(found), found)]
  return f'<section class="answer">{"".join(f"<p>{line}</p>" for line in told)}</section>'


def _marked(text: str) -> str:
  """`commands` as code."""
  return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(text))


def _notes(notes: Sequence[str]) -> str:
  if not notes:
    return ""
  items = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
  return f'<section class="notes"><h2>Notes</h2><ul>{items}</ul></section>'


def _claims(claims: Sequence[ClaimRecord], levels: Sequence[str]) -> str:
  table = _html_parts.claims(claims)
  told = "".join(f"<li>{html.escape(line)}.</li>" for line in levels)
  return table and f"<section><h2>Claims</h2><ul>{told}</ul>{table}</section>"


def _figures(study: Study, table: Table, folder: pathlib.Path) -> Iterable[str]:
  for figure in study.figures:
    chart = _own_figures.chart(figure, table, folder=folder)
    if chart:
      yield (
        f"<section><h2>{html.escape(figure.title)}</h2>{chart}"
        f"<p class='caption'>{html.escape(figure.caption)}</p></section>"
      )


def _glossary(table: Table) -> str:
  items = "".join(
    f"<dt>{html.escape(name)}</dt><dd>{html.escape(meaning)}</dd>"
    for name, meaning in _words.glossary(table)
  )
  return items and f"<section><h2>Terms on this page</h2><dl>{items}</dl></section>"


def _details(folder: pathlib.Path) -> str:
  config = html.escape((folder / "config.toml").read_text("utf-8"))
  versions = _folders.read_words(folder / "versions.json")
  lines = "".join(
    f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in versions.items()
  )
  return (
    "<section><h2>To reproduce this</h2><p>Save the config and call "
    "<code>jaxfair run config.toml</code>. All rows are in "
    "<code>results.csv</code>, one per setting, seed and group.</p>"
    f"<details><summary>Config</summary><pre>{config}</pre></details>"
    f"<details><summary>Versions</summary><table>{lines}</table></details>"
    "</section>"
  )
