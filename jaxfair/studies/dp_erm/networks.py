"""A small network, trained privately many times and measured along the way.

Excess risks are counted from a plain training of the same network, which stands in for the
optimum.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxfair import checks, models, training
from jaxfair import experiments as ex
from jaxfair.analysis import _by_group, _norms
from jaxfair.experiments import Count, Positive, _study
from jaxfair.studies.dp_erm import common
from jaxfair.training import _ensembles, _snapshots
from jaxfair.training._ensembles import default_chunk
from jaxfair.types import Examples, Model, Params

Look = Callable[[Params, Examples, jax.Array], Any]
Change = Callable[[training.DpSgdConfig, Any], training.DpSgdConfig]
Update = Callable[[training.DpSgdConfig, Params, Any], training.DpSgdConfig]
END = {"at_end": "yes"}
PRIVATE = "private_balanced_accuracy"


class Training(ex.Settings):
  """Hidden layers of tanh units, their DP-SGD and their plain training."""

  hidden: Count = 20  # units of a hidden layer
  depth: Count = 1  # hidden layers
  steps: Count = 500  # of DP-SGD; a multiple of `snapshots`
  batch_size: Count = 32  # expected size of a batch
  learning_rate: Positive = 0.1  # eta of DP-SGD
  l2_clip: Positive = 0.1  # C
  noise_multiplier: ex.NonNegative = 5.0  # sigma
  snapshots: Count = 5  # how often the model is measured, after the start
  plain_steps: Count = 1000  # of the plain training, by Adam
  plain_rate: Positive = 0.01  # its learning rate

  def check(self) -> None:
    """Snapshots are at equal distances."""
    checks.require(
      self.steps % self.snapshots == 0,
      f"steps={self.steps} is not a multiple of snapshots={self.snapshots}; the "
      "model is measured at equal distances",
    )

  @property
  def looks(self) -> list[int]:
    """After how many steps the model is measured; 0 is the start."""
    distance = self.steps // self.snapshots
    return [distance * i for i in range(self.snapshots + 1)]

  def model(self, num_classes: int) -> Model:
    """The network for these classes."""
    return models.network("tanh_mlp", num_classes, hidden=(self.hidden,) * self.depth)

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
      learning_rate=self.plain_rate, steps=self.plain_steps, batch_size=min(256, size)
    )


class NetworkConfig(common.ErmConfig):
  """What the configs of all studies of DP-SGD have."""

  training: Training = Training()

  def check(self) -> None:
    """Batches are drawn from the people."""
    super().check()
    if self.max_people is not None:
      checks.integer(
        "training.batch_size",
        self.training.batch_size,
        high=self.max_people,
        remedy="it is the expected size of a batch, at most max_people",
      )


def with_clip(config: training.DpSgdConfig, value: Any) -> training.DpSgdConfig:
  """The config with this clip bound."""
  return dataclasses.replace(config, l2_clip=value)


def _given(update: Update, value: Any, config: training.DpSgdConfig, params: Params) -> Any:
  return update(config, params, value)


class Setup(NamedTuple):
  """One data set, ready to train on."""

  config: NetworkConfig  # of the study
  cell: _study.Cell  # names the data set, and how good the plain training is
  sample: common.Sample  # the people
  model: Model
  key: jax.Array  # for the private trainings
  optimum: Params  # after plain training
  plain: _by_group.ByGroup  # each group's loss there

  @property
  def people(self) -> Examples:
    """Those who are trained on."""
    return self.sample.people

  def losses(self, params: Params, people: Examples) -> _by_group.ByGroup:
    """Mean loss of every group, and of everybody."""
    return common.group_losses(self.model, params, people, self.sample.num_groups)

  def losses_and_norms(
    self, params: Params, people: Examples, key: jax.Array
  ) -> tuple[_by_group.ByGroup, _by_group.ByGroup]:
    """Mean loss and mean gradient norm of every group."""
    del key
    norms = _norms.gradient_norms(self.model, common.LOSS, params, people)
    by_group = _by_group.mean_by_group(norms, people.group, self.sample.num_groups)
    return self.losses(params, people), by_group

  def scored(self, look: Look) -> Look:
    """What `look` returns, and the balanced accuracy."""

    def both(params: Params, people: Examples, key: jax.Array) -> Any:
      scores = common.beside_constant(self.model, params, people, self.sample.dataset)
      return look(params, people, key), scores["balanced_accuracy"]

    return both

  def train(
    self,
    look: Look,
    values: Sequence[Any] | None = None,
    change: Change = with_clip,
    update: Update | None = None,
  ) -> Any:
    """Trains privately for every value and seed, in one program.

    Seed i has the same start, samples and noise for every value, so values are
    compared in pairs.

    Args:
      look: `(params, people, key) -> pytree`, called at the start and at every
        snapshot.
      values: what differs between trainings; the config's clip bound by default.
      change: makes the trainer's config of a value, which is traced.
      update: `(config, params, value) -> config`, called after every snapshot: the settings of
        the steps that follow.

    Returns:
      What `look` returns, and the private models' balanced accuracies, as NumPy
      with leading axes [values, seeds, looks].
    """
    settings, seeds = self.config.training, self.config.seeds
    values = [settings.l2_clip] if values is None else values
    stacked = np.asarray(values, np.float32)
    keys = jax.random.split(self.key, seeds)
    pairs = np.indices((len(stacked), seeds)).reshape(2, -1)
    config, count, look_at = settings.private(), settings.snapshots, self.scored(look)

    def one(own: Any, people: Examples) -> Any:
      value, own_key = own
      key_train, key_look = jax.random.split(own_key)
      changed = change(config, value)
      after = None if update is None else functools.partial(_given, update, value)
      fitted = _snapshots.dp_sgd_snapshots(
        self.model, common.LOSS, people, changed, count=count, key=key_train, update=after
      )
      key_looks = jax.random.split(key_look, count + 1)
      return jax.lax.map(
        lambda item: look_at(item[0], people, item[1]), (fitted.snapshots, key_looks)
      )

    members = (stacked[pairs[0]], keys[pairs[1]])
    found = _ensembles.map_members(one, members, self.people, chunk=default_chunk())
    shape = (len(stacked), seeds)
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*shape, *leaf.shape[1:]), found)

  def excess(self, losses: _by_group.ByGroup) -> dict[str, np.ndarray]:
    """What losses exceed those of the plain training by, as columns."""
    over = jax.tree.map(lambda a, b: a - np.asarray(b), losses, self.plain)
    return dict(zip(common.RISKS, over, strict=True))

  def rows(self, leading: dict[str, Sequence[Any]], values: dict[str, Any]) -> ex.Table:
    """Rows of all leading axes, seeds, snapshots and groups."""
    seeds, steps = range(self.config.seeds), self.config.training.looks
    axes = {**leading, "seed": seeds, "step": steps}
    return self.sample.rows(self.cell, axes, values)


def set_up(
  config: NetworkConfig,
  cell: _study.Cell,
  context: _study.Context,
  sample: common.Sample | None = None,
) -> Setup:
  """Draws a cell's people, unless they are given, and trains without privacy."""
  sample = sample or common.draw(config, cell, context)
  people, settings = sample.people, config.training
  model = settings.model(sample.dataset.num_classes)
  key_plain, key_private = jax.random.split(context.key)
  plain = settings.plain(people.size)
  optimum = training.fit(model, common.LOSS, people, plain, key=key_plain).params
  losses = common.group_losses(model, optimum, people, sample.num_groups)
  scores = jax.tree.map(float, common.beside_constant(model, optimum, people, sample.dataset))
  return Setup(config, {**cell, **scores}, sample, model, key_private, optimum, losses)


def with_panels(table: ex.Table, told: Callable[[dict[str, Any]], str]) -> ex.Table:
  """Adds the name of each row's panel, and whether it is the last snapshot."""
  last = table["step"] == table["step"].max()
  return table.plus(
    panel=[f"{row['data']}, {told(row)}" for row in table.rows()],
    at_end=np.where(last, "yes", "no"),
  )


def training_notes(config: NetworkConfig) -> list[str]:
  """How the networks were trained."""
  used = config.training
  return [
    f"DP-SGD: {used.steps} steps of rate {used.learning_rate:g}, expected batch "
    f"{used.batch_size}, noise multiplier {used.noise_multiplier:g}, divided by the expected "
    "batch size. The thesis takes a rate of 1e-4 and does not give the number of steps.",
    "Excess risk is the loss on the training people minus that of a plain training of the same "
    "network by Adam, which stands in for the optimum.",
    common.LEARNT_NOTE,
  ]


study = functools.partial(
  ex.Study,
  people=common.people,
  cells=ex.grid(data="sets"),
  repeats_reference=True,
  notes=lambda config: [*training_notes(config), common.SCALING_NOTE],
)
