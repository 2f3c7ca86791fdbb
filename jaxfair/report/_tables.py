"""Tables of a page: summaries with groups as rows, and every setting beside a constant."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxfair.experiments import Table
from jaxfair.experiments._figures import Summary
from jaxfair.experiments._measures import EVERYONE, GAPS, seed_interval
from jaxfair.experiments._usefulness import Judged, majority_accuracy
from jaxfair.experiments._words import UNITS, label, named, number, words

MOST_COLUMNS = 12  # settings side by side; with more they are rows
FEW_PEOPLE = 20  # a share of fewer people has no interval worth showing
MOST_ROWS = 400


def summary(asked: Summary, table: Table, judged: Sequence[Judged]) -> str:
  """A table of means and intervals; with groups as rows if it is about groups."""
  if any(name not in table for name in (*asked.by, *asked.where)):
    return ""
  rows = table.where(**asked.where)
  values = [name for name in asked.values if name in rows and not _all_missing(rows[name])]
  if not values:
    return ""
  if "group" in asked.by and len(asked.by) > 1:
    body = "".join(_pivoted(asked, rows, value, judged) for value in values)
  else:
    body = _listed(asked, rows, values, judged)
  return body and f"<section><h2>{_text(asked.title)}</h2>{body}</section>"


def beside_constant(judged: Sequence[Judged], table: Table, plain: Mapping[str, Any]) -> str:
  """The majority class, then every setting: has it learned anything?"""
  if not judged:
    return ""
  everyone = table.where(group=EVERYONE) if "group" in table else table
  accuracy = majority_accuracy(table)
  chance = float(np.nanmean(everyone["majority_balanced_accuracy"]))
  heads = ("accuracy", "balanced accuracy", "gain over a constant", "most frequent answer")
  lines = [
    _line(
      "majority class (epsilon 0, gap 0)", heads, (f"{accuracy:.3f}", f"{chance:.3f}", "0", "100%")
    )
  ]
  for one in judged[:MOST_ROWS]:
    rows = everyone.where(**one.setting)
    gain = one.gain
    cells = (
      _estimate("accuracy", rows["accuracy"]) if "accuracy" in rows else "-",
      _estimate("balanced_accuracy", rows["balanced_accuracy"]),
      f"{gain.estimate:+.3f} <small>[{gain.low:+.3f}, {gain.high:+.3f}]</small>",
      f"{100 * one.one_class_share:.1f}%",
    )
    name = named(one.setting)
    if plain and all(one.setting.get(k) == v for k, v in plain.items()):
      name += " (plain model)"
    lines.append(_line(name, heads, cells, bad=bool(one.why)))
  head = "".join(f"<th>{_text(name)}</th>" for name in ("setting", *heads))
  return (
    "<section><h2>Has each model learned anything?</h2><p class='caption'>Every setting "
    "compared with the majority class, which predicts the same class for everybody. Mean with "
    "95% interval.</p>"
    f"{_table(head, lines)}</section>"
  )


def alarm(judged: Sequence[Judged]) -> str:
  """Useless models, in red, for the top of a page."""
  useless = [one for one in judged if one.why]
  if not useless:
    return ""
  items = "".join(
    f"<li><b>{_text(named(one.setting) or 'The model')}</b> {_text(one.why)}.</li>"
    for one in useless[:20]
  )
  more = f"<li>and {len(useless) - 20} more</li>" if len(useless) > 20 else ""
  return (
    '<section class="alarm" role="alert"><h2>Useless models</h2><p>A model that gives everybody '
    "the same answer has no gap between groups. That is not fairness: these settings are no "
    "evidence.</p>"
    f"<ul>{items}{more}</ul></section>"
  )


def _pivoted(asked: Summary, rows: Table, value: str, judged: Sequence[Judged]) -> str:
  """Groups as rows and settings as columns; the other way round if they are many."""
  others = [name for name in asked.by if name != "group"]
  if rows[value].dtype.kind != "f":
    return ""
  known = rows.keep(~np.isnan(rows[value]))
  settings = list(dict.fromkeys(key for key, _ in known.split(*others)))
  cells = dict(rows.split(*others, "group"))
  groups = rows.unique("group")
  varied = [name for name in others if len(rows.unique(name)) > 1]
  each = [dict(zip(others, key, strict=True)) for key in settings]
  names = [named({k: one[k] for k in varied}) or words(value) for one in each]
  marks = [_is_useless(one, judged) for one in each]
  sizes = {group: _size(rows.where(group=group)) for group in groups}
  across, down = names, [_with_size(group, sizes[group]) for group in groups]
  keys = [[(*key, group) for key in settings] for group in groups]
  flags = [list(marks) for _ in groups]
  if len(settings) > MOST_COLUMNS:
    across = [f"{label(g)} (n = {sizes[g]:,.0f})" if sizes[g] else label(g) for g in groups]
    down = [_text(name) for name in names]
    keys = [list(row) for row in zip(*keys, strict=True)]
    flags = [[bad] * len(groups) for bad in marks]
  lines = []
  for name, own, bad in zip(down[:MOST_ROWS], keys, flags, strict=False):
    found = [_cell(value, cells.get(key), sizes[key[-1]]) for key in own]
    tds = "".join(
      f'<td data-head="{_text(head)}"{_class(useless)}>{text}</td>'
      for head, text, useless in zip(across, found, bad, strict=True)
    )
    lines.append(f"<tr><th>{name}</th>{tds}</tr>")
  corner = "group" if len(settings) <= MOST_COLUMNS else ", ".join(map(words, others))
  bads = marks if len(settings) <= MOST_COLUMNS else [False] * len(across)
  head = f"<th>{_text(corner)}</th>" + "".join(
    f"<th{_class(bad)}>{_text(name)}</th>" for name, bad in zip(across, bads, strict=True)
  )
  return f"<h3>{_text(UNITS.get(value, words(value)))}</h3>{_table(head, lines)}"


def _listed(asked: Summary, rows: Table, values: Sequence[str], judged: Sequence[Judged]) -> str:
  lines = []
  heads = [words(value) for value in values]
  for names, part in rows.split(*asked.by):
    setting = dict(zip(asked.by, names, strict=True))
    useless = _is_useless(setting, judged)
    cells = []
    for value in values:
      told = _estimate(value, part[value])
      if useless and (value in GAPS or "gap" in value):
        told += " <small>says nothing: useless model</small>"
      cells.append(told)
    ths = "".join(
      f'<th data-head="{"" if isinstance(name, str) else words(column)} ">{_text(label(name))}</th>'
      for column, name in setting.items()
    )
    tds = "".join(
      f'<td data-head="{_text(head)}"{_class(useless)}>{cell}</td>'
      for head, cell in zip(heads, cells, strict=True)
    )
    lines.append(f"<tr>{ths}{tds}</tr>")
  head = "".join(f"<th>{_text(name)}</th>" for name in (*map(words, asked.by), *heads))
  more = f"<p class='caption'>{len(lines) - MOST_ROWS} more rows are in results.csv.</p>"
  return _table(head, lines[:MOST_ROWS]) + (more if len(lines) > MOST_ROWS else "")


def _all_missing(values: np.ndarray) -> bool:
  return values.dtype.kind == "f" and bool(np.isnan(values).all())


def _cell(value: str, rows: Table | None, size: float) -> str:
  if rows is None:
    return "-"
  if size and size < FEW_PEOPLE:
    mean = np.nanmean(rows[value]) if not np.isnan(rows[value]).all() else math.nan
    return (
      "-" if math.isnan(mean) else f"{number(mean)} <small>too few people for an interval</small>"
    )
  return _estimate(value, rows[value])


def _estimate(column: str, values: np.ndarray) -> str:
  if values.dtype.kind != "f" or np.isnan(values).all():
    return "-"
  if np.isinf(values).any():
    return "infinite"
  found = seed_interval(column, values)
  text = number(found.estimate)
  if math.isfinite(found.low):
    text += f" <small>[{number(found.low)}, {number(found.high)}]</small>"
  return text


def _is_useless(setting: Mapping[str, Any], judged: Sequence[Judged]) -> bool:
  """Whether all settings that a cell is about are useless."""
  own = [
    one
    for one in judged
    if all(_same(one.setting[name], v) for name, v in setting.items() if name in one.setting)
  ]
  return bool(own) and all(one.why for one in own)


def _same(a: object, b: object) -> bool:
  return bool(a == b) or (a != a and b != b)


def _size(rows: Table) -> float:
  if "count" not in rows or np.isnan(rows["count"]).all():
    return 0.0
  return float(np.nanmean(rows["count"]))


def _with_size(group: str, size: float) -> str:
  told = f" <small>n = {size:,.0f}</small>" if size else ""
  return f"{_text(label(group))}{told}"


def _line(name: str, heads: Sequence[str], cells: Sequence[str], *, bad: bool = False) -> str:
  tds = "".join(
    f'<td data-head="{_text(head)}"{_class(bad)}>{cell}</td>'
    for head, cell in zip(heads, cells, strict=True)
  )
  return f"<tr><th{_class(bad)}>{_text(name)}</th>{tds}</tr>"


def _class(bad: bool) -> str:
  return ' class="useless"' if bad else ""


def _table(head: str, lines: Sequence[str]) -> str:
  return (
    f"<div class='wide'><table class='stacked'><thead><tr>{head}</tr></thead>"
    f"<tbody>{''.join(lines)}</tbody></table></div>"
  )


def _text(text: str) -> str:
  return html.escape(text)
