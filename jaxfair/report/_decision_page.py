"""A page on who gains and who loses by noise, for decision makers."""

import html
import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jaxfair._whole_files import write_whole
from jaxfair.report import _html_parts

STYLE = """.command { background: var(--soft); padding: .75rem 1rem; }
.command span { display: inline-block; }"""


class Listing(NamedTuple):
  """A table in words; `caption` says how to read it."""

  title: str
  caption: str
  heads: Sequence[str]
  rows: Sequence[Sequence[str]]


class Brief(NamedTuple):
  """The content of the page, in order."""

  title: str
  summary: str
  sentences: Sequence[str]
  listings: Sequence[Listing]
  recommendation: str
  command: str
  comparison: Listing
  meanings: Mapping[str, str]  # of the rows of the comparison
  notes: Sequence[str]


def write_brief(brief: Brief, path: pathlib.Path) -> None:
  """Writes the page: three sentences, tables, the recommendation with its command."""
  told = "".join(f"<p>{html.escape(line)}</p>" for line in brief.sentences)
  notes = "".join(f"<li>{html.escape(note)}</li>" for note in brief.notes)
  meanings = "".join(
    f"<dt>{html.escape(name)}</dt><dd>{html.escape(told)}</dd>"
    for name, told in brief.meanings.items()
  )
  # A line is broken before an option, not within one.
  command = html.escape(brief.command).replace(" --", "</span> <span>--")
  sections = [
    f"<style>{STYLE}</style>",
    _html_parts.header(brief.title, brief.summary, ()),
    f'<section class="answer">{told}</section>',
    *map(_listing, brief.listings),
    f"<section><h2>Recommendation</h2><p>{html.escape(brief.recommendation)}</p>"
    f"<p class='command'><code><span>{command}</span></code></p></section>",
    f"{_listing(brief.comparison)}<dl>{meanings}</dl>",
    f'<section class="notes"><h2>Notes</h2><ul>{notes}</ul></section>',
  ]
  write_whole(path, _html_parts.page(brief.title, sections))


def _listing(listing: Listing) -> str:
  head = "".join(f"<th>{html.escape(name)}</th>" for name in listing.heads)
  lines = "".join(
    f"<tr><th>{html.escape(row[0])}</th>"
    + "".join(
      f'<td data-head="{html.escape(name)}">{html.escape(cell)}</td>'
      for name, cell in zip(listing.heads[1:], row[1:], strict=True)
    )
    + "</tr>"
    for row in listing.rows
  )
  table = (
    f"<div class='wide'><table class='stacked'><thead><tr>{head}</tr></thead>"
    f"<tbody>{lines}</tbody></table></div>"
  )
  return (
    f"<section><h2>{html.escape(listing.title)}</h2>{table if listing.rows else ''}"
    f"<p class='caption'>{html.escape(listing.caption)}</p></section>"
  )
