"""Places for the decision studies: counts, names, and where they come from."""

from typing import NamedTuple

import numpy as np

from jaxfair import checks, data
from jaxfair import experiments as ex
from jaxfair.data import _tables
from jaxfair.decisions import _problems

SYNTHETIC_DISTRICTS = 900
SYNTHETIC_JURISDICTIONS = 2774  # the thesis's number of counties
OWNER_ONLY = "Computed from the true counts: for the agency's own eyes, not for release."


class Places(ex.Settings):
  """The counts to use: a named set, or a CSV file of your own."""

  name: str = ""  # the named set; left out for a CSV file
  csv: str = ""  # path of a file with a header line and one place per line
  # Its columns: the count and the weight of a district (1 if left out), or citizens, limited
  # English and little schooling of a jurisdiction.
  columns: tuple[str, ...] = ()
  label: str = ""  # its column of names; row numbers by default
  state: str = ""  # keeps one state's places of a named set

  def check(self) -> None:
    """One source."""
    checks.require(
      bool(self.name) != bool(self.csv),
      "name a set with data.name, or a file with data.csv: one of them",
    )
    checks.require(not (self.csv and self.state), "data.state is for named sets only")


class Districts(NamedTuple):
  """Counts to share money by."""

  counts: np.ndarray  # [n] children
  weights: np.ndarray  # [n] expenditure per pupil
  names: np.ndarray  # [n]
  share: float  # of the nation's weighted total; 1 for a whole set
  note: str  # what a reader must know


class Jurisdictions(NamedTuple):
  """Counts (s, sp, spe) that a right hangs on."""

  counts: tuple[np.ndarray, np.ndarray, np.ndarray]
  names: np.ndarray
  note: str


def load_districts(places: Places) -> Districts:
  """The districts, checked."""
  if places.csv:
    table = _read(places, 1)
    numbers = [_numbers(table, column) for column in places.columns[:2]]
    weights = numbers[1] if len(numbers) > 1 else np.ones(len(numbers[0]))
    found = Districts(numbers[0], weights, _names(table, places), 1.0, "")
  else:
    load = {"title_one": _title_one, "saipe": _saipe, "synthetic": _districts}
    checks.one_of("data.name", places.name, tuple(load))
    found = load[places.name](places.state)
  _problems.check_counts(found.counts, weights=found.weights, names=found.names)
  return found


def load_jurisdictions(places: Places) -> Jurisdictions:
  """The jurisdictions, checked."""
  if places.csv:
    table = _read(places, 3)
    s, sp, spe = (_numbers(table, column) for column in places.columns)
    found = Jurisdictions((s, sp, spe), _names(table, places), "")
  else:
    checks.one_of("data.name", places.name, ("section203", "section203_alaska", "synthetic"))
    found = _jurisdictions() if places.name == "synthetic" else _section203(places.name)
  for counts in found.counts:
    _problems.check_counts(counts, names=found.names)
  return found


def _title_one(state: str) -> Districts:
  found = data.load("title_one", group="state")
  counts, weights = found.examples.x.astype(np.float64)[:, :2].T
  note = "Title I file: enrolled pupils stand in for eligible children."
  return _of_state(counts, weights, found, state, note)


def _saipe(state: str) -> Districts:
  """Poor children; weights are the states' expenditures in the Title I file."""
  found, money = (data.load(name, group="state") for name in ("saipe", "title_one"))
  states = (money.group_names[g] for g in money.examples.group)
  spent = dict(zip(states, money.examples.x[:, 1].astype(np.float64), strict=True))
  weights = np.array([spent[found.group_names[g]] for g in found.examples.group])
  note = (
    "SAIPE 2019: children in poverty, themselves estimates; weights are the states' expenditures "
    "per pupil of 2014-15."
  )
  return _of_state(found.examples.x[:, 2].astype(np.float64), weights, found, state, note)


def _of_state(
  counts: np.ndarray, weights: np.ndarray, found: data.Dataset, state: str, note: str
) -> Districts:
  names = found.row_names
  assert names is not None
  if not state:
    return Districts(counts, weights, names, 1.0, note)
  checks.one_of("data.state", state, found.group_names)
  own = found.examples.group == found.group_names.index(state)
  share = float((weights * counts)[own].sum() / (weights * counts).sum())
  told = f"{note} Shares are of {state} alone, of the state's {share:.1%} of the budget."
  return Districts(counts[own], weights[own], names[own], share, told)


def _districts(state: str) -> Districts:
  checks.require(not state, "data.state: synthetic districts have no state")
  rng, size = np.random.default_rng(0), SYNTHETIC_DISTRICTS
  counts = np.ceil(rng.lognormal(7.0, 1.5, size))
  weights = rng.choice([0.8, 1.0, 1.3], size)
  names = np.array([f"district {i}" for i in range(size)])
  note = f"{size} made-up districts: counts log-normal (7.0, 1.5), three weights."
  return Districts(counts, weights, names, 1.0, note)


def _section203(name: str) -> Jurisdictions:
  found = data.load(name, group="language_group")
  names = found.row_names
  assert names is not None
  x = found.examples.x.astype(np.float64)
  own = np.isfinite(x).all(axis=1)
  note = "Every language in Alaska's counties; citizens count once per language"
  if name == "section203":
    own &= found.examples.group == found.group_names.index("Hispanic")
    note = (
      "Section 203 file, Hispanic: covered places only, so nothing can be "
      "learned here about rights that are granted wrongly"
    )
  s, sp, spe = x[own].T
  return Jurisdictions((s, sp, spe), names[own], f"{note}.")


def _jurisdictions() -> Jurisdictions:
  """Made up, to have all four truth values: the real file has one."""
  rng, size = np.random.default_rng(0), SYNTHETIC_JURISDICTIONS
  s = np.round(10 ** rng.uniform(2.5, 6.5, size))
  sp = np.round(s * 10 ** rng.uniform(-2.5, -0.4, size))
  spe = np.round(sp * 10 ** rng.uniform(-2.5, -0.4, size))
  names = np.array([f"county {i}" for i in range(size)])
  note = (
    f"{size} made-up counties: citizens 10^U(2.5, 6.5), shares of limited English and of little "
    "schooling 10^U(-2.5, -0.4) each."
  )
  return Jurisdictions((s, sp, spe), names, note)


def _read(places: Places, needed: int) -> _tables.Table:
  checks.require(
    len(places.columns) >= needed,
    f"data.columns names {len(places.columns)} columns; {needed} are needed",
  )
  return data.read_table(places.csv)


def _numbers(table: _tables.Table, name: str) -> np.ndarray:
  found = _tables.column(table, name)
  checks.require(_tables.is_number(found), f"column {name!r} holds words; name a column of numbers")
  return found


def _names(table: _tables.Table, places: Places) -> np.ndarray:
  if places.label:
    return _tables.words(_tables.column(table, places.label))
  return np.array([f"row {i}" for i in range(_tables.size(table))])
