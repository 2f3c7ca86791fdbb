"""Which figures and tables of the papers are tested, by which configs and at which size."""

import collections
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jaxfair.experiments import _config
from jaxfair.experiments._quotes import Quote

# Chapter 4 of the thesis prints the figures of the PATE paper again: one row for both.
SAME = {
  "Fig. 1": ("Fig. 4.1",),
  "Fig. 2": ("Fig. 4", "Fig. 4.3"),  # the top of 4.3, and its bottom
  "Fig. 3": ("Fig. 4.4",),
  "Fig. 5": ("Fig. 4.5",),
  "Fig. 6": ("Fig. 4.6",),
  "Fig. 7": ("Fig. 4.7",),
  "Fig. 8": ("Fig. 4.10",),
  "Fig. 9": ("Fig. 4.11",),
  "Fig. 10": ("Fig. 4.12",),
  "Fig. 11": ("Fig. 4.13",),
  "Fig. 12": ("Fig. 4.14",),
  "Fig. 13": ("Fig. 4.15",),
  "Fig. 14": ("Fig. 4.8", "Fig. 4.9"),
  "Fig. 15": ("Fig. 4.16",),
  "Fig. 16": ("Fig. 4.17",),
}
MOST_LINKS = 3
NOT_RUN = "not run"  # there is a record, and its model has not learnt the task
STRENGTHS = ("paper", "partly paper", "small", NOT_RUN, "no record yet", "not tested")
# How the comment at the top of a config begins if it says which figures the config is about.
ABOUT = re.compile(
  r"# (?:(?:Appendix \w|RQ\d)(?:,| and) )?((?:Figures?|Fig\.|Table) .*)", re.IGNORECASE
)
MENTION = re.compile(r"(Tables?|Fig(?:ure)?s?\.?)?,? ?(?:and |to )?(\d+(?:\.\d+)?)", re.IGNORECASE)


class Drawn(NamedTuple):
  """A figure or table of the papers, with those that print it again.

  Attributes:
    names: how the papers call it.
    configs: those that test it, those that are named after it first.
    strength: one of `STRENGTHS`.
    why: why it is not tested; empty if it is.
  """

  names: tuple[str, ...]
  configs: tuple[str, ...]
  strength: str
  why: str


def drawn(
  quotes: Mapping[tuple[str, str], Quote],
  tested: Mapping[tuple[str, str], Mapping[str, str | None]],
  root: pathlib.Path,
) -> list[Drawn]:
  """Every figure and table, in the order of the quotes.

  Args:
    quotes: by package and place.
    tested: by package and place, the configs that have a claim about it, each with the size at
      which it was judged: `NOT_RUN` if it was not, None if there is no record.
    root: folder that configs are seen from.
  """
  first = {("pate", other): place for place, others in SAME.items() for other in others}
  names: dict[tuple[str, str], dict[str, str]] = collections.defaultdict(dict)
  why: dict[tuple[str, str], str] = {}
  for (package, told), quote in quotes.items():
    place = told.split(",")[0]
    if place.startswith(("Fig", "Table")):
      key = (package, first.get((package, place), place))
      names[key][place] = f"{quote.paper.replace('_', '-')} {place}"
      why[key] = why.get(key) or quote.untested
  found = []
  for (package, place), own in names.items():
    by: dict[str, str | None] = {}
    for one in own:
      by |= {c: size for c, size in tested.get((package, one), {}).items() if not by.get(c)}
    named = [config for config in by if is_named_after(root / config, place)]
    strength = _strength([by[c] for c in named or by], every=bool(named)) if by else "not tested"
    ran = [config for config in by if by[config]]
    shown = tuple(dict.fromkeys([*named, *ran])) or tuple(by)
    found.append(Drawn(tuple(own.values()), shown, strength, why[package, place]))
  return found


def _strength(sizes: list[str | None], *, every: bool) -> str:
  """How strongly configs test a figure.

  Args:
    sizes: of each config, as in `drawn`.
    every: whether each config is a part of the figure, such as one of its data sets.
  """
  full = [size in ("paper", "only") for size in sizes]
  if any(full):
    return "partly paper" if every and not all(full) else "paper"
  if "small" in sizes:
    return "small"
  return NOT_RUN if NOT_RUN in sizes else "no record yet"


def is_named_after(config: pathlib.Path, place: str) -> bool:
  """Whether the file, the title or the first line of a config names this figure or table."""
  kind, number = place.split(" ", 1)
  table = kind == "Table"
  short = re.sub(r"\W+", "_", number.replace("(", "")).strip("_")  # 2(a) is 2a, 3.1 is 3_1
  in_stem = rf"{'table' if table else 'fig(ure)?'}_{short}(?!_?\d)(_|$)"
  title = _config.read(config).get("title", "")
  first = ABOUT.match(config.read_text(encoding="utf-8").splitlines()[0])
  told = mentions(title) | mentions(first[1].partition(":")[0] if first else "")
  return bool(re.match(in_stem, config.stem)) or (table, number) in told


def mentions(text: str) -> set[tuple[bool, str]]:
  """The figures (False) and tables (True) that a text names: "Table 1, figures 2, 7 to 9"."""
  found: set[tuple[bool, str]] = set()
  table, before, end = None, "", -1
  for one in MENTION.finditer(text):
    if one[1]:
      table = one[1].lower().startswith("table")
    elif one.start() != end:  # a number elsewhere in the text
      table = None
    if table is None:
      continue
    if " to " in one[0] and before:
      head, first = before.rpartition(".")[::2]
      steps = range(int(first), int(one[2].rpartition(".")[2]))
      found |= {(table, f"{head}.{step}" if head else str(step)) for step in steps}
    found.add((table, one[2]))
    before, end = one[2], one.end()
  return found


def rows(found: list[Drawn]) -> Iterator[str]:
  """Lines of a page: how many figures are tested how well, and a row for each."""
  counted = collections.Counter(one.strength for one in found)
  told = ", ".join(f"{counted[name]} {name}" for name in STRENGTHS)
  printed = sum(len(one.names) for one in found if one.strength == "paper")
  yield (
    f"The papers have {sum(len(one.names) for one in found)} figures and tables, or {len(found)} "
    f"where those that the thesis prints again are counted once: {told}. Counted as often as they "
    f"are printed, {printed} are at `paper`. `paper` is the paper's "
    "setting as far as two cores can do it in about an hour, and the config says what differs. A "
    "figure is at `paper` if all configs that are named after it are, such as those of its data "
    "sets; if only some of them are, it is `partly paper`. A figure without a config of its own "
    "has the strength of the strongest record that tests its sentence. `not run` means that the "
    "model has not learnt the task well enough for the claim."
  )
  yield ""
  cells = []
  for one in found:
    links = [f"[{pathlib.PurePath(c).stem}]({link(c)})" for c in one.configs[:MOST_LINKS]]
    more = len(one.configs) - MOST_LINKS
    told = ", ".join(links) + (f" and {more} more" if more > 0 else "")
    cells.append((", ".join(one.names), one.strength, told or cell(one.why)))
  yield from table(("where", "strength", "tested by"), cells)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
  """Lines of a table whose cells the site stacks on narrow screens (docs/_static/site.css)."""
  yield '<div class="stacked">'
  yield ""
  yield f"| {' | '.join(heads)} |"
  yield f"|{'---|' * len(heads)}"
  yield from (f"| {' | '.join(row)} |" for row in rows)
  yield ""
  yield "</div>"


def link(config: str) -> str:
  """Where a page has the section of a config."""
  path = pathlib.PurePath(config)
  return f"{path.parent.name}.md#{path.stem}"


def cell(text: str) -> str:
  """Text that neither ends a cell nor is read as markup."""
  text = " ".join(text.split()).replace("|", "\\|").replace("*", "\\*").replace("\\*\\*", "**")
  return text.replace("_", "\\_").replace("$", "\\$") if "](" not in text else text
