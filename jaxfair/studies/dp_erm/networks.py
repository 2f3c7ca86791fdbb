"""The thesis's network, trained privately many times and looked at on its way.

Excess risks are counted from a plain training of the same network, which
stands in for the optimum.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import analysis, checks, data, models, training
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common
from jaxfair.training.ensembles import default_chunk
from jaxfair.types import Examples, Model, Params

Look = Callable[[Params, Examples, jax.Array], Any]


@dataclasses.dataclass(frozen=True)
class Training:
  """One hidden layer of tanh units, its DP-SGD and its plain training.

  Attributes:
    hidden: units of the hidden layer.
    steps: of DP-SGD; a multiple of `snapshots`.
    batch_size: expected size of a batch.
    learning_rate: eta of DP-SGD.
    l2_clip: C.
    noise_multiplier: sigma.
    snapshots: how often the model is looked at, after the start.
    plain_steps: of the plain training, by Adam.
    plain_rate: its learning rate.
  """

  hidden: int = 20
  steps: int = 500
  batch_size: int = 32
  learning_rate: float = 0.1
  l2_clip: float = 0.1
  noise_multiplier: float = 5.0
  snapshots: int = 5
  plain_steps: int = 1000
  plain_rate: float = 0.01

  def __post_init__(self) -> None:
    for name in ("hidden", "steps", "batch_size", "snapshots", "plain_steps"):
      checks.integer(name, getattr(self, name), low=1)
    for name in ("learning_rate", "l2_clip", "plain_rate"):
      checks.positive(name, getattr(self, name))
    checks.non_negative("noise_multiplier", self.noise_multiplier)
    checks.require(
      self.steps % self.snapshots == 0,
      f"steps={self.steps} is no multiple of snapshots={self.snapshots}; the "
      "model is looked at in equal distances",
    )

  @property
  def looks(self) -> list[int]:
    """After how many steps the model is looked at; 0 is the start."""
    distance = self.steps // self.snapshots
    return [distance * i for i in range(self.snapshots + 1)]

  def model(self, dataset: data.Dataset) -> Model:
    """The network for these classes."""
    return models.mlp(self.hidden, dataset.num_classes, "tanh")

  def private(self) -> training.DpSgdConfig:
    """DP-SGD: plain descent on clipped, noisy gradients."""
    return training.DpSgdConfig(
      learning_rate=self.learning_rate,
      l2_clip=self.l2_clip,
      noise_multiplier=self.noise_multiplier,
      steps=self.steps,
      batch_size=self.batch_size,
    )

  def plain(self, size: int) -> training.FitConfig:
    """The training without privacy, on this many people."""
    return training.FitConfig(
      learning_rate=self.plain_rate,
      steps=self.plain_steps,
      batch_size=min(256, size),
    )


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
  """What the configs of all studies of DP-SGD have.

  Attributes:
    sets: data sets.
    training: the network and how it is trained.
    seeds: private trainings per setting.
    max_people: at most this many of a set; all of them by default.
  """

  sets: tuple[str, ...] = ("bank",)
  training: Training = dataclasses.field(default_factory=Training)
  seeds: int = 20
  max_people: int | None = None

  def __post_init__(self) -> None:
    common.check_sets(self.sets, self.max_people)
    checks.integer("seeds", self.seeds, low=1)
    if self.max_people is not None:
      checks.integer(
        "training.batch_size", self.training.batch_size, high=self.max_people,
        remedy="it is the expected size of a batch, at most max_people",
      )  # fmt: skip


class Setup(NamedTuple):
  """One data set, ready to train on.

  Attributes:
    sample: the people.
    model: the network.
    key: for the private trainings.
    optimum: parameters after plain training.
    plain: each group's loss there.
  """

  sample: common.Sample
  model: Model
  key: jax.Array
  optimum: Params
  plain: analysis.ByGroup

  @property
  def people(self) -> Examples:
    """The people."""
    return self.sample.people


def cells(config: NetworkConfig) -> list[dict[str, Any]]:
  """One cell per data set."""
  return common.cells_of(config.sets)


def set_up(
  config: NetworkConfig,
  cell: protocol.Settings,
  context: protocol.Context,
  *,
  choose: common.Choose | None = None,
  public: int = 0,
) -> Setup:
  """Draws a cell's people and trains without privacy."""
  sample = common.draw_people(
    str(cell["data"]),
    config.max_people,
    key=context.shared_key,
    choose=choose,
    public=public,
  )
  model, people = config.training.model(sample.dataset), sample.people
  key_plain, key_private = jax.random.split(context.key)
  settings = config.training.plain(people.size)
  fitted = training.fit(model, common.LOSS, people, settings, key=key_plain)
  plain = common.group_losses(model, fitted.params, people, sample.num_groups)
  return Setup(sample, model, key_private, fitted.params, plain)


def train_many(
  look: Look,
  people: Examples,
  model: Model,
  settings: Training,
  *,
  seeds: int,
  key: jax.Array,
  change: Callable[[training.DpSgdConfig, Any], training.DpSgdConfig],
  values: Sequence[Any],
) -> Any:
  """Trains privately for every value and seed, in one program.

  Args:
    look: `(params, people, key) -> pytree`, at the start and at snapshots.
    people: whom to train on.
    model: what to train.
    settings: of the training.
    seeds: trainings per value.
    key: seed i has the same start, samples and noise for every value, so
      values are compared in pairs.
    change: makes the config of a value, which is traced.
    values: what differs between trainings.

  Returns:
    What `look` returns, as NumPy with leading axes [values, seeds, looks].
  """
  stacked = np.asarray(values, np.float32)
  keys = jax.random.split(key, seeds)
  pairs = np.indices((len(stacked), seeds)).reshape(2, -1)
  config = settings.private()

  def one(own: Any, everybody: Examples) -> Any:
    value, own_key = own
    key_train, key_look = jax.random.split(own_key)
    fitted = training.dp_sgd_snapshots(
      model, common.LOSS, everybody, change(config, value),
      count=settings.snapshots, key=key_train,
    )  # fmt: skip
    key_looks = jax.random.split(key_look, settings.snapshots + 1)
    return jax.lax.map(
      lambda item: look(item[0], everybody, item[1]),
      (fitted.snapshots, key_looks),
    )

  found = training.map_members(
    one, (stacked[pairs[0]], keys[pairs[1]]), people, chunk=default_chunk()
  )
  shape = (len(stacked), seeds)
  return jax.tree.map(
    lambda leaf: np.asarray(leaf).reshape(*shape, *leaf.shape[1:]), found
  )


def with_clip(config: training.DpSgdConfig, value: Any) -> training.DpSgdConfig:
  """The config with this clip bound."""
  return dataclasses.replace(config, l2_clip=value)


def notes(config: NetworkConfig) -> list[str]:
  """What the numbers are."""
  return [*training_notes(config), common.SCALING_NOTE]


def training_notes(config: NetworkConfig) -> list[str]:
  """How the networks were trained."""
  used = config.training
  return [
    f"DP-SGD: {used.steps} steps of rate {used.learning_rate:g}, expected "
    f"batch {used.batch_size}, noise multiplier {used.noise_multiplier:g}, "
    "divided by the expected batch size. The thesis takes a rate of 1e-4 and "
    "does not say how many steps.",
    "Excess risk is the loss on the training people minus that of a plain "
    "training of the same network by Adam, which stands in for the optimum.",
  ]
