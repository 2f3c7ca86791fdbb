"""Train to a privacy budget, and see what it costs every group."""

import json
import pathlib
from typing import Annotated, Any, Literal

import jax
import numpy as np

from jaxfair import _whole_files, accounting, checks, data, models, training
from jaxfair import experiments as ex
from jaxfair.experiments import Claim, Count, Figure, Positive, Summary
from jaxfair.experiments._measures import EVERYONE, GAPS, paired_costs
from jaxfair.experiments._people import dataset_ledger
from jaxfair.experiments._study import Parts
from jaxfair.types import Model, Params

PLAIN, RELEASED = "without privacy", "released model"


class Schedule(ex.Settings):
  """How long, how large, how fast; `l2_clip` for private training."""

  steps: Count = 1000
  batch_size: Count = 256
  learning_rate: Positive = 1e-3
  optimizer: training.OptimizerName = "adam"
  schedule: training.ScheduleName = "constant"
  l2_clip: Positive = 1.0

  def plain_config(self) -> training.FitConfig:
    """The trainer's settings without privacy."""
    return training.FitConfig(
      learning_rate=self.learning_rate,
      steps=self.steps,
      batch_size=self.batch_size,
      optimizer=training.named_optimizer(self.optimizer, self.schedule, steps=self.steps),
    )

  def private_config(self) -> training.DpSgdConfig:
    """The settings of DP-SGD, before its noise is calibrated."""
    return training.DpSgdConfig(
      learning_rate=self.learning_rate,
      l2_clip=self.l2_clip,
      steps=self.steps,
      batch_size=self.batch_size,
      optimizer=training.named_optimizer(self.optimizer, self.schedule, steps=self.steps),
    )


class Config(ex.Settings):
  """Settings of a comparison of private and plain training.

  `public_fraction` of the people are taken to be public: the scaler is fitted
  on them. Fitted on the private part it would move everybody's features when
  one person changes, and no epsilon would hold.

  A release is charged to the ledger of its data set, too, unless
  `dataset_ledger` is false. `keep_private` keeps the key, the checkpoints and
  the noiseless trace of a model that was trained for release; they are erased
  otherwise.
  """

  data: ex.People = ex.People()
  model: Literal["logistic", "mlp"] = "mlp"
  hidden: tuple[Count, ...] = (64,)
  epsilons: ex.Sweep[Positive] = (1.0,)
  delta: ex.Probability = 1e-6
  release_epsilon: Positive | None = None
  plain: Schedule = Schedule()
  private: Schedule = Schedule()
  seeds: Count = 20
  public_fraction: Positive = 0.05
  test_fraction: Annotated[float, ex.Within(0.05, 0.9)] = 0.25
  dataset_ledger: bool = True
  keep_private: bool = False

  def check(self) -> None:
    """Somebody is left to train on."""
    checks.positive(
      "1 - public_fraction - test_fraction", self.fractions[1], remedy="leave people to train on"
    )

  @property
  def fractions(self) -> tuple[float, float, float]:
    """Public, training and test part; the scaler is fitted on the first."""
    rest = 1 - self.public_fraction - self.test_fraction
    return self.public_fraction, rest, self.test_fraction

  def network(self, num_classes: int) -> Model:
    """The model that is trained."""
    return models.network(self.model, num_classes, hidden=self.hidden)

  def calibrated(self, size: int, epsilon: float) -> training.DpSgdConfig:
    """DP-SGD on this many people, with the noise that the budget needs."""
    return training.calibrate(
      self.private.private_config(), size, epsilon=epsilon, delta=self.delta
    )


def _precheck(config: Config, people: data.Dataset) -> None:
  """Every budget can be met."""
  for epsilon in config.epsilons:
    config.calibrated(round(config.fractions[1] * people.size), epsilon)


def _cells(config: Config) -> list[ex.Cell]:
  """The plain model, one cell per epsilon, and the model that is released."""
  listed: list[ex.Cell] = [{"training": PLAIN}]
  listed += [{"training": f"epsilon {e:g}", "epsilon": e} for e in config.epsilons]
  if config.release_epsilon is not None:
    listed += [{"training": RELEASED, "epsilon": config.release_epsilon}]
  return listed


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All seeds of one cell in one program."""
  people = context.load(config.data)
  model = config.network(people.num_classes)
  setting = {"data": people.name, "epsilon": np.inf, **cell}
  if context.for_release:
    _require_affordable(config, people, context)
  if cell["training"] == RELEASED:
    return _release(config, people, model, setting, context)

  def measure(parts: Parts, key: jax.Array) -> object:
    _, train, test = parts
    params: Params
    if cell["training"] == PLAIN:
      plain = config.plain.plain_config()
      params = training.fit(model, models.cross_entropy, train, plain, key=key).params
    else:
      private = config.calibrated(train.size, float(cell["epsilon"]))
      params = training.dp_sgd(model, models.cross_entropy, train, private, key=key).params
    return ex.measure_groups(model.apply(params, test.x), test, people)

  measured = ex.repeat(
    measure,
    people,
    seeds=config.seeds,
    key=context.key,
    split_key=context.shared_key,
    fractions=config.fractions,
  )
  return ex.group_table(setting, measured, people.group_names)


def save_model(path: pathlib.Path, params: Params, scaler: data.Scaler) -> None:
  """Writes parameters, and the scaler that goes before them, as one file."""
  leaves = jax.tree_util.tree_leaves_with_path(params)
  arrays: Any = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
  arrays |= {f"scaler.{k}": v for k, v in scaler._asdict().items()}
  np.savez(path, **arrays)


def _release(
  config: Config, people: data.Dataset, model: Model, setting: dict[str, Any], context: ex.Context
) -> ex.Table:
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
    config.private.private_config(),
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
    with _whole_files.new_folder(folder) as made:
      save_model(made / "model.npz", fitted.params, split.scaler)
      (made / "guarantee.json").write_text(json.dumps(card, indent=2))
  context.say(f"release/model.npz: {fitted.guarantee}")
  context.say(told)
  if not fitted.for_release:
    context.say('this model was made with a fixed seed; seed = "os" releases')
  measured = ex.measure_groups(model.apply(fitted.params, test.x), test, people)
  stacked = jax.tree.map(lambda leaf: leaf[None], measured)
  return ex.group_table(setting, stacked, people.group_names)


def _require_affordable(config: Config, people: data.Dataset, context: ex.Context) -> None:
  """Refuses a release that the data set's budget does not pay for.

  Before any cell is computed; a training that has begun is charged already.
  """
  begun = (context.folder / "training").exists()
  if config.release_epsilon is None or not config.dataset_ledger or begun:
    return
  size = round(config.fractions[1] * people.size)
  settings = config.calibrated(size, config.release_epsilon)
  dataset_ledger(config.data).require_affordable(
    settings.event(size), relation=accounting.Relation.ADD_OR_REMOVE_ONE
  )


def _notes(config: Config) -> list[str]:
  return [
    f"Every epsilon is at delta {config.delta:g}, for one person added to or removed from the "
    "training part, by Poisson-sampled DP-SGD. It covers the model's parameters. The features "
    f"were scaled by what is known of {100 * config.public_fraction:g}% of the people, who are "
    "taken to be public.",
    "The figures on this page are measured on held-out people without noise: they are for those "
    "who hold the data, not for release.",
  ]


STUDY = ex.Study(
  name="train",
  summary="Private training beside plain training, group by group",
  config=Config,
  cells=_cells,
  run=run,
  precheck=_precheck,
  # The released model has a split of its own, so there is no pair for it.
  derive=lambda table: paired_costs(table, "training", PLAIN, without=(RELEASED,)),
  notes=_notes,
  plain={"training": PLAIN},
  summaries=(
    Summary(
      "By group",
      ("training", "group"),
      ("accuracy", "accuracy_cost", "loss", "loss_cost", "selection_rate"),
    ),
    Summary("Gaps between groups", ("training",), GAPS, {"group": EVERYONE}),
  ),
  claims=(
    Claim(
      "privacy costs accuracy",
      "Private training is less accurate than plain training",
      (ex.mean("accuracy_cost") > 0).at(group=EVERYONE),
    ),
    Claim(
      "who pays",
      "One group loses more accuracy to privacy than another",
      (ex.spread("accuracy_cost", "group") > 0).at(group=ex.but(EVERYONE)),
    ),
  ),
  figures=(
    Figure(
      "accuracy",
      "Accuracy by group",
      "group",
      "accuracy",
      color="training",
      caption="Share of correct predictions on held-out people.",
    ),
    Figure(
      "cost",
      "Who pays for privacy",
      "group",
      "accuracy_cost",
      color="training",
      caption="Accuracy without privacy minus accuracy with it, on the same split; above 0 the "
      "group pays.",
      y_title="accuracy lost to privacy",
      reference=0.0,
    ),
  ),
)
