"""Personalized disclosure: how few columns decide a case, and who must tell more?

One cell per number of sensitive columns. A repetition is a split, a model trained on its first
part, a random choice of columns, and every procedure on the people of the second part; all
repetitions are one program.
"""

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, checks, data, disclosure, models, training
from jaxfair import experiments as ex
from jaxfair.data import Dataset
from jaxfair.disclosure import (
  _choosers,
  _core_sets,
  _greedy_disclosure,
  _questions,
  _smallest_core_sets,
)
from jaxfair.disclosure._questionnaire import FILE, Questionnaire
from jaxfair.disclosure._questions import Questions
from jaxfair.experiments import EVERYONE, Count, _claims, _measures, _statistics, _study
from jaxfair.types import Examples, Model, Params

PARTS = (0.7, 1 - 0.7)
ENTROPY, PROGRESS = "entropy (paper)", "progress"
IMPORTANCE, RANDOM, OPTIMUM = "importance", "random", "optimum"
Delta = Annotated[float, _fields.Within(0.0, 0.5, open_high=True)]


class Config(ex.Settings):
  """Settings of a comparison of procedures."""

  data: ex.People = ex.People()
  model: Literal["logistic", "mlp"] = "logistic"
  hidden: tuple[Count, ...] = (10, 10)
  # Numbers of sensitive columns, drawn anew in every repetition, or names of such columns.
  columns: ex.Sweep[Annotated[int, _fields.Within(1, 8)]] = (2, 3, 4, 5, 6, 7)
  sensitive: tuple[str, ...] = ()
  # How likely another decision may be when the questions stop.
  deltas: ex.Sweep[Delta] = (0.0, 0.05, 0.1, 0.2)
  people: Count = 1024  # how many of the test part are asked
  draws: Count = 100  # imagined answers; linear models with two classes need none
  # The test for certainty: sound intervals, or the paper's grid of at most this many points.
  pure: Literal["interval", "grid"] = "interval"
  grid_points: Count = 1024
  steps: Count = 500
  batch_size: Count = 256
  learning_rate: ex.Positive = 0.02
  seeds: Count = 100

  def questions(self, people: Dataset) -> tuple[tuple[str, ...], Questions]:
    """The columns that may be asked for, by name and as questions."""
    checks.require(
      len(people.columns) > 0, f"{people.name} has no columns to ask for; use a table of people"
    )
    names = self.sensitive or None
    return disclosure.questions(people.feature_names, people.columns, names)

  def choosers(self, people: Dataset) -> dict[str, Any]:
    """The orders of asking that are compared."""
    # Where the entropy order has a closed form no draws are needed.
    exact = self.model == "logistic" and people.num_classes == 2
    drawn = disclosure.ByEntropy(self.draws, self.draws)
    return {
      ENTROPY: disclosure.ByVariance() if exact else drawn,
      PROGRESS: disclosure.ByProgress(),
      IMPORTANCE: _choosers.ByImportance(),
      RANDOM: _choosers.AtRandom(),
    }

  def fit(self, people: Dataset, train: Examples, *, key: jax.Array) -> tuple[Model, Params]:
    """The model that decides, trained."""
    model = models.network(self.model, people.num_classes, hidden=self.hidden)
    batch, rate = min(self.batch_size, train.size), self.learning_rate
    settings = training.FitConfig(rate, steps=self.steps, batch_size=batch)
    loss = models.cross_entropy
    return model, training.fit(model, loss, train, settings, key=key).params


def _cells(config: Config) -> list[_study.Cell]:
  sizes = (len(config.sensitive),) if config.sensitive else config.columns
  return [{"sensitive": size} for size in sizes]


def _check(config: Config, people: Dataset) -> None:
  names, _ = config.questions(people)
  if not config.sensitive:
    checks.integer("columns", max(config.columns), high=len(names))


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All procedures, all repetitions, for one number of columns."""
  people = context.load(config.data)
  path = context.folder / FILE
  if not path.exists():
    _questionnaire(config, people, key=context.shared_key).save(path)
  size, (_, everything) = int(cell["sensitive"]), config.questions(people)
  grid, interval = _core_sets.GridTest(config.grid_points), disclosure.IntervalTest()
  pure: Any = grid if config.pure == "grid" else interval
  orders: dict[str, Any] = {"deltas": config.deltas, "choosers": config.choosers(people)}

  def measure(parts: tuple[Examples, ...], key: jax.Array) -> Any:
    train, test = parts
    key_fit, key_pick, key_ask, key_best = jax.random.split(key, 4)
    test = test.take(slice(0, config.people))
    model, params = config.fit(people, train, key=key_fit)
    picked = jax.random.permutation(key_pick, everything.size)[:size]
    asked = _questions.with_constants(
      jax.tree.map(lambda leaf: jnp.asarray(leaf)[picked], everything), train.x
    )
    full = models.predict(model, params, test.x)
    learned = _measures.beside_constant(test.y, full, people.num_classes)

    def audited(count: Any, label: Any) -> Any:
      sizes = {"num_questions": size, "num_groups": people.num_groups}
      groups, everyone = disclosure.audit(count, label, full, test.y, test.group, **sizes)
      shares = jnp.mean(count[:, None] == jnp.arange(size + 1), axis=0)
      return groups, everyone._asdict() | learned, shares

    law = disclosure.fit_gaussian(train.x)
    asking = _greedy_disclosure.disclose_each(
      model, params, law, asked, test.x, **orders, pure=pure, key=key_ask
    )
    found = {name: jax.vmap(audited)(own.count, own.label) for name, own in asking.items()}
    best = _smallest_core_sets.smallest_core_sets(params, asked, test.x, pure=pure, key=key_best)
    found[OPTIMUM] = jax.tree.map(lambda v: v[None], audited(best, full))
    return found

  measured = ex.repeat(
    measure,
    people,
    seeds=config.seeds,
    key=context.key,
    split_key=context.shared_key,
    fractions=PARTS,
    scale="minmax",
  )
  classes = "two" if people.num_classes == 2 else "many"
  settings = {"data": people.name, "model": config.model, "classes": classes, **cell}
  return _table(config, settings, measured, people)


def _questionnaire(config: Config, people: Dataset, *, key: jax.Array) -> Questionnaire:
  """The model of one split with its law: what `jaxfair ask` needs."""
  key_split, key_fit = jax.random.split(key)
  prepared = data.prepare(people, PARTS, key=key_split, scale="minmax")
  _, params = config.fit(people, prepared.train, key=key_fit)
  return Questionnaire.of(prepared, params, config.questions(people)[0])


def _table(config: Config, settings: _study.Cell, measured: Any, people: Dataset) -> ex.Table:
  seeds: dict[str, Any] = {"seed": range(config.seeds)}
  tables = []
  for name, found in measured.items():
    for i, delta in enumerate((0.0,) if name == OPTIMUM else config.deltas):
      setting = {**settings, "method": name, "delta": delta}
      groups, everyone, shares = jax.tree.map(lambda v, i=i: v[:, i], found)
      for names, own in ((people.group_names, groups._asdict()), ([EVERYONE], everyone)):
        axes = seeds | {"group": names}
        tables.append(ex.Table.from_arrays(setting, axes, own))
      setting |= {"group": EVERYONE}
      axes = seeds | {"revealed": range(shares.shape[1])}
      values = {"people": shares, "people_up_to": np.cumsum(shares, axis=1)}
      tables.append(ex.Table.from_arrays(setting, axes, values))
  return ex.Table.concat(tables)


def _notes(config: Config) -> list[str]:
  tests = {
    "grid": f"Certainty is tested on a grid of at most {config.grid_points} points, and on as "
    "many random ones where it is larger. For a network this is not sound: a label called "
    "certain may differ between points.",
    "interval": "Certainty is tested with intervals: exact for linear models, sound for "
    "networks. A label called certain is always the model's.",
  }
  return [
    tests[config.pure],
    "Means and covariances of the training part are taken to be public. A column that makes the "
    "groups is not a feature, and is never asked for.",
    f"`jaxfair ask` on this run's directory asks you; {FILE} holds the model.",
  ]


ALL, GROUPS = {"group": EVERYONE}, {"group": ex.but(EVERYONE)}
LINEAR, NETWORK = ({"model": "logistic", "classes": "two"}, {"model": "mlp", "classes": "two"})
MANY = {"classes": "many"}


def _of(method: str, delta: float) -> dict[str, Any]:
  return {"method": method, "delta": delta, **ALL}


def _spared(delta: float, **where: Any) -> _claims.Statistic:
  """Share of the columns that the paper's order does not ask for."""
  return ex.mean("spared").at(**_of(ENTROPY, delta), **where)


def _keeps(most: float, **where: Any) -> _claims.Check:
  """The paper's order loses at most this much of the accuracy."""
  return (ex.mean("accuracy_kept") > -most).at(**PAPER, **where)


def _reveal_at_most(columns: int, share: float) -> _claims.Check:
  """More than `share` of the people reveal at most `columns` columns of the largest set."""
  return (ex.mean("people_up_to") > share).at(revealed=columns, sensitive=max, **ALL)


def _above_optimum(method: str) -> _claims.Statistic:
  return ex.difference("leakage", _of(method, 0.0), _of(OPTIMUM, 0.0), relative=True)


def _groups_differ(delta: float) -> _claims.Check:
  return (ex.spread("share", "group") > 0).at(method=ENTROPY, delta=delta, **GROUPS)


def _more(first: str, second: str, delta: float) -> _claims.Check:
  """One order asks more than another."""
  return ex.difference("leakage", _of(first, delta), _of(second, delta)) > 0


LOWEST = _statistics.exact(
  "lowest agreement with the full model at delta=0", lambda table: np.nanmin(table["agreement"])
)
PAPER = {"method": ENTROPY, **ALL}

STUDY = ex.Study(
  name="disclosure",
  summary="How few columns decide a case, and who must disclose more",
  config=Config,
  cells=_cells,
  run=run,
  keeps_files=True,
  precheck=_check,
  derive=lambda table: table.plus(spared=1 - table["share"], accuracy_kept=-table["accuracy_lost"]),
  notes=_notes,
  claims={
    "two suffice: On Credit with certainty and the smallest sets most people reveal at most 2 "
    "columns [Fig. 7.1]": _reveal_at_most(2, 0.5).at(method=OPTIMUM, data="credit"),
    "one suffices: On Bank with delta above 0 more than 90% of the people (our reading of the vast "
    "majority) reveal at most one column, whatever delta [Fig. 7.2]": _reveal_at_most(1, 0.9)
    .in_each("delta")
    .at(method=ENTROPY, delta=ex.but(0.0), data="bank", **LINEAR),
    "certainty is free: With delta = 0 and a linear model nobody's label changes [Fig. 7.3]": (
      LOWEST >= 1.0
    ).at(delta=0.0, model="logistic", **ALL),
    "fewer: The larger delta, the fewer columns are revealed [Fig. 7.3, fewer]": (
      ex.trend("leakage", "delta") < 0
    ).at(**PAPER),
    "price: The larger delta, the lower the accuracy [Fig. 7.3, fewer]": (
      ex.trend("accuracy", "delta") < 0
    ).at(**PAPER),
    "network, certain: With delta = 0 a network loses at most 0.02 of accuracy (our reading of "
    "small) [Fig. 7.4]": _keeps(0.02, delta=0.0, **NETWORK),
    "network, half: With delta = 0 and a network people reveal less than half of the columns "
    "[Fig. 7.4, half]": _spared(0.0, **NETWORK) > 0.5,
    "network, few: With delta = 0.05 and a network people reveal at most 5% of the columns "
    "[Fig. 7.4, few]": _spared(0.05, **NETWORK) >= 0.95,
    "network, accuracy: With delta = 0.05 a network loses at most 0.005 of accuracy (the thesis "
    "prints 0.005%) [Fig. 7.4, few]": _keeps(0.005, delta=0.05, **NETWORK),
    "half: With delta = 0 and a linear model people reveal at most half of the columns, whatever "
    "|S| [Fig. 7.5]": (_spared(0.0, **LINEAR) >= 0.5).in_each("sensitive"),
    "few: With delta = 0.1 and a linear model people reveal at most 5% of the columns for some |S| "
    "[Fig. 7.5, accuracy]": (_spared(0.1, **LINEAR) >= 0.95).in_some("sensitive"),
    "accuracy: With delta = 0.1 a linear model loses at most 0.002 of accuracy (the thesis prints "
    "0.002%) [Fig. 7.5, accuracy]": _keeps(0.002, delta=0.1, **LINEAR),
    "network, accuracy kept: A network loses at most 0.02 of accuracy, whatever delta "
    "[Fig. 7.6]": _keeps(0.02, **NETWORK).in_each("delta"),
    "many classes: With three or four classes people reveal less than all columns, whatever delta "
    "[Fig. 7.7; Fig. 7.8]": (ex.mean("spared") > 0).at(**PAPER, **MANY).in_each("delta"),
    "many classes, accuracy: With three or four classes and delta = 0 at most 0.02 of accuracy is "
    "lost (our reading of comparable) [Fig. 7.7; Fig. 7.8]": _keeps(0.02, delta=0.0, **MANY),
    "many classes, half: With three or four classes and delta = 0 people reveal less than "
    "half": _spared(0.0, **MANY) > 0.5,
    "15% is enough: With delta = 0.1 people reveal less than 15% of the columns": _spared(0.1)
    > 1 - 0.15,
    "entropy is near the optimum: With delta = 0 the paper's order asks at most 15% more than the "
    "optimum": _above_optimum(ENTROPY) <= 0.15,
    "progress is near the optimum: With delta = 0 the order by progress asks at most 15% more than "
    "the optimum": _above_optimum(PROGRESS) <= 0.15,
    "progress asks less: With delta = 0 the order by progress asks less than the paper's": _more(
      ENTROPY, PROGRESS, 0.0
    ),
    "one order would do: With delta = 0.1 one order by importance asks more than the "
    "paper's": _more(IMPORTANCE, ENTROPY, 0.1),
    "who discloses, certain: With delta = 0 one group has to disclose more than "
    "another": _groups_differ(0.0),
    "who discloses, probable: With delta = 0.1 one group has to disclose more than "
    "another": _groups_differ(0.1),
  },
  figures=(
    ex.lines(
      "leakage: How many columns people reveal",
      "leakage ~ sensitive, delta",
      "The paper's order, mean over repetitions.",
      where=PAPER,
    ),
    ex.lines(
      "accuracy: Accuracy of the decisions",
      "accuracy ~ sensitive, delta",
      "With delta = 0 it is the full model's.",
      where=PAPER,
    ),
    ex.lines(
      "orders: Orders of asking, when only certainty counts",
      "leakage ~ sensitive, method",
      "The optimum sees every answer first: nobody can ask that well.",
      where={"delta": 0.0, **ALL},
    ),
    ex.bars(
      "sizes: How many people reveal how much", "people ~ revealed, delta | sensitive", where=PAPER
    ),
    ex.bars(
      "groups: Who has to disclose more",
      "share ~ group, delta | sensitive",
      where={"method": ENTROPY},
    ),
  ),
  titles={
    "sensitive": "sensitive columns |S|",
    **dict.fromkeys(("leakage", "revealed"), "columns revealed"),
    "people": "share of people",
    "share": "share of columns revealed",
  },
  summaries=(
    ex.summary(
      "Everyone",
      "leakage, share, accuracy, accuracy_lost, agreement ~ sensitive, method, delta",
      ALL,
    ),
    ex.summary(
      "By group, the paper's order",
      "leakage, nothing, accuracy, accuracy_lost, agreement ~ sensitive, delta, group",
      {"method": ENTROPY},
    ),
  ),
)
