"""Does DP-SGD keep its promise? Lower bounds on epsilon beside the claim."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import accounting, auditing, checks, data, models, tree
from jaxfair.experiments.people import People, load_people
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import mean_above
from jaxfair.studies.protocol import Claim, Figure, Finding, Summary
from jaxfair.training import DpSgdConfig, calibrate, dp_sgd, map_members
from jaxfair.training.ensembles import default_chunk
from jaxfair.types import Examples, Model

ONE_RUN, ONE_STEP = "one run", "one step"
METHODS: tuple[auditing.Method, ...] = ("gaussian", "threshold")
STEP_BATCH = 32  # people beside the canary in the step that is audited
BOUNDS = {"row": "bound"}


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the audit.

  Attributes:
    data: among whom the canaries hide; synthetic people by default.
    people: at most so many of them, chosen at random.
    hidden: widths of the network's hidden layers; none for softmax regression.
    epsilons: budgets that trainings are calibrated to.
    delta: of the budgets.
    steps: of a training.
    batch_size: expected size of its batches.
    l2_clip: bound on a gradient's norm.
    learning_rate: of plain SGD.
    canaries: hidden in each training.
    seeds: trainings, and audits of a step, per budget.
    runs: of one step, on each neighbour.
    confidence: of every bound.
  """

  data: People | None = None
  people: int = 4000
  hidden: tuple[int, ...] = ()
  epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
  delta: float = 1e-5
  steps: int = 200
  batch_size: int = 800
  l2_clip: float = 1.0
  learning_rate: float = 0.5
  canaries: int = 4000
  seeds: int = 10
  runs: int = 100_000
  confidence: float = 0.95

  def __post_init__(self) -> None:
    checks.require(
      len(self.epsilons) > 0, "epsilons is empty; name a budget to audit"
    )
    for epsilon in self.epsilons:
      checks.positive("epsilons", epsilon)
    for name in ("delta", "confidence"):
      checks.number(
        name, getattr(self, name), low=0.0, high=1.0, open_low=True,
        open_high=True,
      )  # fmt: skip
    for name in ("people", "steps", "batch_size", "seeds"):
      checks.integer(name, getattr(self, name), low=1)
    for width in self.hidden:
      checks.integer("hidden", width, low=1)
    checks.integer("canaries", self.canaries, low=10)
    checks.integer("runs", self.runs, low=32)
    for name in ("l2_clip", "learning_rate"):
      checks.positive(name, getattr(self, name))

  @property
  def joint_confidence(self) -> float:
    """With which all bounds of the study hold at once."""
    bounds = len(self.epsilons) * self.seeds * (1 + len(METHODS))
    return 1 - (1 - self.confidence) / bounds


def cells(config: Config) -> list[protocol.Settings]:
  """One cell per budget and kind of audit."""
  if config.data is not None:
    load_people(config.data)  # a missing file is found before any work
  return [
    {"audit": audit, "epsilon": epsilon}
    for epsilon in config.epsilons
    for audit in (ONE_RUN, ONE_STEP)
  ]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All audits of one kind at one budget."""
  people, num_classes = _people(config, context)
  model = models.logistic(num_classes)
  if config.hidden:
    model = models.mlp(config.hidden, num_classes)
  size = people.size + config.canaries
  training = calibrate(
    DpSgdConfig(
      learning_rate=config.learning_rate, l2_clip=config.l2_clip,
      steps=config.steps, batch_size=config.batch_size,
    ),
    size, epsilon=float(cell["epsilon"]), delta=config.delta,
  )  # fmt: skip
  audit = _one_run if cell["audit"] == ONE_RUN else _one_step
  rows = audit(config, training, model, people, context.key)
  names = dict.fromkeys(name for row in rows for name in row)
  columns = {name: [row.get(name) for row in rows] for name in names}
  same = {name: [value] * len(rows) for name, value in cell.items()}
  return Table(same | columns)


def _one_run(
  config: Config, training: DpSgdConfig, model: Model, people: Examples,
  key: jax.Array,
) -> list[dict[str, Any]]:  # fmt: skip
  """Canaries hidden in whole trainings, all seeds in one program."""
  size = people.size + config.canaries
  event = training.event(size)
  rate, noise = event.sampling_rate, event.noise_multiplier
  canaries = auditing.gradient_canaries(
    model, models.cross_entropy, people, num_canaries=config.canaries,
    norm=1e3 * config.l2_clip,
  )  # fmt: skip
  recorder = auditing.likelihood_recorder(
    optax.sgd, sampling_rate=rate, noise_multiplier=noise,
    l2_clip=config.l2_clip, batch_size=config.batch_size,
  )  # fmt: skip
  recorded = dataclasses.replace(training, optimizer=recorder, loop="scan")

  def train(key: jax.Array, people: Examples) -> tuple[jax.Array, jax.Array]:
    key_coins, key_training = jax.random.split(key)
    included = canaries.flip(key=key_coins)
    fitted = dp_sgd(
      canaries.model, canaries.loss, canaries.hide(people, included), recorded,
      key=key_training,
    )  # fmt: skip
    return canaries.scores(fitted.params), included

  keys = jax.random.split(key, config.seeds)
  found = map_members(train, keys, people, chunk=default_chunk())
  scores, included = map(np.asarray, found)
  claimed = accounting.composed_epsilon(
    [event], delta=config.delta, relation=accounting.Relation.ZERO_OUT
  )
  separation = auditing.likelihood_separation(
    sampling_rate=rate, noise_multiplier=noise, steps=config.steps
  )

  rows = []
  for seed in range(config.seeds):
    own = (scores[seed], included[seed])
    bounds = []
    for confidence in (config.confidence, config.joint_confidence):
      guesses = auditing.plan_guesses(
        config.canaries, separation=separation, delta=config.delta,
        confidence=confidence,
      )  # fmt: skip
      found = auditing.audit_one_run(
        *own, delta=config.delta, confidence=confidence, guesses=guesses
      )
      bounds.append(found.epsilon)
    rows.append(_row("canaries", seed, claimed, bounds))
    rows += _guesses(*own, seed, claimed)
  return rows


def _one_step(
  config: Config, training: DpSgdConfig, model: Model, people: Examples,
  key: jax.Array,
) -> list[dict[str, Any]]:  # fmt: skip
  """One step on a fixed batch, many times, with and without a canary."""
  batch = people.take(slice(min(STEP_BATCH, people.size)))
  canary = auditing.gradient_canaries(
    model, models.cross_entropy, batch, num_canaries=1,
    norm=1e3 * config.l2_clip,
  )  # fmt: skip
  without, present = (
    canary.hide(batch, jnp.array([there])) for there in (False, True)
  )
  step = dataclasses.replace(
    training, steps=1, batch_size=without.size, max_batch=None, loop="scan"
  )
  start = canary.model.init(jax.random.key(0), without.x[0])

  def released(examples: Examples, key: jax.Array) -> Any:
    fitted = dp_sgd(
      canary.model, canary.loss, examples, step, key=key, initial=start
    )
    others = tree.subtract(fitted.params, start)["model"]
    size = tree.norm(others)
    return canary.scores(fitted.params), size

  noise = float(training.noise_multiplier)
  claimed = accounting.gaussian_epsilon(sigma=noise, delta=config.delta)
  rows = []
  for seed, own in enumerate(jax.random.split(key, config.seeds)):
    scores = auditing.attack_scores(
      released, without, present, num_runs=config.runs, key=own
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


def _row(
  method: str, seed: int, claimed: float, bounds: Sequence[float]
) -> dict[str, Any]:
  each, joint = bounds
  return {
    **BOUNDS, "method": method, "seed": seed, "claimed": claimed,
    "lower_bound": each, "joint_bound": joint, "share": each / claimed,
  }  # fmt: skip


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
    for told, value in (("attained", right), ("allowed", allowed)):
      rows.append(
        {"row": "guess", "seed": seed, "guesses": 2 * int(count), "who": told,
         "right": value}
      )  # fmt: skip
  return rows


def _people(config: Config, context: protocol.Context) -> tuple[Examples, int]:
  """Scaled people, the same for all cells, and their number of classes."""
  if config.data is None:
    half = -(-config.people // 2)
    chosen = data.two_gaussians((half, half), key=context.shared_key)
  else:
    chosen, note = load_people(config.data)
    context.say(note)
  order = jax.random.permutation(
    jax.random.fold_in(context.shared_key, 1), chosen.size
  )
  some = chosen.examples.take(np.asarray(order[: config.people]))
  scaler = data.fit_scaler(np.asarray(some.x))
  some = some._replace(x=scaler.apply(some.x))
  return jax.tree.map(jnp.asarray, some), chosen.num_classes


def _not_caught(table: Table) -> Finding:
  """No bound exceeds its claim, at a level that holds for all at once."""
  rows = table.where(**BOUNDS)
  shares = rows["joint_bound"] / rows["claimed"]
  most = float(shares.max())
  # The truth lies between what an audit showed and what is claimed.
  return Finding(
    "largest lower bound over its claim, all audits jointly", most, most,
    max(1.0, most), most <= 1,
  )  # fmt: skip


def _notes(config: Config) -> list[str]:
  return [
    "A lower bound is what the attack could show. A bound above the claim is "
    "evidence of a mistake; one below it is no proof of privacy.",
    f"{ONE_RUN}: {config.canaries} canaries, each in or out by a coin, hide in "
    "a whole training; what is claimed is the training's epsilon for one "
    "record replaced by an empty one.",
    f"{ONE_STEP}: a step on a fixed batch, {config.runs} times with and "
    "without a canary; what is claimed is the epsilon of its Gaussian noise. "
    'The method "threshold" assumes nothing, "gaussian" that the claim is '
    "about a Gaussian trade-off curve, as it is here.",
    "Trained on canaries: these models are for audits, not for release.",
  ]


STUDY = protocol.Study(
  name="audit",
  summary="Does DP-SGD keep its promise? Lower bounds on epsilon by attack.",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  summaries=(
    Summary(
      "Claimed, and shown by attack",
      by=("audit", "method", "epsilon"),
      values=("claimed", "lower_bound", "share"),
      where=BOUNDS,
    ),
  ),
  claims=(
    Claim(
      "not caught",
      "The implementation is not caught violating its claim",
      _not_caught,
    ),
    Claim(
      "canaries",
      "Canaries in one training show at least 30% of its epsilon",
      mean_above("share", 0.3, where={"method": "canaries"}),
    ),
    Claim(
      "gaussian",
      "Many runs of one step show at least 60% of its epsilon",
      mean_above("share", 0.6, where={"method": "gaussian"}),
    ),
  ),
  figures=(
    Figure(
      "share",
      "How much of the claimed epsilon the attacks show",
      x="epsilon",
      y="share",
      color="method",
      mark="line",
      x_title="epsilon of the whole training",
      y_title="lower bound / claim",
      log_x=True,
      where=BOUNDS,
      reference=1.0,
      caption="Above the line at 1 a claim would be refuted. Canaries speak of "
      "the whole training, the other two of one of its steps.",
    ),
    Figure(
      "guesses",
      "How often the boldest guesses about canaries are right",
      x="guesses",
      y="right",
      color="who",
      facet="epsilon",
      mark="line",
      x_title="guesses, boldest first",
      y_title="share that is right",
      log_x=True,
      where={"row": "guess"},
      caption="Attained by the attack, and the most that epsilon allows. The "
      "bound trades few bold guesses against many timid ones.",
    ),
  ),
)
