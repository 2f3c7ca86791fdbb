"""Tables of people from the UCI repository."""

import numpy as np

from jaxfair.data import _rules, _tables
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import KnownFile
from jaxfair.data._sets.text_form import text_form
from jaxfair.data._spec import Facts, Figure, Spec
from jaxfair.data._tables import Table

LICENSE = "CC BY 4.0"
ORIGIN = "UCI Machine Learning Repository"
YES_NO = {"no": "no", "yes": "yes"}
ADULT_COLUMNS = (
  "age",
  "workclass",
  "fnlwgt",
  "education",
  "education-num",
  "marital-status",
  "occupation",
  "relationship",
  "race",
  "sex",
  "capital-gain",
  "capital-loss",
  "hours-per-week",
  "native-country",
  "income",
)


def _adult_income(table: Table) -> Table:
  # The test file ends its labels with a full stop.
  return {**table, "income": np.char.rstrip(table["income"], ".")}


ADULT = Spec(
  name="adult",
  source=Provenance(
    "Adult (Census Income), US census of 1994",
    LICENSE,
    ORIGIN,
    (
      "relationship (husband, wife) and marital-status give away most of sex",
      "fnlwgt is the census' sampling weight, not a trait of the person",
    ),
  ),
  folders=("adult",),
  forms=(
    text_form(
      KnownFile("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
      KnownFile("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
      names=ADULT_COLUMNS,
      comment="|",
      prepare=_adult_income,
    ),
  ),
  labels={"income": _rules.values("income", {"<=50K": "<=50K", ">50K": ">50K"})},
  groups={
    "white": _rules.against("race", "White", ("Non-White", "White")),
    "sex": _rules.values("sex", {"Female": "Female", "Male": "Male"}),
    "race": _rules.values("race"),
    "age": _rules.bins("age", (25, 40, 60)),
  },
  facts=Facts(
    classes=(37155, 11687),
    groups={
      "white": (7080, 41762),
      "sex": (16192, 32650),
      "race": (470, 1519, 4685, 406, 41762),
      "age": (8432, 19012, 17343, 4055),
    },
  ),
)


def _bank(
  name: str,
  file: KnownFile,
  label: str,
  separator: str,
  facts: Facts,
  cautions: tuple[str, ...] = (),
  sorted_by: str = "the date of the call",
) -> Spec:
  return Spec(
    name=name,
    source=Provenance(
      "Bank marketing, Portugal 2008-2013",
      LICENSE,
      ORIGIN,
      ("duration is known only after the call whose outcome is predicted", *cautions),
      sorted_by,
    ),
    folders=("bank", "bank-additional"),
    forms=(text_form(file, separator=separator),),
    labels={label: _rules.values(label, YES_NO)},
    groups={
      "age": _rules.bins("age", (60,)),
      "marital": _rules.values("marital"),
      "education": _rules.values("education"),
      "job": _rules.values("job"),
    },
    facts=facts,
  )


BANK = _bank(
  "bank",
  KnownFile("bank-full.csv", "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d"),
  "y",
  ";",
  Facts((39922, 5289), {"age": (43427, 1784), "marital": (5207, 27214, 12790)}),
)
BANK_ADDITIONAL = _bank(
  "bank_additional",
  KnownFile(
    "bank-additional-full.csv", "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8"
  ),
  "y",
  ";",
  Facts((36548, 4640), {"age": (39995, 1193)}),
)
BANK_BALANCED = _bank(
  "bank_balanced",
  KnownFile(
    "bank_dp_fair_authors.csv", "c25bf6ac8ef9e37119427fce9a32923baf57cb466ca27b34b2c930e88035d2fe"
  ),
  "deposit",
  ",",
  Facts((5873, 5289), {"age": (10382, 780)}),
  ("a nearly balanced selection from `bank`: its base rate is not the bank's",),
  "the label",
)


def _credit_words(table: Table) -> Table:
  words = {
    "SEX": {"1": "male", "2": "female"},
    "EDUCATION": {
      "1": "graduate school",
      "2": "university",
      "3": "high school",
      "4": "other",
      "0": "unknown",
      "5": "unknown",
      "6": "unknown",
    },
    "MARRIAGE": {"1": "married", "2": "single", "3": "other", "0": "unknown"},
  }
  return {**table, **{name: _tables.recode(table[name], codes) for name, codes in words.items()}}


CREDIT = Spec(
  name="credit",
  source=Provenance(
    "Default of credit card clients, Taiwan 2005",
    LICENSE,
    ORIGIN,
    ("undocumented codes of EDUCATION and MARRIAGE are read as unknown",),
  ),
  folders=("credit", "credit_default"),
  forms=(
    text_form(
      KnownFile(
        "UCI_Credit_Card.csv", "2d0560932c75d5d727818e77f6082d4eeb36b6a803d7dca2a6a1b23951e716ae"
      ),
      prepare=_credit_words,
    ),
  ),
  labels={"default": _rules.values("default_payment_next_month", {"0": "paid", "1": "default"})},
  groups={
    "sex": _rules.values("SEX", {"female": "female", "male": "male"}),
    "age": _rules.bins("AGE", (30, 40, 50)),
    "education": _rules.values("EDUCATION"),
    "marriage": _rules.values("MARRIAGE"),
  },
  facts=Facts((23364, 6636), {"sex": (18112, 11888), "age": (9618, 11238, 6464, 2680)}),
  drop=("ID",),
)

PARKINSONS = Spec(
  name="parkinsons",
  source=Provenance(
    "Parkinsons telemonitoring",
    LICENSE,
    ORIGIN,
    (
      "42 people gave 5,875 rows: split by unit, never by row",
      "the other score (motor or total UPDRS) is not a feature",
    ),
    "person",
  ),
  folders=("parkinsons",),
  forms=(
    text_form(
      KnownFile(
        "parkinsons_updrs.data", "f2c7d5025dec4e92e7feae367a5f7ccf58789a10ac6b54bdf15976c599f9dd39"
      )
    ),
  ),
  labels={"total_UPDRS": _rules.above("total_UPDRS"), "motor_UPDRS": _rules.above("motor_UPDRS")},
  groups={
    "sex": _rules.values("sex", {"0": "male", "1": "female"}),
    "age": _rules.bins("age", (60, 70)),
  },
  facts=Facts(
    (2941, 2934),
    {"sex": (4008, 1867), "age": (1877, 2127, 1871)},
    (
      Figure("median total_UPDRS", lambda t: float(np.median(t["total_UPDRS"])), 27.576),
      Figure("people", lambda t: len(np.unique(t["subject#"])), 42),
    ),
  ),
  drop=("motor_UPDRS", "total_UPDRS"),
  unit="subject#",
)

SPECS = (ADULT, BANK, BANK_ADDITIONAL, BANK_BALANCED, CREDIT, PARKINSONS)
