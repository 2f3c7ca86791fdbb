"""What the studies of networks share: people, training, attacks, rows.

One cell is one seed: a fresh split and a plainly trained network, from which
every setting is trained on. All settings of a seed share both.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis, checks, data, models, robustness, training, tree
from jaxfair import experiments as ex
from jaxfair.experiments import Count
from jaxfair.experiments._measures import EVERYONE
from jaxfair.types import Examples, Model, Params, PerExampleLoss

PIXELS = (0.0, 1.0)
LOSSES: dict[str, PerExampleLoss] = {
  "cross_entropy": models.cross_entropy,
  "ramp": models.ramp,
  "exponential": models.exponential,
}
Network = Literal["strided_cnn", "mlp", "cnn", "resnet50", "vgg13"]
LossName = Literal["cross_entropy", "ramp", "exponential"]
AttackName = Literal["RFGSM l_inf", "PGD l_2", "PGD l_inf", "PGD l_2, margin"]
RFGSM: AttackName = "RFGSM l_inf"
PGD_L2: AttackName = "PGD l_2"
PGD_LINF: AttackName = "PGD l_inf"
MARGIN_L2: AttackName = "PGD l_2, margin"
LINF_ATTACKS, L2_ATTACKS = (RFGSM, PGD_LINF), (PGD_L2, MARGIN_L2)
ATTACKS = LINF_ATTACKS + L2_ATTACKS
NO_ATTACK = "none"


class Training(ex.Settings):
  """A plain training, and what follows with fairness and robustness.

  Attributes:
    network: which one; "strided_cnn" is for two cores, the thesis's three are
      "cnn", "resnet50" and "vgg13".
    warm_steps: of plain training with cross-entropy, before anything else.
    steps: of every setting, from there.
    batch_size: of both.
    learning_rate: of both, by Adam.
  """

  network: Network = "strided_cnn"
  warm_steps: Count = 400
  steps: Count = 150
  batch_size: Count = 64
  learning_rate: ex.Positive = 2e-3

  def plain(self, steps: int) -> training.FitConfig:
    """Steps of plain training."""
    return training.FitConfig(
      learning_rate=self.learning_rate, steps=steps, batch_size=self.batch_size
    )


class NetworkConfig(ex.Settings):
  """What all configs of networks have.

  Attributes:
    data: which images; their pixels lie in [0, 1]. The group is the class
      (`group = "label"`) where the thesis has it so.
    training: the network and its training.
    method: how fairness is asked for: "penalty" on gaps of group losses, or
      "focus" on the groups that lose most.
    strengths: lambda of the penalty, or q of the focus.
    losses: what is trained with.
    defences: epsilon_* of PGD training; 0 for none.
    attacks: with which the models are tested.
    linf_epsilons: sizes of pushes of every pixel.
    l2_epsilons: sizes of pushes of the whole image.
    attack_steps: of PGD, in tests and in training.
    seeds: repetitions.
    train_people: how many to train on.
    test_people: how many to test on.
  """

  data: ex.People = ex.People(name="digits", group="label")
  training: Training = Training()
  method: Literal["penalty", "focus"] = "penalty"
  strengths: ex.Sweep[ex.NonNegative] = (0.0, 0.5, 1.0, 2.0)
  losses: ex.Sweep[LossName] = ("cross_entropy", "ramp")
  defences: ex.Sweep[ex.NonNegative] = (0.0,)
  attacks: ex.Sweep[AttackName] = (RFGSM, PGD_L2)
  linf_epsilons: ex.Sweep[ex.NonNegative] = (0.005, 0.01, 0.02)
  l2_epsilons: ex.Sweep[ex.NonNegative] = (0.1, 0.2, 0.4)
  attack_steps: Count = 4
  seeds: Count = 5
  train_people: int = 3000
  test_people: Count = 500

  def check(self) -> None:
    """A batch comes from the training people."""
    checks.integer(
      "train_people",
      self.train_people,
      low=self.training.batch_size,
      remedy="a batch has training.batch_size people",
    )


def precheck(config: NetworkConfig, dataset: data.Dataset) -> None:
  """Refuses images with other pixels, and more people than there are."""
  robustness.check_range(dataset.examples.x[:1000], PIXELS)
  needed = config.train_people + config.test_people
  checks.require(
    needed <= dataset.size,
    f"train_people + test_people = {needed}, but {dataset.name} has {dataset.size} people; ask "
    "for fewer",
  )


def cells(config: NetworkConfig) -> list[ex.Cell]:
  """One cell per seed."""
  return [{"seed": seed} for seed in range(config.seeds)]


def run(config: NetworkConfig, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All settings of one seed."""
  dataset = context.load(config.data)
  train, test = _split(config, dataset, int(cell["seed"]), context.shared_key)
  model = models.network(config.training.network, dataset.num_classes)
  key_warm, key_train, key_attack = jax.random.split(context.key, 3)
  warm = training.fit(
    model,
    models.cross_entropy,
    train,
    config.training.plain(config.training.warm_steps),
    key=key_warm,
  ).params
  tables = []
  for name in config.losses:
    for defence in config.defences:
      fitted = _train(
        config, model, LOSSES[name], train, dataset.num_groups, warm, defence, key_train
      )
      for index, strength in enumerate(config.strengths):
        settings = {**cell, "loss": name, "defence": defence, "strength": strength}
        params = tree.take(fitted, index)
        tables.append(measure(config, settings, model, params, test, dataset, key_attack))
  table = ex.Table.concat(tables)
  return table.plus(
    setting=[f"{strength:g}" for strength in table["strength"]],
    fair=np.where(table["strength"] > 0, "yes", "no"),
    panel=[
      f"{attack}, {loss}" for attack, loss in zip(table["attack"], table["loss"], strict=True)
    ],
  )


def measure(
  config: NetworkConfig,
  settings: ex.Cell,
  model: Model,
  params: Params,
  test: Examples,
  dataset: data.Dataset,
  key: jax.Array,
) -> ex.Table:
  """One model's rows: as it is, and under every attack and epsilon."""
  groups = [*dataset.group_names, EVERYONE]
  scores = models.scores(model, params, test.x)
  distance = analysis.mean_by_group(analysis.top_two_margin(scores), test.group, dataset.num_groups)
  tables: list[ex.Table] = []
  for name in config.attacks:
    how, loss, epsilons = _attack(config, name)
    # Errors count who is broken; how badly does not matter. One random step is
    # soon taken, and may fail at one epsilon and not at a smaller one.
    found = robustness.attack(
      model,
      params,
      test,
      how,
      epsilons=epsilons,
      key=key,
      loss=loss,
      stop="smallest" if how.steps > 1 else "end",
    )
    errors = robustness.attack_errors(model, params, test, found, num_groups=dataset.num_groups)
    if not tables:  # natural errors are every attack's
      values = {
        "natural_error": _both(errors.natural),
        "distance": _both(distance),
        "violation": [*[np.nan] * dataset.num_groups, float(errors.violation)],
      }
      plain = {**settings, "attack": NO_ATTACK, "epsilon": 0.0}
      tables.append(ex.Table.from_arrays(plain, {"group": groups}, values))
    tables.append(
      ex.Table.from_arrays(
        {**settings, "attack": name},
        {"epsilon": epsilons, "group": groups},
        {"boundary_error": _both(errors.boundary), "robust_error": _both(errors.robust)},
      )
    )
  return ex.Table.concat(tables)


def notes(config: NetworkConfig) -> list[str]:
  """What the numbers are."""
  used = config.training
  return [
    f"Network: {used.network}, {used.warm_steps} plain steps with "
    f"cross-entropy, then {used.steps} steps per setting, batches of "
    f"{used.batch_size}, Adam at {used.learning_rate:g}. The plain start is "
    "ours: from a random start the ramp loss has no gradient for most images, "
    "and a strong penalty finds the model that treats all images alike.",
    f"{config.train_people} images to train on and {config.test_people} to "
    "test on, drawn anew for every seed. Intervals are over seeds.",
    "Distance to the boundary is the thesis's proxy: the largest softmax output minus the second.",
    "An attack gives a lower bound: an image that it does not break may still "
    "be broken by another. RFGSM: half of epsilon at random, half along the "
    f"gradient. PGD: a full step, then {config.attack_steps} of a quarter.",
  ]


def _split(
  config: NetworkConfig, dataset: data.Dataset, seed: int, key: jax.Array
) -> tuple[Examples, Examples]:
  rows = data.split_rows(
    dataset.size,
    (config.train_people, config.test_people),
    key=jax.random.fold_in(key, seed),
    unit=dataset.unit,
  )
  return dataset.examples.take(rows[0]), dataset.examples.take(rows[1])


def _train(
  config: NetworkConfig,
  model: Model,
  loss: PerExampleLoss,
  train: Examples,
  num_groups: int,
  warm: Params,
  defence: float,
  key: jax.Array,
) -> Params:
  """[strengths] parameters, all from one start, with the same batches."""
  count = len(config.strengths)
  strengths = jnp.asarray(config.strengths, jnp.float32)
  penalised = config.method == "penalty"
  settings = training.FairRobustConfig(
    num_groups=num_groups,
    plain=config.training.plain(config.training.steps),
    penalty=strengths if penalised else 0.0,
    focus=None if penalised else strengths,
    adversary=_pgd(config, robustness.LINF) if defence else None,
    epsilon=float(defence),
  )
  return training.fit_many(
    model,
    loss,
    train,
    settings,
    keys=jnp.stack([key] * count),
    trainer=training.fair_robust,
    initial=jax.tree.map(lambda leaf: jnp.stack([leaf] * count), warm),
  ).params


def _attack(
  config: NetworkConfig, name: str
) -> tuple[robustness.Attack, PerExampleLoss, tuple[float, ...]]:
  if name == RFGSM:
    how = robustness.rfgsm(input_range=PIXELS)
    return how, models.cross_entropy, config.linf_epsilons
  if name == PGD_LINF:
    how = _pgd(config, robustness.LINF)
    return how, models.cross_entropy, config.linf_epsilons
  loss = models.cross_entropy if name == PGD_L2 else robustness.negative_margin
  return _pgd(config, robustness.L2), loss, config.l2_epsilons


def _pgd(config: NetworkConfig, ball: robustness.Ball) -> robustness.Attack:
  return robustness.pgd(ball, input_range=PIXELS, steps=config.attack_steps)


def _both(means: analysis.ByGroup) -> np.ndarray:
  """[..., G + 1]: the groups, then everybody."""
  everybody = np.asarray(means.population)[..., None]
  return np.concatenate([np.asarray(means.group), everybody], axis=-1)
