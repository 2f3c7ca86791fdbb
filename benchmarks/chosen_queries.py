"""Which public people to ask teachers about: ways to choose queries, at one budget for any votes.

Every way spends the same rho in zCDP on votes of the same teachers (those of the method `pate`),
and its answers train the same student:

- `first`: the first public people, labeled by GNMax;
- `uncertain`: in four rounds, the people about whom a student of the answers so far is least sure;
- `uncertain and apart`: of three times as many of those, in each round, the people who are farthest
  from one another and from all who were asked (farthest first);
- `confident`: Confident-GNMax on the first people;
- `interactive`: Interactive GNMax (Papernot et al. 2018, Algorithm 2). Half of the budget labels
  the first people. Then, in two rounds, other people are tested: if max_c n_c - k p_c, plus noise,
  reaches a threshold, where p is the student's prediction, the teachers label the query by GNMax;
  if not, the student's own label is kept where the student is sure enough.

Privacy:
  One vote moves max_c n_c - k p_c by at most one, so a test costs 1 / (2 sigma_test^2) in zCDP, and
  a label 1 / sigma^2 on top. Tests and labels stop before their sum could exceed rho (a privacy
  filter, as in `pate.Answerer`); predictions are functions of labels that were released.

  With two classes and p at one class, the test at threshold k / 2 is GNMax itself: the other
  class's count n exceeds k / 2 with noise sigma_test exactly as often as GNMax with
  sigma = sqrt(2) sigma_test names it, Phi((n - k / 2) / sigma_test), and both cost
  1 / (2 sigma_test^2). The label that follows pays for the same vote a second time.

Settings of `confident` and `interactive` are chosen on two draws of Adult that are not reported, at
each epsilon, for all sets.

  python benchmarks/chosen_queries.py [--only adult_votes] [--folder runs/chosen_queries] [--docs]

Results are kept as JSON in a folder, so that a run may be cut; `--docs` writes the table of
docs/pate.md.
"""

import argparse
import dataclasses
import itertools
import json
import pathlib
import tomllib
from typing import Any, NamedTuple

import accuracy
import jax
import jax.numpy as jnp
import numpy as np
import pages

from jaxfair import _schema as schema
from jaxfair import accounting, data, methods, models, pate
from jaxfair.methods._method import Plan
from jaxfair.types import Examples

ROOT = accuracy.ROOT
PAGE = ROOT / "docs" / "pate.md"
CHOSEN_ON, CHOICE = "adult_votes", (300, 301)  # the set and the draws that settings are chosen on
DRAWS = (310, 311, 312, 313)
SETS = {"adult_votes": (1.0, 2.0), "utkface": (2.0,), "fashion": (2.0,)}
# What differs from the rows of configs/accuracy: sizes of the public, private and test part,
# smaller features of faces, and 14 x 14 averaged pixels of clothes in place of features.
CHANGES: dict[str, dict[str, Any]] = {
  "adult_votes": {},
  "utkface": {"parts": (4000, 16_700, 3000), "features": "efficientnet_lite0"},
  "fashion": {"parts": (5000, 45_000, 10_000), "features": None, "scale": "standard"},
}
TITLES = {
  "adult_votes": "Adult",
  "utkface": "UTKFace gender",
  "fashion": "Fashion-MNIST, 10 classes",
}
DELTA = 1e-5
ROUNDS = 4
NOBODY = pate.NO_ANSWER
HEAD = [
  "| set | epsilon | draws | queries | accuracy | balanced accuracy "
  "| accuracy over `first`, paired (± its standard error) | setting |",
  "|---|---|---|---|---|---|---|---|",
]


class Asked(NamedTuple):
  """A draw of the people with the votes of its teachers, to be asked about."""

  own: methods.Population
  test: Examples
  plan: Plan
  votes: np.ndarray
  key: jax.Array

  @property
  def sigma(self) -> float:
    """The noise of the method's labels."""
    return float(self.plan.config.rule.sigma)

  @property
  def rho(self) -> float:
    """The budget in zCDP."""
    return float(self.plan.config.queries / self.sigma**2)

  @property
  def x(self) -> np.ndarray:
    """The public people's features, as the student sees them."""
    public = self.plan.bounded(self.own).public
    assert public is not None
    return np.asarray(public.x)

  def noisy(self, rows: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """[rows] GNMax labels."""
    votes = self.votes[rows]
    return np.asarray((votes + rng.normal(0, sigma, votes.shape)).argmax(axis=1), np.int32)

  def students(self, labels: np.ndarray) -> Any:
    """Students of labels [many, public], side by side."""
    method = methods.get("pate")
    return method.students([self.plan] * len(labels), self.own, labels, key=self.key)

  def chances(self, labels: np.ndarray) -> np.ndarray:
    """[many, public, C] what students of these labels predict."""
    apply = jax.vmap(self.plan.model.apply, in_axes=(0, None))
    return np.asarray(jax.nn.softmax(apply(self.students(labels), jnp.asarray(self.x))))

  def score(self, labels: np.ndarray) -> list[list[float]]:
    """Accuracy and balanced accuracy of each student on the test part, in percent."""
    seen = self.plan.bounded(dataclasses.replace(self.own, private=self.test)).private
    params = self.students(labels)
    told = []
    for member in range(len(labels)):
      one = jax.tree.map(lambda leaf, at=member: leaf[at], params)
      right = np.asarray(models.predict(self.plan.model, one, seen.x)) == self.test.y
      classes = [right[self.test.y == c].mean() for c in np.unique(self.test.y)]
      told.append([100 * float(right.mean()), 100 * float(np.mean(classes))])
    return told


class Confident(NamedTuple):
  """Settings of `confident`: T over k, test noise over label noise, label noise over `first`'s."""

  threshold: float
  ratio: float
  noise: float


class Interactive(NamedTuple):
  """Settings of `interactive`.

  Attributes:
    threshold: T over k.
    ratio: noise of the test over that of a label.
    sure: the student's own label is kept where its probability is above this; 1 keeps none.
    unsure_first: whether those are tested first about whom the student is least sure.
  """

  threshold: float
  ratio: float
  sure: float
  unsure_first: bool


CONFIDENT = [Confident(*one) for one in itertools.product((0.6, 0.7, 0.8), (2.0, 4.0), (0.7, 1.0))]
INTERACTIVE = [
  Interactive(*one)
  for one in itertools.product((0.5, 0.7), (2**-0.5, 1.5, 3.0), (0.8, 1.0), (False, True))
]


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--only", choices=tuple(SETS))
  parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "runs" / "chosen_queries")
  parser.add_argument("--docs", action="store_true", help="write the table of docs/pate.md")
  chosen = parser.parse_args()
  chosen.folder.mkdir(parents=True, exist_ok=True)
  if not chosen.docs:
    for name in [chosen.only] if chosen.only else [*SETS]:
      run(name, chosen.folder)
  told = [line for name in SETS for line in lines(name, chosen.folder)]
  print("\n".join([*HEAD, *told]))
  if chosen.docs:
    pages.write_table(PAGE, "chosen queries table", HEAD + told)


def run(name: str, folder: pathlib.Path) -> None:
  """Adds what is missing in the set's file: accuracies by epsilon, draw, way and setting."""
  path = folder / f"{name}.json"
  found, people = read(name, folder), None
  for epsilon, draw in itertools.product(SETS[name], (*CHOICE, *DRAWS)):
    told = f"{epsilon:g} {draw}"
    if told in found or (draw in CHOICE and name != CHOSEN_ON):
      continue
    sure, doubting = (CONFIDENT, INTERACTIVE) if draw in CHOICE else settings_of(epsilon, folder)
    people = people or load(name)
    asked = prepare(name, people, epsilon, draw, folder)
    found[told] = {
      "first": asked.score(first(asked, draw)),
      "uncertain": asked.score(in_rounds(asked, draw, apart=False)),
      "uncertain and apart": asked.score(in_rounds(asked, draw, apart=True)),
      "confident": asked.score(np.stack([confident(asked, one, draw) for one in sure])),
      "interactive": asked.score(interactive(asked, doubting, draw)),
    }
    path.write_text(json.dumps(found))
    best = {way: np.round(np.max(one, axis=0), 2).tolist() for way, one in found[told].items()}
    print(name, told, best, flush=True)


def read(name: str, folder: pathlib.Path) -> dict[str, Any]:
  """What is known about a set."""
  path = folder / f"{name}.json"
  return json.loads(path.read_text()) if path.is_file() else {}


def settings_of(epsilon: float, folder: pathlib.Path) -> tuple[list[Confident], list[Interactive]]:
  """The most accurate setting of each kind on the draws for the choice."""
  found = read(CHOSEN_ON, folder)

  def best(way: str) -> int:
    tried = np.mean([found[f"{epsilon:g} {draw}"][way] for draw in CHOICE], axis=0)
    return int(tried[:, 0].argmax())

  return [CONFIDENT[best("confident")]], [INTERACTIVE[best("interactive")]]


def row_of(name: str) -> accuracy.Row:
  """How the people are read, split and scaled."""
  table = tomllib.loads(accuracy.ROWS.read_text())
  row = schema.build(accuracy.Row, table[name], where=f"{name}.")
  return dataclasses.replace(row, **CHANGES[name])


def load(name: str) -> data.Dataset:
  """The people, with features or small images."""
  people = accuracy.load(row_of(name))
  x = people.examples.x
  if x.shape[1:] != (28, 28, 1):
    return people
  small = np.asarray(x).reshape(len(x), 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(x), -1)
  return dataclasses.replace(people, examples=people.examples._replace(x=small))


def prepare(
  name: str, people: data.Dataset, epsilon: float, draw: int, folder: pathlib.Path
) -> Asked:
  """Teachers of a draw and their votes on all public people, kept beside the results."""
  public, private, test = accuracy.split(row_of(name), people, draw)
  own = methods.Population(private, people.class_names, people.group_names, public=public)
  method, key = methods.get("pate"), jax.random.fold_in(jax.random.key(2026), draw)
  budget = accounting.Budget(epsilon, DELTA)
  plan = method.plan(method.settings(choose="uncertain"), own.sizes, budget)
  path = folder / f"{name}_{epsilon:g}_{draw}.npy"
  if not path.is_file():
    np.save(path, method.votes(plan, own, key=key))
  return Asked(own, test, plan, np.load(path), key)


def first(asked: Asked, draw: int) -> np.ndarray:
  """[1, public] labels of the first people."""
  rows = np.arange(asked.plan.config.queries)
  labels = np.full((1, len(asked.votes)), NOBODY, np.int32)
  labels[0, rows] = asked.noisy(rows, asked.sigma, np.random.default_rng(draw))
  return labels


def in_rounds(asked: Asked, draw: int, *, apart: bool) -> np.ndarray:
  """[1, public] labels of those about whom a student is least sure, round by round."""
  rng = np.random.default_rng(draw)
  labels = np.full((1, len(asked.votes)), NOBODY, np.int32)
  for number, part in enumerate(np.array_split(np.arange(asked.plan.config.queries), ROUNDS)):
    rows = part
    if number:
      left = np.flatnonzero(labels[0] == NOBODY)
      many = 3 * len(part) if apart else len(part)
      rows = left[np.argsort(doubts(asked.chances(labels)[0])[left], kind="stable")][:many]
      if apart:
        rows = farthest(asked.x, np.flatnonzero(labels[0] != NOBODY), rows, len(part))
    labels[0, rows] = asked.noisy(rows, asked.sigma, rng)
  return labels


def doubts(chances: np.ndarray) -> np.ndarray:
  """How far the two most likely classes are apart; small where a student is unsure."""
  two = np.sort(chances, axis=-1)[..., -2:]
  return np.asarray(two[..., 1] - two[..., 0])


def farthest(x: np.ndarray, known: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
  """`count` of the rows, one by one the farthest from the known and from those taken."""
  squares = (x**2).sum(axis=1)

  def near(one: np.ndarray) -> np.ndarray:
    return np.asarray(squares[rows][:, None] + squares[one] - 2 * x[rows] @ x[one].T)

  distance = near(known).min(axis=1)
  taken = []
  for _ in range(count):
    taken.append(int(distance.argmax()))
    distance = np.minimum(distance, near(rows[taken[-1:]])[:, 0])
    distance[taken[-1]] = -np.inf
  return rows[taken]


def confident(asked: Asked, setting: Confident, draw: int) -> np.ndarray:
  """[public] labels of Confident-GNMax on people in their order, until the budget is spent."""
  rng = np.random.default_rng(draw)
  sigma, teachers = setting.noise * asked.sigma, int(asked.votes[0].sum())
  test = setting.ratio * sigma
  noisy = asked.votes.max(axis=1) + rng.normal(0, test, len(asked.votes))
  passed = noisy >= setting.threshold * teachers
  paid = affordable(passed, asked.rho, sigma, test)
  labels = np.full(len(passed), NOBODY, np.int32)
  rows = np.flatnonzero(passed & paid)
  labels[rows] = asked.noisy(rows, sigma, rng)
  return labels


def affordable(passed: np.ndarray, rho: float, sigma: float, test: float) -> np.ndarray:
  """[n] whether a query is tested: tests and labels until the next ones could exceed rho."""
  both = 0.5 / test**2 + 1 / sigma**2
  before = np.cumsum(np.where(passed, both, 0.5 / test**2))
  before = np.concatenate([[0.0], before[:-1]])
  return np.asarray(before + both <= rho * (1 + 1e-9))


def interactive(asked: Asked, settings: list[Interactive], draw: int) -> np.ndarray:
  """[settings, public] labels of Interactive GNMax."""
  rng = np.random.default_rng(draw)
  teachers, sigma, size = int(asked.votes[0].sum()), asked.sigma, len(asked.votes)
  begun = np.arange(asked.plan.config.queries // 2)
  labels = np.full((len(settings), size), NOBODY, np.int32)
  labels[:, begun] = asked.noisy(begun, sigma, rng)
  left = np.full(len(settings), asked.rho / 2)
  tested = np.zeros(labels.shape, bool)
  tested[:, begun] = True
  for number in range(2):
    # Before the first test all students are the same.
    chances = asked.chances(labels if number else labels[:1])
    for at, one in enumerate(settings):
      own = chances[at if number else 0]
      rows = np.flatnonzero(~tested[at])
      rows = rows[np.argsort(doubts(own)[rows], kind="stable")] if one.unsure_first else rows
      test = one.ratio * sigma
      against = (asked.votes[rows] - teachers * own[rows]).max(axis=1)
      passed = against + rng.normal(0, test, len(rows)) >= one.threshold * teachers
      paid = affordable(passed, left[at] / (2 - number), sigma, test)
      left[at] -= float((paid * (0.5 / test**2 + passed / sigma**2)).sum())
      labels[at, rows[paid & passed]] = asked.noisy(rows[paid & passed], sigma, rng)
      sure = rows[paid & ~passed & (own[rows].max(axis=1) > one.sure)]
      labels[at, sure] = own[sure].argmax(axis=1)
      tested[at, rows[paid]] = True
  return labels


def lines(name: str, folder: pathlib.Path) -> list[str]:
  """The set's lines of the table."""
  found, told = read(name, folder), []
  for epsilon in SETS[name]:
    draws = [draw for draw in DRAWS if f"{epsilon:g} {draw}" in found]
    if len(draws) < 2:
      continue
    sure, doubting = settings_of(epsilon, folder)
    base = np.array([found[f"{epsilon:g} {draw}"]["first"][0] for draw in draws])
    settings = {"confident": sure[0], "interactive": doubting[0]}
    for way in ("first", "uncertain", "uncertain and apart", *settings):
      each = np.array([found[f"{epsilon:g} {draw}"][way][0] for draw in draws])
      gain = each[:, 0] - base[:, 0]
      error = gain.std(ddof=1) / np.sqrt(len(gain))
      over = "" if way == "first" else f"{gain.mean():+.2f} ± {error:.2f}"
      mean = each.mean(axis=0)
      told.append(
        f"| {TITLES[name]} | {epsilon:g} | {len(draws)} | {way} | {mean[0]:.1f} | {mean[1]:.1f} "
        f"| {over} | {described(settings.get(way))} |"
      )
  return told


def described(setting: Any) -> str:
  """The setting in words."""
  if setting is None:
    return ""
  shown = [f"T = {setting.threshold:g} k", f"test noise {setting.ratio:.2g} of a label's"]
  if isinstance(setting, Confident):
    return ", ".join([*shown, f"label noise {setting.noise:g} of `first`'s"])
  kept = f"own label above {setting.sure:g}" if setting.sure < 1 else "own labels dropped"
  order = "unsure first" if setting.unsure_first else "in order"
  return ", ".join([*shown, kept, order])


if __name__ == "__main__":
  main()
