"""What the studies of chapter 3 share: its people, its network, its risks.

Every study about private risk minimisation (`dp_erm_*`) trains many models on
one data set and looks at each group's loss. The people are standardised with
moments of all of them, as in the thesis. No epsilon covers these moments, so
nothing here is a release.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis, checks, data, models, training
from jaxfair.studies.people import People, load_people
from jaxfair.training.ensembles import default_chunk
from jaxfair.types import Examples, Model, Params

# The thesis's eight sets, and by what it tells groups apart.
GROUPS = {
  "adult": "white",
  "bank": "age",
  "wine": "colour",
  "abalone": "grown_sex",
  "parkinsons": "sex",
  "churn": "gender",
  "credit": "sex",
  "stroke": "gender",
}
MAJORITY, MINORITY = "majority", "minority"
LOSS = models.cross_entropy
SCALING_NOTE = (
  "The features were standardised with moments of all people, as in the "
  "thesis. No epsilon covers them: these models are for study, not for release."
)


class Sample(NamedTuple):
  """The people of one cell.

  Attributes:
    people: standardised features.
    dataset: where they come from; names and counts are there.
  """

  people: Examples
  dataset: data.Dataset

  @property
  def num_groups(self) -> int:
    """How many groups there are."""
    return self.dataset.num_groups

  @property
  def roles(self) -> list[str]:
    """Majority and minority, so that panels of several sets share colours."""
    names = list(self.dataset.group_names)
    if len(names) != 2:
      return names
    sizes = np.bincount(np.asarray(self.people.group), minlength=2)
    first = bool(sizes[0] >= sizes[1])
    return [MAJORITY, MINORITY] if first else [MINORITY, MAJORITY]


@dataclasses.dataclass(frozen=True)
class Training:
  """The thesis's network and its DP-SGD, beside a plain training.

  One hidden layer of tanh units. The plain training, by Adam, stands in for
  the optimum that excess risks are counted from.

  Attributes:
    hidden: units of the hidden layer.
    steps: of DP-SGD; a multiple of `snapshots`.
    batch_size: expected size of a batch.
    learning_rate: eta of DP-SGD.
    l2_clip: C.
    noise_multiplier: sigma.
    snapshots: how often the model is looked at, after the start.
    plain_steps: of the plain training.
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


def check_sets(sets: Sequence[str], max_people: int | None) -> None:
  """Refuses names of no data set, and too small a number of people."""
  checks.require(bool(sets), "sets is empty; name at least one data set")
  for name in sets:
    checks.one_of("sets", name, data.names())
  if max_people is not None:
    checks.integer("max_people", max_people, low=50)


def cells_of(sets: Sequence[str]) -> list[dict[str, Any]]:
  """One cell per data set; a missing file is found before any work."""
  for name in sets:
    load(name)
  return [{"data": name} for name in sets]


def load(name: str) -> data.Dataset:
  """A data set, with the thesis's groups if it is one of its sets."""
  return load_people(People(name=name, group=GROUPS.get(name)))[0]


def draw_people(name: str, max_people: int | None, *, key: jax.Array) -> Sample:
  """Some people of a data set, or all of them, standardised."""
  dataset = load(name)
  size = min(max_people or dataset.size, dataset.size)
  (rows,) = data.split_rows(dataset.size, (size,), key=key)
  people = dataset.examples.take(rows)
  x = people.x.reshape(size, -1)  # images are rows of pixels here
  scaled = people._replace(x=data.fit_scaler(x).apply(x))
  return Sample(jax.tree.map(jnp.asarray, scaled), dataset)


def plain_risk(
  sample: Sample, model: Model, settings: Training, *, key: jax.Array
) -> analysis.ByGroup:
  """Each group's loss after plain training: what excess is counted from."""
  people = sample.people
  fitted = training.fit(
    model, LOSS, people, settings.plain(people.size), key=key
  )
  return group_losses(model, fitted.params, people, sample.num_groups)


def group_losses(
  model: Model, params: Params, people: Examples, num_groups: int
) -> analysis.ByGroup:
  """Mean loss of every group, and of everybody."""
  losses = LOSS(model.apply(params, people.x), people.y)
  return analysis.mean_by_group(losses, people.group, num_groups)


def train_many(
  look: Callable[[Params, Examples], Any],
  people: Examples,
  model: Model,
  settings: Training,
  *,
  seeds: int,
  key: jax.Array,
  sweep: Mapping[str, Sequence[float]] | None = None,
) -> Any:
  """Trains privately for every setting and seed, and looks along the way.

  Args:
    look: `(params, people) -> pytree`, traced once.
    people: whom to train on.
    model: what to train.
    settings: of the training.
    seeds: trainings per setting.
    key: seed i has the same samples and noise in every setting, so settings
      are compared in pairs.
    sweep: one number of `DpSgdConfig` -> its values; all in one program.

  Returns:
    What `look` returns, with leading axes [values, seeds, looks].
  """
  name, values = next(iter((sweep or {"l2_clip": [settings.l2_clip]}).items()))
  config = settings.private()

  def change(value: Any) -> training.DpSgdConfig:
    return dataclasses.replace(config, **{name: value})

  return train_changed(
    look, people, model, settings, change=change,
    values=np.array(values, np.float32), seeds=seeds, key=key,
  )  # fmt: skip


def train_changed(
  look: Callable[[Params, Examples], Any],
  people: Examples,
  model: Model,
  settings: Training,
  *,
  change: Callable[[Any], training.DpSgdConfig],
  values: np.ndarray,
  seeds: int,
  key: jax.Array,
) -> Any:
  """`train_many` for configs made of values: `change(value)`, traced."""
  keys = jax.random.split(key, seeds)
  pairs = np.indices((len(values), seeds)).reshape(2, -1)

  def one(own: Any, everybody: Examples) -> Any:
    value, own_key = own
    fitted = training.dp_sgd_snapshots(
      model, LOSS, everybody, change(value), count=settings.snapshots,
      key=own_key,
    )  # fmt: skip
    return jax.lax.map(lambda p: look(p, everybody), fitted.snapshots)

  found = training.map_members(
    one, (values[pairs[0]], keys[pairs[1]]), people, chunk=default_chunk()
  )
  shape = (len(values), seeds)
  return jax.tree.map(
    lambda leaf: np.asarray(leaf).reshape(*shape, *leaf.shape[1:]), found
  )
