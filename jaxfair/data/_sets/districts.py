"""Counts of pupils and poor children in school districts: Title I and SAIPE.

Here a row is a place, x holds its counts and the group is the place's state
or size. Counts stay below 2^24, so float32 holds them exactly.
"""

import numpy as np

from jaxfair.data import _rules, _tables
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import DataError, Files, KnownFile
from jaxfair.data._reading import parse
from jaxfair.data._sets import places
from jaxfair.data._spec import Facts, Figure, Form, Raw, Spec


def _title_one(found: Files) -> Raw:
  table = parse(found.text("title1_full_data.csv"))
  spelled = {name.upper(): name for name in places.STATES.values()}
  state = _tables.recode(table["State"], spelled)
  return Raw(
    {"students": table["num_students"], "expenditure": table["exp_index"], "state": state},
    row_names=places.row_names(table["Agency Name"], state),
  )


TITLE_ONE = Spec(
  name="title_one",
  source=Provenance(
    "School districts for the Title I allotment, 2014-15",
    places.LICENSE,
    "NCES ELSI, US Department of Education",
    (
      "students are all enrolled pupils, not the eligible (poor) children",
      "some rows are agencies with a single pupil",
    ),
  ),
  folders=("title_one", "title1"),
  forms=(
    Form(
      (
        KnownFile(
          "title1_full_data.csv", "d0442c7e57adcf27973e156ba43b463f8dcfdc6f1974ef3d6ed60201e66194ce"
        ),
      ),
      _title_one,
    ),
  ),
  labels={"none": _rules.everyone()},
  groups={
    "state": _rules.values("state"),
    "size": _rules.bins("students", (500, 5_000, 50_000), kept=True),  # a count as well
  },
  facts=Facts(
    (16641,),
    {"size": (6207, 8434, 1904, 96)},
    (
      Figure("pupils", lambda t: float(t["students"].sum()), 50205768),
      Figure("states", lambda t: len(np.unique(t["state"])), 51),
    ),
  ),
  drop=("state",),
)

SAIPE_COUNTS = ("population", "children", "poor_children")


def _saipe_text(found: Files) -> Raw:
  """Fixed width: state, district, name, then three counts."""
  lines = found.text("ussd19.txt", "latin-1").splitlines()
  counts = np.array([(line[82:90], line[91:99], line[100:108]) for line in lines]).astype(
    np.float64
  )
  return _saipe(
    np.array([line[:2] for line in lines]), np.array([line[9:81].strip() for line in lines]), counts
  )


def _saipe_excel(found: Files) -> Raw:
  """Three lines of heading; postal code, state, district, name, counts."""
  try:
    import xlrd
  except ImportError:
    raise DataError(
      "reading this .xls file needs xlrd; pip install 'jaxfair[excel]', or use "
      "the 2019 set `saipe`, which is plain text"
    ) from None
  (name,) = found.paths
  sheet = xlrd.open_workbook(file_contents=found.read(name)).sheet_by_index(0)
  rows = [sheet.row_values(row) for row in range(3, sheet.nrows)]
  return _saipe(
    np.array([f"{int(row[1]):02d}" for row in rows]),
    np.array([str(row[3]).strip() for row in rows]),
    np.array([row[4:7] for row in rows], np.float64),
  )


def _saipe(codes: np.ndarray, names: np.ndarray, counts: np.ndarray) -> Raw:
  state = _tables.recode(codes, places.STATES)
  table = dict(zip(SAIPE_COUNTS, counts.T, strict=True))
  return Raw({**table, "state": state}, row_names=places.row_names(names, state))


def _saipe_spec(
  name: str, year: int, form: Form, facts: Facts, cautions: tuple[str, ...] = ()
) -> Spec:
  return Spec(
    name=name,
    source=Provenance(
      f"SAIPE school district poverty estimates, {year}",
      places.LICENSE,
      "US Census Bureau",
      ("the counts are model estimates, themselves uncertain", *cautions),
      "state",
    ),
    folders=("saipe", "title1"),
    forms=(form,),
    labels={"none": _rules.everyone()},
    groups={
      "state": _rules.values("state"),
      "size": _rules.bins("children", (500, 5_000, 50_000), kept=True),  # a count as well
    },
    facts=facts,
    drop=("state",),
  )


SAIPE = _saipe_spec(
  "saipe",
  2019,
  Form(
    (KnownFile("ussd19.txt", "75b778a862273a7b4802a911a89600624108633009612576305680824f7bfca9"),),
    _saipe_text,
  ),
  Facts((13183,)),
)
SAIPE_2015 = _saipe_spec(
  "saipe_2015",
  2015,
  Form(
    (
      KnownFile(
        "saipe_school_districts_2015.xls",
        "19a43b2071705693164803cf19d11fe9230130309aef557cf2ed7204c5196010",
        aliases=("ussd15.xls",),
      ),
    ),
    _saipe_excel,
  ),
  Facts((13246,)),
  ("needs xlrd",),
)
SAIPE_2020 = _saipe_spec(
  "saipe_2020",
  2020,
  Form(
    (
      KnownFile(
        "saipe_school_districts_2020.xls",
        "8748030c99949e34f435f91667a37f518c199e9576fcbafb2af1aa8ee84329ab",
        aliases=("ussd20.xls",),
      ),
    ),
    _saipe_excel,
  ),
  Facts((13173,)),
  ("needs xlrd",),
)

SPECS = (TITLE_ONE, SAIPE, SAIPE_2015, SAIPE_2020)
