"""Does DP-SGD keep its promise? Lower bounds on epsilon beside the claim."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import _fields, accounting, auditing, data, models, tree
from jaxfair import experiments as ex
from jaxfair.accounting import _composition, _gaussian
from jaxfair.auditing import _bounds, _canaries, _mechanisms
from jaxfair.experiments import Count, Positive, _statistics, _study
from jaxfair.training import DpSgdConfig, calibrate, dp_sgd
from jaxfair.training._ensembles import default_chunk, map_members
from jaxfair.types import Examples, Model

ONE_RUN, ONE_STEP = "one run", "one step"
METHODS: tuple[_bounds.Method, ...] = ("gaussian", "threshold")
STEP_BATCH = 32  # people beside the canary in the step that is audited
BOUNDS = {"row": "bound"}


class Config(ex.Settings):
  """Settings of the audit."""

  data: ex.People | None = None  # among whom the canaries hide; synthetic people by default
  people: Count = 4000  # at most this many of them, chosen at random
  hidden: tuple[Count, ...] = ()  # the network's hidden layers; none for softmax regression
  epsilons: ex.Sweep[Positive] = (1.0, 2.0, 4.0, 8.0)  # budgets that trainings are calibrated to
  delta: ex.Probability = 1e-5  # of the budgets
  steps: Count = 200  # of a training
  batch_size: Count = 800  # expected size of its batches
  l2_clip: Positive = 1.0  # bound on a gradient's norm
  learning_rate: Positive = 0.5  # of plain SGD
  canaries: Annotated[int, _fields.Within(10)] = 4000  # hidden in each training
  seeds: Count = 10  # trainings, and audits of a step, per budget
  runs: Annotated[int, _fields.Within(32)] = 100_000  # of one step, on each neighbor
  confidence: ex.Probability = 0.95  # of every bound

  @property
  def joint_confidence(self) -> float:
    """With which all bounds of the study hold at once."""
    bounds = len(self.epsilons) * self.seeds * (1 + len(METHODS))
    return 1 - (1 - self.confidence) / bounds


@dataclasses.dataclass(frozen=True)
class Audited:
  """What an audit attacks."""

  config: Config
  training: DpSgdConfig  # calibrated to the cell's budget
  model: Model
  people: Examples  # among whom the canaries hide

  def canaries(self, people: Examples, count: int) -> _canaries.GradientCanaries:
    """Canaries with gradients far above the clip bound."""
    return auditing.gradient_canaries(
      self.model, models.cross_entropy, people, num_canaries=count, norm=1e3 * self.config.l2_clip
    )


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All audits of one kind at one budget."""
  people, num_classes = _people(config, context)
  kind = "mlp" if config.hidden else "logistic"
  model = models.network(kind, num_classes, hidden=config.hidden)
  training = calibrate(
    DpSgdConfig(
      learning_rate=config.learning_rate,
      l2_clip=config.l2_clip,
      steps=config.steps,
      batch_size=config.batch_size,
    ),
    people.size + config.canaries,
    epsilon=float(cell["epsilon"]),
    delta=config.delta,
  )
  audit = _one_run if cell["audit"] == ONE_RUN else _one_step
  rows = audit(Audited(config, training, model, people), context.key)
  return ex.Table.from_rows({**cell, **row} for row in rows)


def _one_run(own: Audited, key: jax.Array) -> list[dict[str, Any]]:
  """Canaries hidden in whole trainings, all seeds in one program."""
  config = own.config
  event = own.training.event(own.people.size + config.canaries)
  rate, noise = event.sampling_rate, event.noise_multiplier
  canaries = own.canaries(own.people, config.canaries)
  recorder = auditing.likelihood_recorder(
    optax.sgd,
    sampling_rate=rate,
    noise_multiplier=noise,
    l2_clip=config.l2_clip,
    batch_size=config.batch_size,
  )
  recorded = dataclasses.replace(own.training, optimizer=recorder, loop="scan")

  def train(key: jax.Array, people: Examples) -> tuple[jax.Array, jax.Array]:
    key_coins, key_training = jax.random.split(key)
    included = canaries.flip(key=key_coins)
    hidden = canaries.hide(people, included)
    fitted = dp_sgd(canaries.model, canaries.loss, hidden, recorded, key=key_training)
    return canaries.scores(fitted.params), included

  keys = jax.random.split(key, config.seeds)
  found = map_members(train, keys, own.people, chunk=default_chunk())
  scores, included = map(np.asarray, found)
  claimed = _composition.composed_epsilon(
    [event], delta=config.delta, relation=accounting.Relation.ZERO_OUT
  )
  separation = auditing.likelihood_separation(
    sampling_rate=rate, noise_multiplier=noise, steps=config.steps
  )

  rows = []
  for seed in range(config.seeds):
    bounds = []
    for confidence in (config.confidence, config.joint_confidence):
      level = {"delta": config.delta, "confidence": confidence}
      guesses = auditing.plan_guesses(config.canaries, separation=separation, **level)
      audit = auditing.audit_one_run(scores[seed], included[seed], guesses=guesses, **level)
      bounds.append(audit.epsilon)
    rows.append(_row("canaries", seed, claimed, bounds))
    rows += _guesses(scores[seed], included[seed], seed, claimed)
  return rows


def _one_step(own: Audited, key: jax.Array) -> list[dict[str, Any]]:
  """One step on a fixed batch, many times, with and without a canary."""
  config = own.config
  batch = own.people.take(slice(min(STEP_BATCH, own.people.size)))
  canary = own.canaries(batch, 1)
  without, present = (canary.hide(batch, jnp.array([there])) for there in (False, True))
  step = dataclasses.replace(
    own.training, steps=1, batch_size=without.size, max_batch=None, loop="scan"
  )
  start = canary.model.init(jax.random.key(0), without.x[0])

  def released(examples: Examples, key: jax.Array) -> Any:
    fitted = dp_sgd(canary.model, canary.loss, examples, step, key=key, initial=start)
    others = tree.subtract(fitted.params, start)["model"]
    size = tree.norm(others)
    return canary.scores(fitted.params), size

  noise = float(own.training.noise_multiplier)
  claimed = _gaussian.gaussian_epsilon(sigma=noise, delta=config.delta)
  rows = []
  for seed, own_key in enumerate(jax.random.split(key, config.seeds)):
    scores = _mechanisms.attack_scores(
      released, without, present, num_runs=config.runs, key=own_key
    )
    for method in METHODS:
      bounds = [
        auditing.epsilon_lower_bound(
          *scores, delta=config.delta, confidence=confidence, method=method
        ).epsilon
        for confidence in (config.confidence, config.joint_confidence)
      ]
      rows.append(_row(method, seed, claimed, bounds))
  return rows


def _row(method: str, seed: int, claimed: float, bounds: Sequence[float]) -> dict[str, Any]:
  each, joint = bounds
  return {
    **BOUNDS,
    "method": method,
    "seed": seed,
    "claimed": claimed,
    "lower_bound": each,
    "joint_bound": joint,
    "share": each / claimed,
  }


def _guesses(
  scores: np.ndarray, included: np.ndarray, seed: int, claimed: float
) -> list[dict[str, Any]]:
  """How often the boldest guesses are right, and may be under the claim."""
  ranked = included[np.argsort(-scores, kind="stable")]
  sides = (np.cumsum(ranked), np.cumsum(~ranked[::-1]))
  rows = []
  for count in np.unique(np.geomspace(5, len(ranked) // 2, 20).astype(int)):
    right = float(sides[0][count - 1] + sides[1][count - 1]) / (2 * count)
    allowed = 1 / (1 + math.exp(-claimed))
    guess = {"row": "guess", "seed": seed, "guesses": 2 * int(count)}
    rows.append({**guess, "who": "attained", "right": right})
    rows.append({**guess, "who": "allowed", "right": allowed})
  return rows


def _people(config: Config, context: _study.Context) -> tuple[Examples, int]:
  """Scaled people, the same for all cells, and their number of classes."""
  if config.data is None:
    half = -(-config.people // 2)
    chosen = data.two_gaussians((half, half), key=context.shared_key)
  else:
    chosen = context.load(config.data)
  order = jax.random.permutation(jax.random.fold_in(context.shared_key, 1), chosen.size)
  some = chosen.examples.take(np.asarray(order[: config.people]))
  scaler = data.fit_scaler(np.asarray(some.x))
  some = some._replace(x=scaler.apply(some.x))
  return jax.tree.map(jnp.asarray, some), chosen.num_classes


def _notes(config: Config) -> list[str]:
  return [
    "A lower bound is what the attack could show. A bound above the claim is evidence of a "
    "mistake; one below it is no proof of privacy.",
    f"{ONE_RUN}: {config.canaries} canaries, each in or out by a coin, hide in a whole training; "
    "what is claimed is the training's epsilon for one record replaced by an empty one.",
    f"{ONE_STEP}: a step on a fixed batch, {config.runs} times with and without a canary; what is "
    'claimed is the epsilon of its Gaussian noise. The method "threshold" assumes nothing, '
    '"gaussian" that the claim is about a Gaussian trade-off curve, as it is here.',
    "These models were trained on canaries: they are for audits, not for release.",
  ]


LARGEST = _statistics.exact(
  "largest lower bound over its claim, all audits jointly",
  lambda table: (table["joint_bound"] / table["claimed"]).max(),
).at(**BOUNDS)
SHARE = ex.mean("share")

STUDY = ex.Study(
  name="audit",
  summary="Does DP-SGD keep its promise? Lower bounds on epsilon by attack.",
  config=Config,
  cells=lambda config: [
    {"audit": audit, "epsilon": epsilon}
    for epsilon in config.epsilons
    for audit in (ONE_RUN, ONE_STEP)
  ],
  run=run,
  notes=_notes,
  claims={
    "not caught: The implementation is not caught violating its claim": LARGEST <= 1,
    "canaries: Canaries in one training show at least 30% of its epsilon": (SHARE > 0.3).at(
      method="canaries"
    ),
    "gaussian: Many runs of one step show at least 60% of its epsilon": (SHARE > 0.6).at(
      method="gaussian"
    ),
  },
  figures=(
    ex.lines(
      "share: How much of the claimed epsilon the attacks show",
      "share ~ epsilon, method",
      "Above the line at 1 a claim would be refuted. Canaries attack the whole training, the other "
      "two attack one of its steps.",
      log="x",
      where=BOUNDS,
      reference=1.0,
    ),
    ex.lines(
      "guesses: How often the boldest guesses about canaries are right",
      "right ~ guesses, who | epsilon",
      "Attained by the attack, and the most that epsilon allows. The bound trades few bold guesses "
      "against many timid ones.",
      log="x",
      where={"row": "guess"},
    ),
  ),
  titles={
    "epsilon": "epsilon of the whole training",
    "share": "lower bound / claim",
    "guesses": "guesses, boldest first",
    "right": "share that is right",
  },
  summaries=(
    ex.summary(
      "Claimed, and shown by attack", "claimed, lower_bound, share ~ audit, method, epsilon", BOUNDS
    ),
  ),
)
