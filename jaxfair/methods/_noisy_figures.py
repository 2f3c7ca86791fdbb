"""Figures of test people that may be published: counts with exact noise, paid for.

folder/
  published_figures/   may be published: figures.json, figures.md, figures.html
  work/figures/        stays: what was charged, before any noise was drawn
"""

import dataclasses
import json
import math
import pathlib

import numpy as np

from jaxfair import _whole_files, accounting
from jaxfair.accounting import Relation, _zcdp
from jaxfair.methods import _documents
from jaxfair.methods._documents import Grid, Section
from jaxfair.methods._method import PERSON
from jaxfair.methods._released import Released
from jaxfair.pate._answer_noise import NoiseSecret, erase_secret
from jaxfair.privacy import exact
from jaxfair.types import Examples

NAME, PLACE = "figures", "published_figures"
NORMAL = 1.96  # 95% intervals


@dataclasses.dataclass(frozen=True)
class FiguresPlan:
  """A table of counts, priced.

  Attributes:
    sigma: of the discrete Gaussian noise on each count.
    delta: delta at which the price is stated.
    relation: which data sets count as neighbors.
  """

  sigma: float
  delta: float
  relation: Relation

  @property
  def event(self) -> accounting.Event:
    """What the counts are charged as."""
    return accounting.ZCdp(
      _zcdp.discrete_gaussian_rho(sigma=self.sigma, sensitivity=moves(self.relation))
    )

  @property
  def guarantee(self) -> accounting.PrivacyGuarantee:
    """The guarantee of the noisy counts."""
    return accounting.composed_guarantee([self.event], delta=self.delta, relation=self.relation)


def moves(relation: Relation) -> float:
  """How far neighbors move the table in L2: one person is in one cell."""
  return math.sqrt(2) if relation.substitutes else 1.0


def plan_figures(*, epsilon: float, delta: float, relation: Relation) -> FiguresPlan:
  """Calibrates the noise on the counts of test people.

  Privacy:
    Every test person is counted once, in the cell of group, class and predicted class; the model
    is released already, so predictions reveal nothing more. Adding or removing a person moves one
    count by 1. Replacing one, or changing a group, takes a person out of one cell and puts one
    into another: sqrt(2) in L2. Discrete Gaussian noise of parameter sigma is then
    (L2 / sigma)^2 / 2-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4). Shares and intervals
    are post-processing.
  """
  sigma = accounting.discrete_gaussian_sigma(
    epsilon=epsilon, delta=delta, sensitivity=moves(relation)
  )
  return FiguresPlan(math.ceil(4 * sigma) / 4, delta, relation)  # short numbers draw faster


def buy_figures(
  plan: FiguresPlan,
  released: Released,
  test: Examples,
  *,
  folder: pathlib.Path,
  ledger: accounting.DatasetLedger | None,
  source: exact.BitSource | None = None,
) -> pathlib.Path:
  """Writes `folder / "published_figures"`, or finds what was bought before; returns the page.

  Args:
    plan: the price.
    released: the model.
    test: people it was not trained on, with features as they were recorded.
    folder: folder of the release.
    ledger: of the data set.
    source: source of random bits; the operating system by default.

  Privacy:
    Charged before noise is drawn, and drawn once for one charge: noise follows from a secret of
    the folder and from the counts, and the charge names both by a keyed digest. A run that was
    stopped, or a backup, draws the same figures again; other counts are charged for themselves.
    The secret is erased when the figures are there, so figures that were removed are another
    purchase. They appear whole or not at all.
  """
  place = folder / PLACE  # a run directory's `figures` are drawn without noise
  page = place / f"{NAME}.html"
  work = folder / "work" / NAME
  work.mkdir(parents=True, exist_ok=True)
  with _ledger(work / "ledger.jsonl", plan, released.data_name) as own:  # one process at a time
    if not place.exists():
      secret = NoiseSecret.of_folder(work, begin=True)
      assert secret is not None
      table = _counts(released, test)
      drawn = secret.draw(NAME, table)
      entry = f"{drawn.tag}: figures of test people"
      own.charge(plan.event, id=entry)
      if ledger is not None:
        ledger.charge(plan.event, id=entry, relation=plan.relation)
      counts = exact.discrete_gaussian(table, sigma=plan.sigma, source=source or drawn.source)
      _write(plan, released, counts, place)
    erase_secret(work)
  return page


def _write(plan: FiguresPlan, released: Released, counts: np.ndarray, place: pathlib.Path) -> None:
  """The folder of noisy counts."""
  title = f"Published figures of {released.method} on {released.data_name}"
  sections = _sections(plan, released, counts)
  record = {
    "title": title,
    "guarantee": str(plan.guarantee),
    "sigma": plan.sigma,
    "groups": list(released.group_names),
    "classes": list(released.class_names),
    "counts": counts.tolist(),  # group, class, predicted class
  }
  files = {
    "json": json.dumps(record, indent=2),
    "md": _documents.markdown(title, (), sections),
    "html": _documents.page(title, (), sections),
  }
  with _whole_files.new_folder(place) as made:
    for suffix, text in files.items():
      (made / f"{NAME}.{suffix}").write_text(text, encoding="utf-8")


def _counts(released: Released, test: Examples) -> np.ndarray:
  """[G, C, C] test people by group, class and predicted class; not for release."""
  groups, classes = len(released.group_names), len(released.class_names)
  table = np.zeros((groups, classes, classes), np.int64)
  np.add.at(table, (np.asarray(test.group), np.asarray(test.y), released.predict(test.x)), 1)
  return table


def _ledger(path: pathlib.Path, plan: FiguresPlan, name: str) -> accounting.Ledger:
  if path.exists():
    return accounting.Ledger.open(path)
  return accounting.Ledger.create(path, data=name, unit=PERSON, relation=plan.relation)


def _sections(plan: FiguresPlan, released: Released, counts: np.ndarray) -> list[Section]:
  table = np.concatenate([counts, counts.sum(axis=0, keepdims=True)])
  many = np.array([1] * len(counts) + [len(counts)])  # tables that were added up
  rows = []
  for name, own, added in zip((*released.group_names, "everyone"), table, many, strict=True):
    variance = added * plan.sigma**2
    right = share(np.trace(own), own.sum(), len(own), variance)
    chosen = [share(own[:, k].sum(), own.sum(), len(own), variance) for k in range(len(own))]
    rows.append((name, f"{max(0, int(own.sum())):,}", right, *chosen))
  # Of everyone, who came last in the loop: what a model that ignores the people would reach.
  most = int(own.sum(axis=1).argmax())
  constant = share(own[most].sum(), own.sum(), len(own), variance)
  heads = ("group", "people", "accuracy", *(f"share of {c}" for c in released.class_names))
  return [
    Section(
      "Accuracy and predictions by group",
      (
        Grid(heads, tuple(rows)),
        f"To compare with: the share of everyone for whom a model that always says "
        f"{released.class_names[most]} is right: {constant}.",
      ),
    ),
    Section(
      "How to read them",
      (
        f"These figures may be published. They cost {plan.guarantee} for test people, in addition "
        "to what the model costs.",
        f"Every count of test people has random noise with a standard deviation of "
        f"{plan.sigma:g}. Brackets are 95% intervals that include this noise and chance in the "
        "choice of test people.",
      ),
    ),
  ]


def share(part: float, whole: float, cells: int, variance: float) -> str:
  """A share of noisy counts with its 95% interval, or why there is none.

  p = a / n with a of `cells` noisy counts and n of cells^2:
  var(p) = p (1 - p) / n + variance (cells (1 - p)^2 + (cells^2 - cells) p^2) / n^2
  """
  noise = math.sqrt(cells**2 * variance)
  if whole < 5 * noise or whole < 1:
    return "too few people for the noise"
  p = min(1.0, max(0.0, part / whole))
  spread = p * (1 - p) / whole
  spread += variance * (cells * (1 - p) ** 2 + (cells**2 - cells) * p**2) / whole**2
  off = NORMAL * math.sqrt(spread)
  return f"{p:.3f} [{max(0.0, p - off):.3f}, {min(1.0, p + off):.3f}]"
