"""Personalised release: how little must a person tell, and who tells more?

One cell per number of sensitive columns. A repetition is a split, a model
trained on its first part, a random choice of columns, and every procedure on
the people of the second part; all repetitions are one program.
"""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp

from jaxfair import checks, data, models, release, training
from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.people import People, load_people
from jaxfair.experiments.repeats import repeat
from jaxfair.experiments.table import Table
from jaxfair.release.questionnaire import FILE, Questionnaire
from jaxfair.studies import protocol
from jaxfair.studies.release_claims import (
  CLAIMS,
  ENTROPY,
  FIGURES,
  IMPORTANCE,
  OPTIMUM,
  PROGRESS,
  RANDOM,
  SUMMARIES,
)
from jaxfair.types import Examples, Model, Params

TRAINING_SHARE = 0.7


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of a comparison of procedures.

  `columns` are numbers of sensitive columns, drawn anew in every repetition;
  `sensitive` names them instead. `people` is how many of the test part are
  asked. `draws` is the number of imagined answers (linear models with two
  classes need none). `pure` is the test for certainty: sound intervals, or
  the paper's grid of at most `grid_points` points.
  """

  data: People = dataclasses.field(default_factory=People)
  model: Literal["logistic", "mlp"] = "logistic"
  hidden: tuple[int, ...] = (10, 10)
  columns: tuple[int, ...] = (2, 3, 4, 5, 6, 7)
  sensitive: tuple[str, ...] = ()
  deltas: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2)
  people: int = 1024
  draws: int = 100
  pure: Literal["interval", "grid"] = "interval"
  grid_points: int = 1024
  steps: int = 500
  batch_size: int = 256
  learning_rate: float = 0.02
  seeds: int = 100

  def __post_init__(self) -> None:
    for name in ("people", "draws", "grid_points", "steps", "batch_size"):
      checks.integer(name, getattr(self, name), low=1)
    checks.integer("seeds", self.seeds, low=1)
    checks.positive("learning_rate", self.learning_rate)
    checks.require(len(self.columns) > 0, "columns is empty; use e.g. [2, 7]")
    for size in self.columns:
      checks.integer("columns", size, low=1, high=8)
    checks.require(len(self.deltas) > 0, "deltas is empty; use e.g. [0, 0.1]")
    for delta in self.deltas:
      checks.number("deltas", delta, low=0.0, high=0.5, open_high=True)


def cells(config: Config) -> list[protocol.Settings]:
  """One cell per number of sensitive columns."""
  people, _ = load_people(config.data)
  names, _ = _questions(config, people)
  if config.sensitive:
    return [{"sensitive": len(names)}]
  checks.integer("columns", max(config.columns), high=len(names))
  return [{"sensitive": size} for size in config.columns]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All procedures, all repetitions, for one number of columns."""
  people, note = load_people(config.data)
  context.say(note)
  path = context.folder / FILE
  if not path.exists():
    made = questionnaire(config, people, key=context.shared_key)
    made.save(path)
  size = int(cell["sensitive"])
  model = _model(config, people)
  _, everything = _questions(config, people)
  choosers = _choosers(config, people)

  def measure(parts: tuple[Examples, ...], key: jax.Array) -> Any:
    train, test = parts
    key_fit, key_pick, key_ask, key_best = jax.random.split(key, 4)
    test = test.take(slice(0, config.people))
    params = _fit(config, model, train, key=key_fit)
    law = release.fit_gaussian(train.x)
    picked = jax.random.permutation(key_pick, everything.size)[:size]
    asked = release.with_constants(
      jax.tree.map(lambda leaf: jnp.asarray(leaf)[picked], everything), train.x
    )
    full = models.predict(model, params, test.x)

    def audited(count: Any, label: Any) -> Any:
      groups, everyone = release.audit(
        count, label, full, test.y, test.group,
        num_questions=size, num_groups=people.num_groups,
      )  # fmt: skip
      sizes = jnp.arange(size + 1)
      shares = jnp.mean(count[:, None] == sizes, axis=0)
      return groups, everyone, shares

    asking = release.release_each(
      model, params, law, asked, test.x, deltas=config.deltas,
      choosers=choosers, pure=_pure(config), key=key_ask,
    )  # fmt: skip
    found = {
      name: jax.vmap(audited)(own.count, own.label)
      for name, own in asking.items()
    }
    best = release.smallest_core_sets(
      params, asked, test.x, pure=_pure(config), key=key_best
    )
    found[OPTIMUM] = jax.tree.map(lambda v: v[None], audited(best, full))
    return found

  measured = repeat(
    measure, people, seeds=config.seeds, key=context.key,
    split_key=context.shared_key,
    fractions=(TRAINING_SHARE, 1 - TRAINING_SHARE), scale="minmax",
  )  # fmt: skip
  settings = {"data": people.name, "model": config.model, **cell}
  return _table(config, settings, measured, people)


def questionnaire(
  config: Config, people: data.Dataset, *, key: jax.Array
) -> Questionnaire:
  """The model of one split with its law: what `jaxfair ask` needs."""
  key_split, key_fit = jax.random.split(key)
  prepared = data.prepare(
    people, (TRAINING_SHARE, 1 - TRAINING_SHARE), key=key_split, scale="minmax"
  )
  params = _fit(config, _model(config, people), prepared.train, key=key_fit)
  names, _ = _questions(config, people)
  return Questionnaire(
    title=people.source.title,
    class_names=people.class_names,
    feature_names=people.feature_names,
    columns=people.columns,
    sensitive=names,
    network=release.as_network(params),
    gaussian=release.fit_gaussian(prepared.train.x),
    centre=prepared.scaler.centre,
    factor=prepared.scaler.factor,
  )


def _questions(
  config: Config, people: data.Dataset
) -> tuple[tuple[str, ...], release.Questions]:
  checks.require(
    len(people.columns) > 0,
    f"{people.name} has no columns to ask for; use a table of people",
  )
  return release.questions(
    people.feature_names, people.columns, config.sensitive or None
  )


def _choosers(config: Config, people: data.Dataset) -> dict[str, Any]:
  # Where the entropy order has a closed form no draws are needed.
  exact = config.model == "logistic" and people.num_classes == 2
  drawn = release.ByEntropy(config.draws, config.draws)
  return {
    ENTROPY: release.ByVariance() if exact else drawn,
    PROGRESS: release.ByProgress(),
    IMPORTANCE: release.ByImportance(),
    RANDOM: release.AtRandom(),
  }


def _pure(config: Config) -> Any:
  if config.pure == "grid":
    return release.Grid(config.grid_points)
  return release.Interval()


def _model(config: Config, people: data.Dataset) -> Model:
  if config.model == "logistic":
    return models.logistic(people.num_classes)
  return models.mlp(config.hidden, people.num_classes)


def _fit(
  config: Config, model: Model, train: Examples, *, key: jax.Array
) -> Params:
  settings = training.FitConfig(
    learning_rate=config.learning_rate,
    steps=config.steps,
    batch_size=min(config.batch_size, train.size),
  )
  return training.fit(
    model, models.cross_entropy, train, settings, key=key
  ).params


def _table(
  config: Config, settings: Any, measured: Any, people: data.Dataset
) -> Table:
  seeds = range(config.seeds)
  counts = range(int(settings["sensitive"]) + 1)
  tables = []
  for name, (groups, everyone, shares) in measured.items():
    deltas = (0.0,) if name == OPTIMUM else config.deltas
    for i, delta in enumerate(deltas):
      setting = settings | {"method": name, "delta": delta}
      at = lambda leaf, i=i: leaf[:, i]  # noqa: E731
      tables += [
        Table.from_arrays(
          setting, {"seed": seeds, "group": people.group_names},
          jax.tree.map(at, groups)._asdict(),
        ),
        Table.from_arrays(
          setting, {"seed": seeds, "group": [EVERYONE]},
          jax.tree.map(at, everyone)._asdict(),
        ),
        Table.from_arrays(
          setting | {"group": EVERYONE}, {"seed": seeds, "revealed": counts},
          {"people": at(shares)},
        ),
      ]  # fmt: skip
  return Table.concat(tables)


def spared(table: Table) -> Table:
  """Adds what was not asked, as a share of what could be."""
  return table.plus(
    spared=1 - table["share"], accuracy_kept=-table["accuracy_lost"]
  )


def _notes(config: Config) -> list[str]:
  if config.pure == "grid":
    test = (
      f"Certainty is tested on a grid of at most {config.grid_points} points, "
      "and on as many random ones where it is larger. For a network this is "
      "not sound: a label called certain may differ between points."
    )
  else:
    test = (
      "Certainty is tested with intervals: exact for linear models, sound for "
      "networks. A label called certain is the model's, always."
    )
  return [
    test,
    "Means and covariances of the training part are taken to be public. A "
    "column that makes the groups is not a feature, and is never asked for.",
    f"`jaxfair ask` on this run's directory asks you; {FILE} holds the model.",
  ]


STUDY = protocol.Study(
  name="release",
  summary="How few columns decide a case, and who must disclose more",
  config=Config,
  cells=cells,
  run=run,
  derive=spared,
  notes=_notes,
  claims=CLAIMS,
  figures=FIGURES,
  summaries=SUMMARIES,
)
