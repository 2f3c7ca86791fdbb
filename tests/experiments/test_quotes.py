"""Quotes: read strictly, found beside a study's module, told with its claims."""

import functools
import sys

import pytest

from jaxfair import checks, studies
from jaxfair.experiments import _registry, mean
from jaxfair.experiments._claims import read_claims
from jaxfair.experiments._quotes import Quote, quotes_beside, read_quotes
from jaxfair.experiments._quotes import split_places as places

GOOD = """
paper = "thesis"
["Fig. 3.4"]
quote = "Norms decay."
where = "Section 3.5"
["Fig. 2"]
quote = "Noise hurts."
where = "Section 5"
paper = "pate"
["Table 5.3"]
quote = "See the table."
where = "Section 5.9"
untested = "an example"
"""


@pytest.fixture
def written(tmp_path):
  def write(text, name="quotes.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path

  return write


def test_a_quote_has_its_paper_and_place(written):
  found = read_quotes(written(GOOD))
  assert found["Fig. 3.4"] == Quote("Norms decay.", "Section 3.5", "Fig. 3.4", "thesis")
  assert found["Fig. 2"].paper == "pate"
  assert found["Table 5.3"].untested == "an example"


@pytest.mark.parametrize(
  ("wrong", "told"),
  [
    (GOOD.replace("thesis", "these"), "paper='these' is not known; .*did you mean thesis"),
    (GOOD.replace("where", "were"), "Fig. 3.4: were: .*where"),
    (GOOD.replace('"Norms decay."', '""'), "quote and where must not be empty"),
    (GOOD.replace("Fig. 3.4", "Fig. 3.4; Fig. 3.5"), "without a semicolon"),
    (GOOD + 'more = "text"\n["a', "quotes.toml: "),
    ('[""]\nquote = "q"\nwhere = "w"\n', "paper='' is not known"),
  ],
)
def test_a_wrong_file_is_an_error_that_names_it(written, wrong, told):
  with pytest.raises(checks.ArgumentError, match=told):
    read_quotes(written(wrong))


def test_a_claim_has_the_quotes_of_its_places(written):
  check = mean("x") > 0
  told = {"a: Falls [Fig. 3.4; Fig. 2]": check, "b: Ours": check}
  first, own = read_claims(told, read_quotes(written(GOOD)))
  assert [quote.quote for quote in first.quotes] == ["Norms decay.", "Noise hurts."]
  assert (own.source, own.quotes) == ("", ())
  with pytest.raises(checks.ArgumentError, match=r"'a' names \[Fig. 3.5\].*did you mean Fig. 3.4"):
    read_claims({"a: Falls [Fig. 3.5]": check}, read_quotes(written(GOOD)))
  (unknown,) = read_claims({"a: Falls [Fig. 9]": check})
  assert (unknown.source, unknown.quotes) == ("Fig. 9", ())


@pytest.mark.parametrize("name", ["quotes.toml", "decay_quotes.toml"])
def test_quotes_lie_beside_the_module_of_a_study(written, tmp_path, name):
  written(GOOD, name)
  module = tmp_path / "decay.py"
  space = {"__file__": str(module)}
  exec("def run(config): pass", space)
  assert quotes_beside(functools.partial(space["run"], 1)) == read_quotes(tmp_path / name)
  assert quotes_beside(len) is None
  assert quotes_beside(test_a_quote_has_its_paper_and_place) is None


@pytest.fixture(scope="module")
def quoted():
  """(study, its quotes) by name, of every study."""
  found = {name: _registry.find(name) for name in studies.NAMES}
  return {name: (study, quotes_beside(study.run)) for name, study in found.items()}


def test_every_source_has_a_quote(quoted):
  without = [
    (name, claim.name)
    for name, (study, _) in quoted.items()
    for claim in study.claims
    if claim.source and not claim.quotes
  ]
  assert not without


def test_every_quote_is_tested_or_says_why_not(quoted):
  tested, written_down = set(), {}
  for study, quotes in quoted.values():
    package = sys.modules[study.run.__module__].__package__
    written_down |= {(package, place): quote for place, quote in (quotes or {}).items()}
    tested |= {(package, place) for claim in study.claims for place in places(claim.source)}
  for key, quote in written_down.items():
    assert (key in tested) != bool(quote.untested), key
