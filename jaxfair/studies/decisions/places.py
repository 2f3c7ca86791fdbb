"""Places for the decision studies: counts, names, and where they come from."""

from typing import NamedTuple

import numpy as np

from jaxfair import checks, data
from jaxfair import experiments as ex
from jaxfair.decisions import _problems

SYNTHETIC_DISTRICTS = 900
SYNTHETIC_JURISDICTIONS = 2774  # the thesis's number of counties
COVERED, ALASKA = "section203", "section203_alaska"
REAL, MADE_UP = "section203_and_alaska", "made_up"
OWNER_ONLY = "Computed from the true counts: for the agency's own eyes, not for release."


class Places(ex.Settings):
  """The counts to use; `jaxfair decide` takes a file of your own."""

  name: str  # the named set
  state: str = ""  # keeps one state's places of it


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
  load = {"title_one": _title_one, "saipe": _saipe, "synthetic": _districts}
  checks.one_of("data.name", places.name, tuple(load))
  found = load[places.name](places.state)
  _problems.check_counts(found.counts, weights=found.weights, names=found.names)
  return found


def load_jurisdictions(name: str) -> Jurisdictions:
  """The jurisdictions, checked."""
  found = _made_up() if name == MADE_UP else _section203(name)
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
  if name == REAL:  # covered places and others: all four truth values
    covered, alaska = map(_section203, (COVERED, ALASKA))
    columns = zip(covered.counts, alaska.counts, strict=True)
    s, sp, spe = (np.concatenate(both) for both in columns)
    both = np.concatenate([covered.names, alaska.names])
    return Jurisdictions((s, sp, spe), both, f"{covered.note} {alaska.note}")
  found = data.load(name, group="language_group")
  names = found.row_names
  assert names is not None
  x = found.examples.x.astype(np.float64)
  own = np.isfinite(x).all(axis=1)
  note = "Every language in Alaska's counties; citizens count once per language"
  if name == COVERED:
    own &= found.examples.group == found.group_names.index("Hispanic")
    note = (
      "Section 203 file, Hispanic: covered places only, so nothing can be "
      "learned here about rights that are granted wrongly"
    )
  s, sp, spe = x[own].T
  return Jurisdictions((s, sp, spe), names[own], f"{note}.")


def _made_up() -> Jurisdictions:
  """Counties of no data, as many as the thesis has; all four truth values."""
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
