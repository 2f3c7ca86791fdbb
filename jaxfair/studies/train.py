"""Train to a privacy budget, and see what it costs every group."""

import dataclasses
import json
import pathlib
from typing import Any, Literal

import jax
import numpy as np
import optax

from jaxfair import accounting, checks, data, models, training, whole_files
from jaxfair.experiments.measures import (
  EVERYONE,
  group_table,
  measure_groups,
  paired_costs,
)
from jaxfair.experiments.people import People, dataset_ledger, load_people
from jaxfair.experiments.repeats import repeat
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import mean_above, spread_above
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.types import Model, Params

PLAIN, RELEASED = "without privacy", "released model"
OPTIMIZERS = {"sgd": optax.sgd, "adam": optax.adam}


@dataclasses.dataclass(frozen=True)
class Schedule:
  """How long, how large, how fast; `l2_clip` for private training."""

  steps: int = 1000
  batch_size: int = 256
  learning_rate: float = 1e-3
  optimizer: Literal["sgd", "adam"] = "adam"
  l2_clip: float = 1.0


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of a comparison of private and plain training.

  `public_fraction` of the people are taken to be public: the scaler is fitted
  on them. Fitted on the private part it would move everybody's features when
  one person changes, and no epsilon would hold.

  A release is charged to the ledger of its data set, too, unless
  `dataset_ledger` is false. `keep_private` keeps the key, the checkpoints and
  the noiseless trace of a model that was trained for release; they are erased
  otherwise.
  """

  data: People = dataclasses.field(default_factory=People)
  model: Literal["logistic", "mlp"] = "mlp"
  hidden: tuple[int, ...] = (64,)
  epsilons: tuple[float, ...] = (1.0,)
  delta: float = 1e-6
  release_epsilon: float | None = None
  plain: Schedule = dataclasses.field(default_factory=Schedule)
  private: Schedule = dataclasses.field(default_factory=Schedule)
  seeds: int = 20
  public_fraction: float = 0.05
  test_fraction: float = 0.25
  dataset_ledger: bool = True
  keep_private: bool = False

  def __post_init__(self) -> None:
    checks.positive("epsilons", self.epsilons)
    checks.number(
      "delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True
    )
    if self.release_epsilon is not None:
      checks.positive("release_epsilon", self.release_epsilon)
    checks.integer("seeds", self.seeds, low=1)
    checks.positive("public_fraction", self.public_fraction)
    checks.number("test_fraction", self.test_fraction, low=0.05, high=0.9)
    checks.positive(
      "1 - public_fraction - test_fraction", self.fractions[1],
      remedy="leave people to train on",
    )  # fmt: skip

  @property
  def fractions(self) -> tuple[float, float, float]:
    """Public, training and test part; the scaler is fitted on the first."""
    rest = 1 - self.public_fraction - self.test_fraction
    return self.public_fraction, rest, self.test_fraction


def cells(config: Config) -> list[protocol.Settings]:
  """The plain model, one cell per epsilon, and the model that is released."""
  people, _ = load_people(config.data)
  size = round(config.fractions[1] * people.size)
  for epsilon in config.epsilons:  # an impossible budget is found here
    training.calibrate(
      _private(config), size, epsilon=epsilon, delta=config.delta
    )
  listed: list[protocol.Settings] = [{"training": PLAIN}]
  listed += [
    {"training": f"epsilon {e:g}", "epsilon": e} for e in config.epsilons
  ]
  if config.release_epsilon is not None:
    listed += [{"training": RELEASED, "epsilon": config.release_epsilon}]
  return listed


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All seeds of one cell in one program."""
  people, note = load_people(config.data)
  context.say(note)
  model = model_of(config, people)
  setting = {"data": people.name, "epsilon": np.inf, **cell}
  if context.for_release:
    _require_affordable(config, people, context)
  if cell["training"] == RELEASED:
    return _release(config, people, model, setting, context)

  def measure(parts: protocol.Parts, key: jax.Array) -> object:
    _, train, test = parts
    if cell["training"] == PLAIN:
      fitted = training.fit(
        model, models.cross_entropy, train, _plain(config), key=key
      )
    else:
      budget = {"epsilon": float(cell["epsilon"]), "delta": config.delta}
      settings = training.calibrate(_private(config), train.size, **budget)
      fitted = training.dp_sgd(
        model, models.cross_entropy, train, settings, key=key
      )
    return measure_groups(model.apply(fitted.params, test.x), test, people)

  measured = repeat(
    measure,
    people,
    seeds=config.seeds,
    key=context.key,
    split_key=context.shared_key,
    fractions=config.fractions,
  )
  return group_table(setting, measured, people.group_names)


def costs(table: Table) -> Table:
  """What each private training loses against the plain one, seed by seed.

  The released model has a split of its own, so there is no pair for it.
  """
  return paired_costs(table, "training", PLAIN, without=(RELEASED,))


def save_model(path: pathlib.Path, params: Params, scaler: data.Scaler) -> None:
  """Writes parameters, and the scaler that goes before them, as one file."""
  leaves = jax.tree_util.tree_leaves_with_path(params)
  arrays: Any = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
  arrays |= {f"scaler.{k}": v for k, v in scaler._asdict().items()}
  np.savez(path, **arrays)


def _release(
  config: Config,
  people: data.Dataset,
  model: Model,
  setting: dict[str, Any],
  context: protocol.Context,
) -> Table:
  """Trains one model for release, with a ledger, and measures it.

  What may leave the house has a folder of its own, which appears complete or
  not at all: beside a model's ledger and checkpoints lies, until the release is
  finished, the key with which its noise could be subtracted.
  """
  split = data.prepare(people, config.fractions, key=context.shared_key)
  _, train, test = split.parts
  book = None
  if context.for_release and config.dataset_ledger:
    book = dataset_ledger(config.data)
  fitted = training.train_to_budget(
    model,
    models.cross_entropy,
    train,
    _private(config),
    epsilon=float(setting["epsilon"]),
    delta=config.delta,
    key=None if context.for_release else context.key,
    folder=context.folder / "training",
    dataset_ledger=book,
    data=people.name,
    keep_private=config.keep_private,
  )
  if book is not None:
    told = book.told(config.delta)
  else:
    told = "This model is not entered in the ledger of its data set."
  card = {
    "guarantee": str(fitted.guarantee),
    "all_releases": told,
    "for_release": fitted.for_release,
    "noise_multiplier": float(fitted.config.noise_multiplier),
  }
  folder = context.folder / "release"
  if not folder.exists():  # else a stopped run had come so far: the same model
    with whole_files.new_folder(folder) as made:
      save_model(made / "model.npz", fitted.params, split.scaler)
      (made / "guarantee.json").write_text(json.dumps(card, indent=2))
  context.say(f"release/model.npz: {fitted.guarantee}")
  context.say(told)
  if not fitted.for_release:
    context.say('this model was made with a fixed seed; seed = "os" releases')
  measured = measure_groups(model.apply(fitted.params, test.x), test, people)
  stacked = jax.tree.map(lambda leaf: leaf[None], measured)
  return group_table(setting, stacked, people.group_names)


def _require_affordable(
  config: Config, people: data.Dataset, context: protocol.Context
) -> None:
  """Refuses a release that the data set's budget does not pay for.

  Before any cell is computed; a training that has begun is charged already.
  """
  begun = (context.folder / "training").exists()
  if config.release_epsilon is None or not config.dataset_ledger or begun:
    return
  size = round(config.fractions[1] * people.size)
  settings = training.calibrate(
    _private(config), size, epsilon=config.release_epsilon, delta=config.delta
  )
  dataset_ledger(config.data).require_affordable(
    settings.event(size), relation=accounting.Relation.ADD_OR_REMOVE_ONE
  )


def model_of(config: Config, people: data.Dataset) -> Model:
  """The model that a config trains."""
  if config.model == "logistic":
    return models.logistic(people.num_classes)
  return models.mlp(config.hidden, people.num_classes)


def _plain(config: Config) -> training.FitConfig:
  return training.FitConfig(
    learning_rate=config.plain.learning_rate,
    steps=config.plain.steps,
    batch_size=config.plain.batch_size,
    optimizer=OPTIMIZERS[config.plain.optimizer],
  )


def _private(config: Config) -> training.DpSgdConfig:
  return training.DpSgdConfig(
    learning_rate=config.private.learning_rate,
    l2_clip=config.private.l2_clip,
    steps=config.private.steps,
    batch_size=config.private.batch_size,
    optimizer=OPTIMIZERS[config.private.optimizer],
  )


def _notes(config: Config) -> list[str]:
  return [
    f"Every epsilon is at delta {config.delta:g}, for one person added to or "
    "removed from the training part, by Poisson-sampled DP-SGD. It covers the "
    "model's parameters. The features were scaled by what is known of "
    f"{100 * config.public_fraction:g}% of the people, who are taken to be "
    "public.",
    "The figures on this page are measured on held-out people without noise: "
    "they are for those who hold the data, not for release.",
  ]


STUDY = protocol.Study(
  name="train",
  summary="Private training beside plain training, group by group",
  config=Config,
  cells=cells,
  run=run,
  derive=costs,
  notes=_notes,
  summaries=(
    Summary(
      "By group",
      by=("training", "group"),
      values=(
        "accuracy",
        "accuracy_cost",
        "loss",
        "loss_cost",
        "selection_rate",
      ),
    ),
    Summary(
      "Gaps between groups",
      by=("training",),
      values=(
        "accuracy_parity_difference",
        "demographic_parity_difference",
        "equalized_odds_difference",
      ),
      where={"group": EVERYONE},
    ),
  ),
  claims=(
    Claim(
      "privacy costs accuracy",
      "Private training is less accurate than plain training",
      mean_above("accuracy_cost", where={"group": EVERYONE}),
    ),
    Claim(
      "who pays",
      "One group loses more accuracy to privacy than another",
      spread_above("accuracy_cost", between="group", without=EVERYONE),
    ),
  ),
  figures=(
    Figure(
      "accuracy",
      "Accuracy by group",
      x="group",
      y="accuracy",
      color="training",
      caption="Share of correct predictions on held-out people.",
    ),
    Figure(
      "cost",
      "Who pays for privacy",
      x="group",
      y="accuracy_cost",
      color="training",
      reference=0.0,
      y_title="accuracy lost to privacy",
      caption="Accuracy without privacy minus accuracy with it, on the same "
      "split; above 0 the group pays.",
    ),
  ),
)
