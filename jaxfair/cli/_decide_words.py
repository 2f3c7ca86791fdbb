"""What `jaxfair decide` says: to a terminal, and on a page for people who decide."""

import csv
import io
import pathlib
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import typer

from jaxfair.cli import _console
from jaxfair.cli._decide_file import OfficeFile

if TYPE_CHECKING:
  from jaxfair.decisions._bias import NonPrivateBias
  from jaxfair.decisions._requirement import NonPrivateRequirement
  from jaxfair.report._decision_page import Listing

SHOWN = 10
OWN_EYES = (
  "Computed from the true counts without noise: for your own eyes only. Do not publish this or "
  "the page."
)
CHOICE = (
  "An epsilon or a remedy that was chosen by looking at the true counts reveals something "
  "about them. Choose on counts that are public, such as last year's."
)


class Told(NamedTuple):
  """The question that was asked."""

  title: str
  rule: str
  epsilon: float
  remedy: str
  money: float  # that an outcome of 1 is worth
  unit: str
  command: str  # without epsilon and remedy
  found: "NonPrivateRequirement | None"
  wish: tuple[float, float]  # at most this loss, with this probability

  def amount(self, value: float, *, signed: bool = False) -> str:
    """Money with its unit."""
    digits = 0 if abs(value) >= 100 else 2
    number = f"{abs(value):,.{digits}f}"
    sign = "-" if value < 0 else "+" if signed else ""
    sign = "" if float(number.replace(",", "")) == 0 else sign
    if len(self.unit) == 1 and not self.unit.isalnum():
      return f"{sign}{self.unit}{number}"
    return f"{sign}{number} {self.unit}".rstrip()


Results: TypeAlias = "dict[str, tuple[NonPrivateBias, NonPrivateBias | None]]"


def tell(told: Told, read: OfficeFile, results: Results, folder: pathlib.Path) -> None:
  """Prints the answer, and writes report.html and places.csv."""
  from jaxfair._whole_files import write_whole
  from jaxfair.decisions import _ways
  from jaxfair.report import _decision_page

  own, by_region = results[told.remedy]
  clear = _ways.clear_bias(own)
  best = _ways.recommend({name: one for name, (one, _) in results.items()}, now=told.remedy)
  advice, command = _advice(told, results, best, clear)
  sentences = [_what(told, read), _who(told, read, own, clear), advice]
  listings = _winners_and_losers(told, read, own, clear)
  if by_region is not None:
    listings.append(_regions(told, read, own, by_region))
  notes = _notes(told, read, own)
  brief = _decision_page.Brief(
    told.title,
    "How noise that protects people affects the places they live in.",
    sentences,
    listings,
    f"{best}: {_ways.WAYS[best]}",
    command,
    _comparison(told, results),
    {name: _ways.WAYS[name] for name in results},
    notes,
  )
  folder.mkdir(parents=True, exist_ok=True)
  _decision_page.write_brief(brief, folder / "report.html")
  write_whole(folder / "places.csv", _csv(told, read, own))
  for line in (OWN_EYES, *sentences):
    typer.echo(line)
  for listing in (*listings, brief.comparison):
    typer.echo(f"\n{listing.title}")
    if listing.rows:
      _console.table(listing.heads, listing.rows)
  for name, meaning in brief.meanings.items():
    typer.echo(f"{name}: {meaning}")
  typer.echo(f"\nrecommended: {command}")
  for note in notes[1:]:
    typer.echo(note)
  typer.echo(f"page: {folder / 'report.html'}; every place: {folder / 'places.csv'}")


def _what(told: Told, read: OfficeFile) -> str:
  count = len(read.names)
  level = f"epsilon {told.epsilon:g}; smaller protects more"
  if told.found is not None:
    loss, chance = told.wish
    loses = "what it is due" if read.case.is_rule else f"more than {told.amount(loss)}"
    level = (
      f"epsilon {told.epsilon:g}, found so that with probability {chance:g} no place loses {loses}"
    )
  hides = f"counts with noise that hides whether any one person was counted ({level})"
  if read.case.is_rule:
    due = int(read.case.truth.sum())
    return f"{told.rule} decides about {count:,} places, {due:,} of which qualify, from {hides}."
  total = told.amount(told.money * float(read.case.truth.sum()))
  return f"{total} are shared among {count:,} places by {told.rule}, from {hides}."


def _who(told: Told, read: OfficeFile, own: "NonPrivateBias", clear: np.ndarray) -> str:
  low, high = int(np.argmin(own.bias)), int(np.argmax(own.bias))
  if read.case.is_rule:
    lost, won = -np.minimum(own.bias, 0).sum(), np.maximum(own.bias, 0).sum()
    worst = int(np.argmax(own.error))
    return (
      f"On average {lost:.3g} places lose what they qualify for and {won:.3g} get what they do "
      f"not; the most uncertain is {read.names[worst]}, decided wrongly with a chance of "
      f"{own.error[worst]:.0%}."
    )
  typical = told.amount(told.money * float(own.error.mean()))
  if not np.any(clear):
    return (
      "On average over many releases no place clearly gains or loses; in a single release a place "
      f"is off by {typical} on average."
    )
  moved = told.amount(-told.money * float(np.minimum(own.bias, 0).sum()))
  return (
    f"On average places lose {moved} in all: {_one(told, read, own, low, clear, 'loses')}, "
    f"{_one(told, read, own, high, clear, 'gains')}; in a single release a place is off by "
    f"{typical} on average."
  )


def _one(
  told: Told, read: OfficeFile, own: "NonPrivateBias", place: int, clear: np.ndarray, verb: str
) -> str:
  if clear[place] == 0:
    return f"no single place clearly {verb}"
  amount = told.amount(abs(told.money * float(own.bias[place])))
  share = _share(own.bias[place], own.truth[place])
  return f"{read.names[place]} {verb} most, {amount}{share and f' ({share} of what it is due)'}"


def _share(part: float, whole: float) -> str:
  if not whole:
    return ""
  share = abs(part / whole)
  return f"{share:.2%}" if share >= 1e-4 else "under 0.01%"


def _advice(told: Told, results: Results, best: str, clear: np.ndarray) -> tuple[str, str]:
  """A sentence, and the command that follows it."""
  own, other = results[told.remedy][0], results[best][0]
  level = f"--epsilon {told.epsilon:g}"
  if told.found is not None and best != told.remedy:  # another way needs its own epsilon
    level = f"--at-most-loss {told.wish[0]:.15g} --with-probability {told.wish[1]:.15g}"
  command = f"{told.command} {level} --remedy {best}"
  lost = [-told.money * float(np.minimum(one.bias, 0).sum()) for one in (own, other)]
  if best != told.remedy and own.is_rule:
    now, then = float(own.error.mean()), float(other.error.mean())
    change = f"wrong decisions from {now:.2%} to {then:.2%}"
  else:
    now_lost, then_lost = map(told.amount, lost)
    change = f"what places lose on average from {now_lost} to {then_lost} in all"
  if best != told.remedy and (own.is_rule or lost[1] < lost[0]):
    told_way = f"use the noisy counts another way ({best}, below), which lowers {change}"
    return f"Recommended: {told_way}.", command
  if best != told.remedy:
    return f"Recommended: {best} (below), whose single releases are closer to what is due.", command
  keep = f"Recommended: keep this way of using the counts ({best})"
  if own.is_rule and told.found is None:
    return (
      f"{keep}, and if no place may lose what it qualifies for, find the epsilon for that with the "
      "command below.",
      f"{told.command} --remedy {best} --at-most-loss 0 --with-probability 0.9",
    )
  if own.is_rule:
    return f"{keep}; no other is clearly better.", command
  if np.any(clear < 0):
    return (
      f"{keep}; {told.amount(lost[0])} more in all would let no place lose on average.",
      command,
    )
  return f"{keep}; no place clearly loses on average.", command


def _winners_and_losers(
  told: Told, read: OfficeFile, own: "NonPrivateBias", clear: np.ndarray
) -> "list[Listing]":
  from jaxfair.report._decision_page import Listing

  order = np.argsort(own.bias)
  heads = ["place", "counted", "due", "change on average", "share of what is due"]
  if own.is_rule:
    heads = ["place", "counted", "chance of a wrong decision"]
  lists = []
  for verb, places in (("lose", order[:SHOWN]), ("gain", order[::-1][:SHOWN])):
    sign = -1 if verb == "lose" else 1
    shown = [int(i) for i in places if sign * clear[i] > 0]
    title = f"The places that {verb} most"
    caption = f"Up to {SHOWN} places, of those that clearly {verb} on average over many releases."
    if own.is_rule:
      title = {
        "lose": "Most likely to lose what they qualify for",
        "gain": "Most likely to get what they do not qualify for",
      }[verb]
      caption = f"Up to {SHOWN} places, of those whose chance is clearly above 0."
    if not shown:
      caption = "The simulation found no such place."
    lists.append(Listing(title, caption, heads, [_row(told, read, own, i) for i in shown]))
  return lists


def _row(told: Told, read: OfficeFile, own: "NonPrivateBias", i: int) -> list[str]:
  place = [str(read.names[i]), f"{read.sizes[i]:,.0f}"]
  if own.is_rule:
    return [*place, f"{own.error[i]:.1%}"]
  change = told.amount(told.money * float(own.bias[i]), signed=True)
  due = told.amount(told.money * float(own.truth[i]))
  return [*place, due, change, _share(own.bias[i], own.truth[i]) or "-"]


def _regions(
  told: Told, read: OfficeFile, own: "NonPrivateBias", sums: "NonPrivateBias"
) -> "Listing":
  from jaxfair.report._decision_page import Listing

  assert read.regions is not None
  names, codes = np.unique(read.regions, return_inverse=True)
  counts = np.bincount(codes)
  if own.is_rule:
    lost = np.bincount(codes, -np.minimum(own.bias, 0))
    won = np.bincount(codes, np.maximum(own.bias, 0))
    rows = [
      [str(name), f"{n:,}", f"{a:.2f}", f"{b:.2f}"]
      for name, n, a, b in zip(names, counts, lost, won, strict=True)
    ]
    heads = ["region", "places", "lose wrongly", "get wrongly"]
    return Listing("By region", "Expected number of places with a wrong decision.", heads, rows)
  rows = []
  for i in np.argsort(sums.bias):
    change = told.amount(told.money * float(sums.bias[i]), signed=True)
    margin = told.amount(told.money * 1.96 * float(sums.standard_error[i]))
    due = told.amount(told.money * float(sums.truth[i]))
    rows.append([str(names[i]) or "(none)", f"{counts[i]:,}", due, change, f"± {margin}"])
  heads = ["region", "places", "due", "change on average", "error of the simulation"]
  return Listing("By region", "Sums over the places of a region; error at 95%.", heads, rows)


def _comparison(told: Told, results: Results) -> "Listing":
  from jaxfair.report._decision_page import Listing

  rows = []
  for name, (one, _) in results.items():
    if one.is_rule:
      numbers = [f"{one.error.mean():.2%}", f"{one.error.max():.1%}"]
    else:
      lost = -told.money * float(np.minimum(one.bias, 0).sum())
      largest = max(0.0, -told.money * float(one.bias.min()))
      error = told.money * float(one.error.mean())
      numbers = [told.amount(lost), told.amount(largest), told.amount(error)]
    rows.append([name, *numbers])
  heads = ["lost on average, in all", "largest average loss", "error of one release"]
  if next(iter(results.values()))[0].is_rule:
    heads = ["wrong decisions", "most uncertain place"]
  caption = (
    "All have the same epsilon. Remedies that need a public total assume that one is published."
  )
  return Listing("Ways to use the counts", caption, ["way", *heads], rows)


def _notes(told: Told, read: OfficeFile, own: "NonPrivateBias") -> list[str]:
  k = len(read.private)
  notes = [
    OWN_EYES,
    CHOICE,
    f"Noise is added to {', '.join(read.private)}. One person is in one place, and there in "
    + ("this count once." if k == 1 else f"up to {k} counts, once in each."),
    f"Simulated with {own.draws:,} releases; a gain or loss is listed if it is clear with 95% "
    "confidence for all places together.",
  ]
  if told.found is not None:
    one = told.found
    notes.append(
      f"At epsilon {one.epsilon:g} the requirement was met in {one.chance:.2%} of {one.draws:,} "
      f"fresh releases: at least {one.low:.2%}, with 99% confidence. "
      + (
        "Every larger epsilon that was checked met it more often."
        if one.rises
        else "CAUTION: under this rule a larger epsilon does not always meet the requirement "
        "more often; check the epsilon that you use."
      )
    )
  return notes


def _csv(told: Told, read: OfficeFile, own: "NonPrivateBias") -> str:
  from jaxfair.experiments._table import safe_cell

  file = io.StringIO()
  write = csv.writer(file).writerow
  write(["place", "region", "counted", "due", "change_on_average", "standard_error", "error"])
  numbers = np.stack([own.truth, own.bias, own.standard_error, own.error], axis=-1) * told.money
  for i, row in enumerate(numbers):
    region = "" if read.regions is None else read.regions[i]
    write(
      [
        safe_cell(read.names[i]),
        safe_cell(region),
        f"{read.sizes[i]:g}",
        *(f"{value:.10g}" for value in row),
      ]
    )
  return file.getvalue()
