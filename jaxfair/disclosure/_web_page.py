"""The questionnaire of a linear model as one web page.

Everything is computed in the browser: the page has no address to send an
answer to, and its content policy forbids connections.
"""

import html
import json
import pathlib
from collections.abc import Mapping
from importlib import resources

from jaxfair import checks
from jaxfair.disclosure._questionnaire import Questionnaire


def write_page(
  questionnaire: Questionnaire,
  path: pathlib.Path,
  *,
  delta: float = 0.05,
  questions: Mapping[str, str] | None = None,
) -> None:
  """Writes a page that asks one person, offline.

  Args:
    questionnaire: of a linear model with two classes.
    path: the HTML file.
    delta: failure probability the page starts with.
    questions: column -> how it is asked for; "What is your ...?" by default.
  """
  checks.number("delta", delta, low=0.0, high=0.5, open_high=True)
  network = questionnaire.network
  checks.require(
    network.is_linear and network.is_binary,
    "the web page is for linear models with two classes; ask in the terminal, "
    'or run the study with model = "logistic"',
  )
  plain = questionnaire.plain() | {"delta": delta, "questions": dict(questions or {})}
  # "</script>" within a name must not end the script.
  model = json.dumps(plain).replace("<", "\\u003c")
  page = resources.files("jaxfair.disclosure").joinpath("page.html").read_text()
  page = page.replace("{{title}}", html.escape(questionnaire.title))
  path.write_text(page.replace("{{model}}", model), encoding="utf-8")
