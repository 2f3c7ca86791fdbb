"""Short documents for people: the same sections as Markdown and as a web page."""

import html
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias


class Grid(NamedTuple):
  """A table; the first cell of a row names it."""

  heads: tuple[str, ...]
  rows: tuple[tuple[str, ...], ...]


class Warned(NamedTuple):
  """A sentence that must not be overlooked."""

  text: str


Block: TypeAlias = str | Warned | Grid | Sequence[str]


class Section(NamedTuple):
  """A heading and what stands below it: paragraphs, lists and tables."""

  title: str
  blocks: tuple[Block, ...]


STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --quiet: #57606a;
  --line: #d8dee4; --warn: #8a2c00; --warned: #fff1e8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0f1318;
  --quiet: #9aa5b1; --line: #333c47; --warn: #ffb38a; --warned: #33200f; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper);
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; padding-bottom: .2rem;
  border-bottom: 1px solid var(--line); }
p, ul { margin: .5rem 0; } ul { padding-left: 1.3rem; } li { margin: .25rem 0; }
.warned { color: var(--warn); background: var(--warned); border-left: 4px solid;
  padding: .5rem .9rem; font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
thead th { color: var(--quiet); } tbody th { white-space: nowrap; }
@media (max-width: 40rem) { main { padding: 1.25rem 1rem 3rem; }
  thead { display: none; } table, tbody, tr, th, td { display: block; }
  tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  th, td { border: 0; padding: .1rem 0; } tbody th { white-space: normal; }
  td[data-head]::before { content: attr(data-head) ": "; color: var(--quiet); } }
@media print { :root { --ink: #000; --paper: #fff; --quiet: #444; --line: #999;
  --warn: #000; --warned: #fff; } main { max-width: none; padding: 0; }
  section { break-inside: avoid; } }
"""


def markdown(title: str, lead: Iterable[Block], sections: Iterable[Section]) -> str:
  """The document as Markdown."""
  lines = [f"# {_text(title)}"]
  for block in lead:
    lines += ["", _block_markdown(block)]
  for section in sections:
    lines += ["", f"## {_text(section.title)}"]
    for block in section.blocks:
      lines += ["", _block_markdown(block)]
  return "\n".join(lines) + "\n"


def page(title: str, lead: Iterable[Block], sections: Iterable[Section]) -> str:
  """The document as one HTML page that loads nothing; light, dark, narrow and in print."""
  body = [f"<header><h1>{html.escape(title)}</h1>", *map(_block_html, lead), "</header>"]
  for section in sections:
    blocks = "".join(map(_block_html, section.blocks))
    body.append(f"<section><h2>{html.escape(section.title)}</h2>{blocks}</section>")
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    f'<link rel="icon" href="data:,"><title>{html.escape(title)}</title>'
    f"<style>{STYLE}</style></head><body><main>\n" + "\n".join(body) + "\n</main></body></html>\n"
  )


def _block_markdown(block: Block) -> str:
  if isinstance(block, Warned):
    return f"**{_text(block.text)}**"
  if isinstance(block, str):
    return _text(block)
  if isinstance(block, Grid):
    rows = [
      map(_text, block.heads),
      ("---",) * len(block.heads),
      *(map(_text, r) for r in block.rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
  return "\n".join(f"- {_text(item)}" for item in block)


def _text(words: str) -> str:
  """Words in which names, which anybody may have chosen, are no markup."""
  return re.sub(r"([<|])", r"\\\1", " ".join(words.split()))


def _block_html(block: Block) -> str:
  if isinstance(block, Warned):
    return f'<p class="warned">{html.escape(block.text)}</p>'
  if isinstance(block, str):
    return f"<p>{html.escape(block)}</p>"
  if isinstance(block, Grid):
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in block.heads)
    rows = "".join(_row_html(block.heads, row) for row in block.rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
  return f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in block)}</ul>"


def _row_html(heads: Sequence[str], row: Sequence[str]) -> str:
  # On a narrow screen cells stand below each other and need their heads, unless there is one.
  marks = [f' data-head="{html.escape(head)}"' if len(heads) > 2 else "" for head in heads[1:]]
  cells = "".join(
    f"<td{mark}>{html.escape(cell)}</td>" for mark, cell in zip(marks, row[1:], strict=True)
  )
  return f"<tr><th>{html.escape(row[0])}</th>{cells}</tr>"
