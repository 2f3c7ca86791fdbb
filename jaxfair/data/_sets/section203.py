"""Section 203 of the Voting Rights Act: whose language is on the ballot?

A row is a language in a county or town; x holds three counts of voting-age
citizens, the label says whether the jurisdiction must help in that language.
"""

import numpy as np

from jaxfair.data import _rules, _tables
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import Files, KnownFile
from jaxfair.data._reading import parse
from jaxfair.data._sets import places
from jaxfair.data._spec import Facts, Form, Raw, Spec
from jaxfair.data._tables import Table

ALASKA_NATIVE = (
  "Yup'ik",
  "Inupiat",
  "Alaskan Athabascan",
  "Aleut",
  "Tlingit-Haida",
  "Tsimshian",
  "Alaska Native Tribe - Tribe not Specified",
)


def _language_group(language: np.ndarray) -> np.ndarray:
  native = np.char.startswith(language, "American Indian") | np.isin(language, ALASKA_NATIVE)
  others = np.where(language == "Hispanic", "Hispanic", "Asian")
  return np.where(native, "American Indian or Alaska Native", others)


def _section203(table: Table, citizens: np.ndarray) -> Raw:
  """Rows are (jurisdiction, language); citizens are all of voting age."""
  minority, little = table["VACLEP"], table["ILLIT"]
  # The statute's numeric part: at least 5% or 10,000 of the voting-age
  # citizens are limited in English, and 1.31% of these are illiterate.
  many = (minority > 0.05 * citizens) | (minority > 10_000)
  rule = many & (little > 0.0131 * minority)
  code = np.char.zfill(_tables.words(table["ST"]), 2)
  return Raw(
    {
      "citizens": citizens,
      "limited_english": minority,
      "illiterate": little,
      "covered": _tables.words(table["FLAG_COV"]),
      "rule": rule.astype(np.float64),
      "language": table["LANGUAGE"],
      "language_group": _language_group(table["LANGUAGE"]),
      "state": _tables.recode(code, places.STATES),
    },
    row_names=places.row_names(table["NAMELSAD"], table["LANGUAGE"]),
  )


def _determined(found: Files) -> Raw:
  text = found.text("sect203_Determined_Areas_Only_2016.csv", "latin-1")
  table = parse(text, categorical=("GEOID", "ST", "FLAG_COV"))
  kept = np.isin(table["LEVEL"], ["County", "MCD"])
  total = table["LANGUAGE"] == "Total Population"
  places, numbers = (table[c][kept & total] for c in ("GEOID", "VACIT"))
  rows = _tables.take(table, kept & ~total)
  order = np.argsort(places)
  found_at = order[np.searchsorted(places, rows["GEOID"], sorter=order)]
  return _section203(rows, numbers[found_at])


def _alaska(found: Files) -> Raw:
  text = found.text("alaska_counties_all_languages_2016.csv", "latin-1")
  table = parse(text)
  return _section203(table, table["total_population_vacit"])


def _section203_spec(
  name: str, title: str, form: Form, facts: Facts, cautions: tuple[str, ...]
) -> Spec:
  answer = {"0": "not covered", "1": "covered"}
  return Spec(
    name=name,
    source=Provenance(title, places.LICENSE, "US Census Bureau, 2016", cautions, "place"),
    folders=("section203",),
    forms=(form,),
    labels={"covered": _rules.values("covered", answer), "rule": _rules.values("rule", answer)},
    groups={
      "language_group": _rules.values("language_group"),
      "language": _rules.values("language"),
      "state": _rules.values("state"),
    },
    facts=facts,
    drop=("covered", "rule", "language", "language_group", "state"),
  )


SECTION203 = _section203_spec(
  "section203",
  "Section 203 determinations, covered counties and towns",
  Form(
    (
      KnownFile(
        "sect203_Determined_Areas_Only_2016.csv",
        "cc6ae106ed7e32ed56c334f361d6468b8639c4a18d23569191333b96de929640",
      ),
    ),
    _determined,
  ),
  Facts((0, 316)),
  (
    "covered places only: nothing about false positives can be learned here",
    "published counts are rounded: the rule can disagree with a flag at the "
    "edge, and Indian areas are covered by a rule of their own",
  ),
)
SECTION203_ALASKA = _section203_spec(
  "section203_alaska",
  "Section 203 determinations, every language in Alaska's counties",
  Form(
    (
      KnownFile(
        "alaska_counties_all_languages_2016.csv",
        "6447c2cfeac7f6177c6199d396dc780af0fa9afb45abedeb2c15e20f378f78eb",
      ),
    ),
    _alaska,
  ),
  Facts((369, 21)),
  (
    "label `covered` is the Census flag, which also counts Indian areas; "
    "label `rule` is the numeric rule alone",
  ),
)

SPECS = (SECTION203, SECTION203_ALASKA)
