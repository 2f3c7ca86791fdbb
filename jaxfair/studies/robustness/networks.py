"""What the studies of networks share: people, training, attacks, rows.

One cell is one seed: a fresh split and a plainly trained network, from which
every setting is trained on. All settings of a seed share both.
"""

import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, data, models, robustness, training, tree
from jaxfair import experiments as ex
from jaxfair.analysis import _boundary, _by_group
from jaxfair.experiments import EVERYONE, Count, _claims, _measures, _study
from jaxfair.models import _losses
from jaxfair.robustness import _attacks, _norm_balls
from jaxfair.types import Examples, Model, Params, PerExampleLoss

PIXELS = (0.0, 1.0)
LOSSES: dict[str, PerExampleLoss] = {
  "cross_entropy": models.cross_entropy,
  "ramp": _losses.ramp,
  "exponential": _losses.exponential,
}
Network = Literal["small_cnn", "strided_cnn", "mlp", "cnn", "resnet50", "vgg13"]
LossName = Literal["cross_entropy", "ramp", "exponential"]
AttackName = Literal["RFGSM l_inf", "PGD l_2", "PGD l_inf", "PGD l_2, margin"]
RFGSM: AttackName = "RFGSM l_inf"
PGD_L2: AttackName = "PGD l_2"
PGD_LINF: AttackName = "PGD l_inf"
MARGIN_L2: AttackName = "PGD l_2, margin"
LINF_ATTACKS, L2_ATTACKS = (RFGSM, PGD_LINF), (PGD_L2, MARGIN_L2)
ATTACKS = LINF_ATTACKS + L2_ATTACKS
NO_ATTACK = "none"
MOST_ERRORS = 0.25  # of a natural network whose boundary errors are looked at; ours
PLAIN, ALL = {"attack": NO_ATTACK}, {"group": EVERYONE}


class Training(ex.Settings):
  """A plain training, and what follows with fairness and robustness."""

  width: Count | None = None  # channels of the first convolution; each network's own by default
  warm_steps: Count = 400  # of plain training with cross-entropy, before anything else
  steps: Count = 150  # of every setting, from there
  batch_size: Count = 64  # of both, as is the rate of Adam
  learning_rate: ex.Positive = 2e-3

  def plain(self, steps: int) -> training.FitConfig:
    """Steps of plain training, at a rate that decays to zero."""
    return training.FitConfig(
      learning_rate=self.learning_rate,
      steps=steps,
      batch_size=self.batch_size,
      optimizer=training.named_optimizer("adam", "cosine", steps=steps),
    )


class NetworkConfig(ex.Settings):
  """What all configs of networks have."""

  # Pixels lie in [0, 1]; the group is the class (`group = "label"`) where the thesis has it so.
  data: ex.People = ex.People(name="digits", group="label")
  # The thesis has "cnn", "resnet50" and "vgg13"; "small_cnn" is for two cores.
  networks: ex.Sweep[Network] = ("small_cnn",)
  training: Training = Training()
  # A penalty on gaps of group losses, or focus on the groups that lose most.
  method: Literal["penalty", "focus"] = "penalty"
  strengths: ex.Sweep[ex.NonNegative] = (0.0, 0.5, 1.0, 2.0)  # lambda, or q of the focus
  losses: ex.Sweep[LossName] = ("cross_entropy", "ramp")  # what is trained with
  defences: ex.Sweep[ex.NonNegative] = (0.0,)  # epsilon_* of PGD training; 0 for none
  attacks: ex.Sweep[AttackName] = (RFGSM, PGD_L2)  # with which the models are tested
  linf_epsilons: ex.Sweep[ex.NonNegative] = (0.005, 0.01, 0.02)  # pushes of every pixel
  l2_epsilons: ex.Sweep[ex.NonNegative] = (0.1, 0.2, 0.4)  # pushes of the whole image
  attack_steps: Count = 4  # of PGD, in tests and in training
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
  """Raises for images with other pixel ranges, and for more people than the set has."""
  _attacks.check_range(dataset.examples.x[:1000], PIXELS)
  needed = config.train_people + config.test_people
  checks.require(
    needed <= dataset.size,
    f"train_people + test_people = {needed}, but {dataset.name} has {dataset.size} people; ask "
    "for fewer",
  )


def cells(config: NetworkConfig) -> list[_study.Cell]:
  """One cell per network and seed."""
  return [
    {"network": network, "seed": seed}
    for network in config.networks
    for seed in range(config.seeds)
  ]


def run(config: NetworkConfig, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All settings of one seed."""
  dataset = context.load(config.data)
  train, test = _split(config, dataset, int(cell["seed"]), context.shared_key)
  width, kind = config.training.width, str(cell["network"])
  model = models.network(kind, dataset.num_classes, width=width)
  key_warm, key_train, key_attack = jax.random.split(context.key, 3)
  plain = config.training.plain(config.training.warm_steps)
  warm = training.fit(model, models.cross_entropy, train, plain, key=key_warm).params
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
    setting="{strength:g}",
    fair=np.where(table["strength"] > 0, "yes", "no"),
    panel="{attack}, {loss}",
  )


def measure(
  config: NetworkConfig,
  settings: _study.Cell,
  model: Model,
  params: Params,
  test: Examples,
  dataset: data.Dataset,
  key: jax.Array,
) -> ex.Table:
  """One model's rows: as it is, and under every attack and epsilon."""
  groups = [*dataset.group_names, EVERYONE]
  scores = models.scores(model, params, test.x)
  distance = _by_group.mean_by_group(
    _boundary.top_two_margin(scores), test.group, dataset.num_groups
  )
  tables: list[ex.Table] = []
  for name in config.attacks:
    how, loss, epsilons = _attack(config, name)
    # Errors count who is broken; how badly does not matter. One random step is
    # soon taken, and may fail at one epsilon and not at a smaller one.
    stop: Any = "smallest" if how.steps > 1 else "end"
    found = robustness.attack(
      model, params, test, how, epsilons=epsilons, key=key, loss=loss, stop=stop
    )
    errors = robustness.attack_errors(model, params, test, found, num_groups=dataset.num_groups)
    if not tables:  # natural errors are every attack's
      values: dict[str, Any] = {
        "natural_error": _both(errors.natural),
        "distance": _both(distance),
        "violation": [*[np.nan] * dataset.num_groups, float(errors.violation)],
      }
      predicted = jnp.argmax(scores, -1)
      learned = _measures.beside_constant(test.y, predicted, dataset.num_classes)
      learned |= {"accuracy": 1 - values["natural_error"][-1]}
      nobody = [np.nan] * dataset.num_groups
      values |= {name: [*nobody, float(value)] for name, value in learned.items()}
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
  """Notes on what the numbers mean."""
  used = config.training
  return [
    f"Networks: {', '.join(config.networks)}, {used.warm_steps} plain steps with cross-entropy, "
    f"then {used.steps} steps per setting, batches of {used.batch_size}, Adam at a rate that "
    f"decays from {used.learning_rate:g} to 0. The plain start is ours: from a random start the "
    "ramp loss has no gradient for most images, and a strong penalty finds the model that treats "
    "all images alike.",
    f"{config.train_people} images to train on and {config.test_people} to test on, drawn anew for "
    "every seed. Intervals are over seeds.",
    "Distance to the boundary is the thesis's proxy: the largest softmax output minus the second.",
    "An attack gives a lower bound: an image that it does not break may still be broken by "
    "another. RFGSM: half of epsilon at random, half along the gradient. PGD: a full step, then "
    f"{config.attack_steps} of a quarter.",
  ]


def in_each_attack(check: _claims.Check) -> _claims.Check:
  """The check holds for every attack, on networks whose natural model errs rarely enough.

  What is wrong without a push cannot break, so the boundary errors of a poor network show nothing.
  """
  return in_each_network(check.in_each("attack").at(attack=ex.but(NO_ATTACK))).of(_good_networks)


def in_each_network(check: _claims.Check) -> _claims.Check:
  """The check holds for every network."""
  return check.in_each("network")


def _good_networks(table: ex.Table) -> ex.Table:
  """The rows of networks whose natural error is below `MOST_ERRORS`."""
  natural = _claims.narrowed(table, PLAIN | ALL | {"strength": min, "defence": min})
  errors = {name: own["natural_error"].mean() for (name,), own in natural.split("network")}
  good = tuple(name for name, error in errors.items() if error < MOST_ERRORS)
  told = ", ".join(f"{error:.0%} ({name})" for name, error in errors.items())
  if not good:
    raise _claims.CannotTellError(
      f"natural networks err for {told} of the images; claims about boundaries need less than "
      f"{MOST_ERRORS:.0%}"
    )
  return table.where(network=good)


study = functools.partial(
  ex.Study,
  cells=cells,
  run=run,
  precheck=precheck,
  notes=notes,
  plain={"strength": 0.0, "defence": 0.0},
)


def _split(
  config: NetworkConfig, dataset: data.Dataset, seed: int, key: jax.Array
) -> tuple[Examples, Examples]:
  sizes, own = (config.train_people, config.test_people), jax.random.fold_in(key, seed)
  train, test = data.split_rows(dataset.size, sizes, key=own, unit=dataset.unit)
  return dataset.examples.take(train), dataset.examples.take(test)


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
  penalized = config.method == "penalty"
  settings = training.FairRobustConfig(
    num_groups=num_groups,
    plain=config.training.plain(config.training.steps),
    penalty=strengths if penalized else 0.0,
    focus=None if penalized else strengths,
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
) -> tuple[_attacks.Attack, PerExampleLoss, tuple[float, ...]]:
  if name in LINF_ATTACKS:
    fast = name == RFGSM
    how = robustness.rfgsm(input_range=PIXELS) if fast else _pgd(config, robustness.LINF)
    return how, models.cross_entropy, config.linf_epsilons
  loss = models.cross_entropy if name == PGD_L2 else robustness.negative_margin
  return _pgd(config, robustness.L2), loss, config.l2_epsilons


def _pgd(config: NetworkConfig, ball: _norm_balls.Ball) -> _attacks.Attack:
  return robustness.pgd(ball, input_range=PIXELS, steps=config.attack_steps)


def _both(means: _by_group.ByGroup) -> np.ndarray:
  """[..., G + 1]: the groups, then everybody."""
  everybody = np.asarray(means.population)[..., None]
  return np.concatenate([np.asarray(means.group), everybody], axis=-1)
