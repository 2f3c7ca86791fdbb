"""What the studies of pruning share: faces and digits, networks, seeds."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, checks, data, models, training, tree
from jaxfair import experiments as ex
from jaxfair.data._pooling import pool_images
from jaxfair.experiments import Count, _measures, _study
from jaxfair.training import _driver, _ensembles
from jaxfair.training._ensembles import default_chunk
from jaxfair.types import Examples, Model, Params

LOSS = models.cross_entropy


class Network(ex.Settings):
  """Which network is pruned; see `models.network`."""

  kind: Literal["mlp", "small_cnn", "cnn", "cnn2", "resnet18", "resnet50", "vgg19"] = "mlp"
  width: Count = 32  # units of the hidden layer, or channels of the first convolution

  def model(self, num_classes: int) -> Model:
    """The network for this many classes."""
    return models.network(self.kind, num_classes, hidden=(self.width,), width=self.width)


class Stage(ex.Settings):
  """How long one training is, and how it steps."""

  rounds: Count = 20  # steps of the multipliers, where groups are held together
  steps_per_round: Count = 10  # steps of the network before each
  batch_size: Count = 128
  learning_rate: ex.Positive = 1e-3  # of Adam
  dual_rate: ex.NonNegative = 0.3  # s, the multipliers' step

  def config(self) -> training.LagrangianConfig:
    """The trainer's settings, without a constraint."""
    return training.LagrangianConfig(
      learning_rate=self.learning_rate,
      weight_decay=1e-4,
      dual_rate=self.dual_rate,
      rounds=self.rounds,
      steps_per_round=self.steps_per_round,
      batch_size=self.batch_size,
      dual_size=None,
    )


class PruningConfig(ex.Settings):
  """What the configs of all studies of pruning have."""

  data: ex.People = ex.People("utkface", "race", "race")
  network: Network = Network()
  train: Stage = Stage()  # of the whole network
  seeds: Count = 5  # repetitions, each with its own people
  max_people: Annotated[int, _fields.Within(50)] | None = (
    None  # of each seed, train and test together
  )
  test_share: ex.Probability = 0.3  # of them, looked at for accuracy only
  pool: Count = 1  # images are averaged over squares of this many pixels a side

  def check(self) -> None:
    """A batch comes from the training part."""
    if self.max_people is not None:
      kept = int(self.max_people * (1 - self.test_share))
      checks.integer(
        "train.batch_size",
        self.train.batch_size,
        high=kept,
        remedy="it is at most the training part of max_people",
      )


class Sample(NamedTuple):
  """Everybody there is, and who takes part in each repetition."""

  people: Examples  # all of them, pixels centered
  rows: tuple[np.ndarray, np.ndarray]  # ([seeds, n], [seeds, m]) training and test rows
  dataset: data.Dataset  # names and counts; of the stand-in, if it is one
  model: Model

  @property
  def num_groups(self) -> int:
    """How many groups there are."""
    return self.dataset.num_groups


def draw(config: PruningConfig, context: _study.Context) -> Sample:
  """Loads the people and draws each repetition's parts.

  Pixels are centered and scaled by fixed numbers, features by their mean and deviation.
  """
  dataset, key = context.load(config.data), context.shared_key
  size = min(config.max_people or dataset.size, dataset.size)
  tested = round(size * config.test_share)
  parts = [
    data.split_rows(dataset.size, (size - tested, tested), key=jax.random.fold_in(key, seed))
    for seed in range(config.seeds)
  ]
  train, test = (np.stack(part).astype(np.int32) for part in zip(*parts, strict=True))
  used, where = np.unique(np.concatenate([train, test], 1), return_inverse=True)
  where = where.reshape(config.seeds, size).astype(np.int32)
  people = dataset.examples.take(used)
  x = np.asarray(people.x)
  if x.ndim == 4:
    x = (pool_images(x, config.pool) - 0.5) / 0.25
  else:
    x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-6)
  people = jax.tree.map(jnp.asarray, people._replace(x=x))
  rows = (where[:, : size - tested], where[:, size - tested :])
  return Sample(people, rows, dataset, config.network.model(dataset.num_classes))


def for_each_seed(function: Callable[[Any, Examples], Any], own: Any, sample: Sample) -> Any:
  """`function((key, rows, ...), people)` for every seed, stacked, as NumPy.

  One program where the network allows it; convolutions on CPU take turns.
  """
  people = sample.people
  loop = _driver.choose_loop("auto", sample.model, people.x, traced=False)
  if loop == "scan":
    found = _ensembles.map_members(function, own, people, chunk=default_chunk())
  else:
    count = len(jax.tree.leaves(own)[0])
    found = tree.stack([function(tree.take(own, i), people) for i in range(count)])
  return jax.tree.map(np.asarray, found)


def learned(sample: Sample, params: Params, test: Examples) -> dict[str, jax.Array]:
  """What tells a network from a constant; see `experiments._measures.beside_constant`."""
  predicted = models.predict(sample.model, params, test.x)
  return _measures.beside_constant(test.y, predicted, sample.dataset.num_classes)


def first_only(value: Any, like: np.ndarray) -> np.ndarray:
  """The value at the first rate, which is 0; nothing is known at others."""
  whole = np.full(like.shape, np.nan)
  whole[:, 0] = value
  return whole


def group_rows(
  settings: _study.Cell,
  axes: dict[str, Sequence[Any]],
  names: Sequence[str],
  values: dict[str, Any],
  of_everyone: dict[str, Any],
) -> ex.Table:
  """One row per group and one for everyone, from `ByGroup` values and others of everyone.

  The row of everyone also has, as `<column>_gap`, the largest group's value minus the smallest's.
  """
  everyone = {name: value.population for name, value in values.items()}
  with np.errstate(invalid="ignore"):
    gaps = {
      f"{name}_gap": np.max(value.group, axis=-1) - np.min(value.group, axis=-1)
      for name, value in values.items()
    }
  groups = {name: value.group for name, value in values.items()}
  whole = {
    name: np.asarray(value)[..., None] for name, value in (everyone | gaps | of_everyone).items()
  }
  return ex.Table.concat(
    [
      ex.Table.from_arrays(settings, {**axes, "group": list(names)}, groups),
      ex.Table.from_arrays(settings, {**axes, "group": [ex.EVERYONE]}, whole),
    ]
  )


def notes(config: PruningConfig) -> list[str]:
  """Notes on what the numbers mean."""
  drawn = "everybody" if config.max_people is None else config.max_people
  return [
    f"{config.seeds} repetitions, each with {drawn} people of its own drawing, "
    f"{config.test_share:.0%} of them for tests; network {config.network.kind} of width "
    f"{config.network.width}.",
    "Accuracy is that of the test people; losses, gradients, eigenvalues and distances are those "
    "of the training people, as in the theory.",
  ]
