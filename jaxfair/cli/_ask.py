"""`jaxfair ask`: a questionnaire that stops once the answers determine the decision."""

import pathlib
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from jaxfair import checks

RunFolder = Annotated[
  pathlib.Path, typer.Argument(help="Directory of a run of the study 'disclosure'.")
]
Delta = Annotated[
  float, typer.Option(help="Allowed probability of another decision; 0 requires certainty.")
]
Page = Annotated[
  pathlib.Path | None,
  typer.Option(help="Write a web page that asks, instead of asking in the terminal."),
]
Questions = Annotated[
  pathlib.Path | None,
  typer.Option(help='TOML file with texts of questions: age = "How old are you?"'),
]


def ask(
  model_run: RunFolder, delta: Delta = 0.05, page: Page = None, questions: Questions = None
) -> None:
  """Ask only for what decides your case; answers stay on this machine."""
  from jaxfair.disclosure._interview import Interview
  from jaxfair.disclosure._questionnaire import FILE, Questionnaire
  from jaxfair.disclosure._web_page import write_page

  checks.number("delta", delta, low=0.0, high=0.5, open_high=True)
  asked = Questionnaire.read(model_run / FILE)
  texts = _texts(questions, asked.sensitive)
  if page is not None:
    write_page(asked, page, delta=delta, questions=texts)
    typer.echo(f"page: {page}")
    return
  sure = "certain" if delta == 0 else f"{100 * (1 - delta):.4g}% sure"
  typer.echo(asked.title)
  typer.echo(f"One question at a time, until the decision is {sure}.\n")
  interview = Interview(asked, delta=delta)
  while (column := interview.next_column()) is not None:
    interview.answer(column, _prompt(asked, column, texts.get(column)))
  told = interview.decision()
  typer.echo(f"\nDecision: {told.label} ({told.how_sure}).")
  typer.echo(f"You were asked for {_listed(told.asked)}.")
  typer.echo(f"Nobody needed to know {_listed(told.never_asked)}.")


def _texts(path: pathlib.Path | None, columns: tuple[str, ...]) -> Mapping[str, str]:
  """The questions of a file; each is about a column that may be asked for."""
  import tomllib

  if path is None:
    return {}
  try:
    found = tomllib.loads(path.read_text("utf-8"))
  except (OSError, ValueError) as error:
    raise checks.ArgumentError(
      f'--questions {path} cannot be read ({error}); write lines such as age = "How old are you?"'
    ) from None
  for column, text in found.items():
    checks.one_of(f"--questions {path}", column, columns)
    checks.require(isinstance(text, str), f"--questions {path}: {column} must be a text in quotes")
  return found


def _prompt(asked: Any, column: str, text: str | None) -> str:
  """One question in plain words; asks again until the answer is possible."""
  from jaxfair.disclosure._questionnaire import in_words

  words = asked.words(column)
  question = text or f"What is your {in_words(column)}?"
  if words:
    typer.echo(question)
    for number, word in enumerate(words, 1):
      typer.echo(f"  {number:>2}  {word}")
  else:
    low, high = asked.span(column)
    typer.echo(f"{question} (a number; usual: {low:g} to {high:g})")
  while True:
    given = str(typer.prompt(">", prompt_suffix=" ")).strip()
    if words and given.isdigit() and 1 <= int(given) <= len(words):
      return str(words[int(given) - 1])
    try:
      asked.encoded(column, given)
      return given
    except checks.ArgumentError:
      typer.echo(f"  a number from 1 to {len(words)}, please" if words else "  a number, please")


def _listed(columns: tuple[str, ...]) -> str:
  from jaxfair.disclosure._questionnaire import in_words

  return ", ".join(map(in_words, columns)) or "nothing"
