"""The sentences that claims test: quotes.toml beside the studies of a paper.

    paper = "thesis"          # one of `PAPERS`
    ["Fig. 3.4"]              # the place, as a claim names it in brackets
    quote = "The sentence of the paper."
    where = "Section 3.5"
    ["Table 5.3"]             # what no claim tests
    quote = "..."
    where = "..."
    untested = "why"

A claim that tests several places names them with semicolons: `[Fig. 2; Fig. 8]`. A study in a
single module `name.py` has its quotes in `name_quotes.toml`.
"""

import dataclasses
import functools
import pathlib
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from jaxfair import _schema, checks

PAPERS = {
  "pate": "Tran, Dinh, Beiter and Fioretto (2021), A Fairness Analysis on Private Aggregation of "
  "Teacher Ensembles",
  "sf_pate": "Tran, Zhu, Fioretto and Van Hentenryck (2023), SF-PATE: Scalable, Fair, and Private "
  "Aggregation of Teacher Ensembles",
  "fairpate": "Yaghini, Liu, Boenisch and Papernot (2023), Learning to Walk Impartially on the "
  "Pareto Frontier of Fairness, Privacy, and Utility",
  "slides": "Slides on Learning to Walk Impartially on the Pareto Frontier",
  "thesis": "Tran, doctoral thesis",
}


@dataclasses.dataclass(frozen=True)
class Quote:
  """One sentence of a paper.

  Attributes:
    quote: the sentence, word for word; left-out words are three dots.
    where: the section that it stands in.
    place: the figure, table or sentence, as claims name it.
    paper: one of `PAPERS`; that of the file if it is left out.
    untested: why no claim tests it; empty if one does.
  """

  quote: str
  where: str
  place: str
  paper: str = ""
  untested: str = ""

  def __post_init__(self) -> None:
    known = checks.options(self.paper, PAPERS)
    checks.require(self.paper in PAPERS, f"paper={self.paper!r} is not known; {known}")
    checks.require(bool(self.quote and self.where), "quote and where must not be empty")


@functools.cache
def read_quotes(path: pathlib.Path) -> Mapping[str, Quote]:
  """The quotes of a file, by place."""
  try:
    values = tomllib.loads(path.read_text(encoding="utf-8"))
  except tomllib.TOMLDecodeError as error:
    raise checks.ArgumentError(f"{path}: {error}") from None
  paper = values.pop("paper", "")
  for place, told in values.items():
    fits = isinstance(told, dict) and ";" not in place
    checks.require(fits, f'{path}: {place}: write a table ["Fig. 1"], without a semicolon')
  return {
    place: _schema.build(
      Quote, {"paper": paper, "place": place, **told}, where=f"{path}: {place}: "
    )
    for place, told in values.items()
  }


def quotes_beside(run: Callable[..., Any]) -> Mapping[str, Quote] | None:
  """The quotes that lie beside the module of a study's `run`; None if there is no file."""
  while isinstance(run, functools.partial):
    run = run.func
  told = getattr(run, "__globals__", {}).get("__file__")
  if told is None:
    return None
  module = pathlib.Path(told)
  for name in (f"{module.stem}_quotes.toml", "quotes.toml"):
    if (module.parent / name).exists():
      return read_quotes(module.parent / name)
  return None


def split_places(source: str) -> list[str]:
  """The places that a claim names in its brackets."""
  return [place.strip() for place in source.split(";") if place.strip()]
