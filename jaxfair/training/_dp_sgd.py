"""DP-SGD: sample, clip each person, add noise to the sum, step."""

import dataclasses
import functools
import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxfair import accounting, checks, models, tree
from jaxfair.privacy import noise
from jaxfair.privacy._adaptive import QuantileClip
from jaxfair.privacy._clipping import Method, clipped_grad, refuse_64_bit_mode, zero_broken
from jaxfair.privacy._sampling import Batch, PoissonSampler
from jaxfair.training import _batches, _driver
from jaxfair.training._optimizers import Optimizer
from jaxfair.training._penalties import Penalty, UncoveredError
from jaxfair.training._shifted import shifted
from jaxfair.types import Examples, Fit, Model, Params, PerExampleLoss

# What truncating batches may add to delta if the caller sets no cap: far below
# any delta in use, and a cap some seven deviations above the mean.
DEFAULT_DELTA_SHARE = 1e-10


@functools.partial(
  jax.tree_util.register_dataclass,
  data_fields=["learning_rate", "l2_clip", "noise_multiplier", "weight_decay", "penalty"],
  meta_fields=[
    "steps",
    "batch_size",
    "max_batch",
    "optimizer",
    "method",
    "per_layer",
    "adaptive",
    "loop",
  ],
)
@dataclasses.dataclass(frozen=True)
class DpSgdConfig:
  """Settings of DP-SGD.

  The first four fields are numbers that may be traced: stacked values are
  swept by `fit_many` in one program. The others fix the program's shape.

  Attributes:
    learning_rate: handed to the optimizer.
    l2_clip: bound C on the norm of one person's gradient (where it starts, if
      `adaptive`).
    noise_multiplier: standard deviation of the noise over C; 0 trains without
      privacy, and then no event can be had.
    weight_decay: adds weight_decay / 2 ||theta||^2 to the objective; depends
      on the parameters alone, so it costs nothing.
    steps: how many batches.
    batch_size: expected batch size; each person takes part in a step with
      probability batch_size / n.
    max_batch: public cap on a batch; None chooses one that is practically
      never reached.
    optimizer: `learning_rate -> optax.GradientTransformation`.
    method: how gradients are clipped; see `privacy.clipped_grad`.
    per_layer: clips each layer by itself.
    adaptive: moves the clip bound towards a private quantile of the norms.
    loop: see `driver.choose_loop`.
    penalty: a term of the objective behind clipping and noise (or inside the
      clip, if it says so), such as `risk_penalty` or `parity_penalty`; None
      for none. Its weights may be swept too.
  """

  learning_rate: Any = 0.1
  l2_clip: Any = 1.0
  noise_multiplier: Any = 1.0
  weight_decay: Any = 0.0
  steps: int = 1000
  batch_size: int = 256
  max_batch: int | None = None
  optimizer: Optimizer = optax.sgd
  method: Method = "auto"
  per_layer: bool = False
  adaptive: QuantileClip | None = None
  loop: _driver.Loop = "auto"
  penalty: Penalty | None = None

  def check(self, model: Model, loss: PerExampleLoss, examples: Examples) -> None:
    """Refuses what cannot be trained privately, before any work.

    Non-finite examples are not refused: whether somebody's record is broken is
    nobody's business. They contribute nothing.
    """
    checks.positive("learning_rate", self.learning_rate)
    checks.positive("l2_clip", self.l2_clip)
    checks.non_negative("noise_multiplier", self.noise_multiplier)
    checks.non_negative("weight_decay", self.weight_decay)
    checks.integer("steps", self.steps, low=1)
    size = checks.people(examples)
    self.sampler(size)
    check_per_example(model, loss, examples)
    if self.penalty is not None:
      self.penalty.check(model)

  def sampler(self, num_examples: int) -> PoissonSampler:
    """The sampler this config trains with on n examples."""
    checks.integer(
      "batch_size",
      self.batch_size,
      low=1,
      high=num_examples,
      remedy="it is the expected size of a batch",
    )
    rate = self.batch_size / num_examples
    cap = self.max_batch
    if cap is None:
      cap = accounting.max_batch_for(
        dataset_size=num_examples,
        sampling_rate=rate,
        steps=self.steps,
        delta_share=DEFAULT_DELTA_SHARE,
      )
      cap = max(math.ceil(self.batch_size), min(cap, num_examples))
    return PoissonSampler(num_examples, rate, cap)

  def event(self, num_examples: int) -> accounting.DpSgd:
    """What a training with this config on n examples is charged as.

    Raises:
      UncoveredError: if the penalty reads private data.
    """
    self.refuse_uncovered()
    multiplier = self.noise_multiplier
    if self.adaptive is not None:
      multiplier = self.adaptive.joint_multiplier(float(multiplier))
    sampler = self.sampler(num_examples)
    return accounting.DpSgd(
      float(multiplier), sampler.rate, self.steps, num_examples, sampler.max_batch
    )

  def refuse_uncovered(self) -> None:
    """Raises `UncoveredError` if the penalty reads private data."""
    if self.penalty is not None and not self.penalty.public:
      raise UncoveredError(
        "the penalty reads private data without clipping or noise, so no "
        "epsilon covers this training; compute it on public data, or ask "
        "training.clipped_part_event for the part that is covered"
      )


class NonPrivateDpTrace(NamedTuple):
  """What happened along a private training, seen without noise.

  Not for release: the accountant covers the parameters, not these numbers.
  Reports of private runs leave them out.

  Attributes:
    loss: [steps] mean loss of the batch before the step.
    mean_norm: [steps] mean gradient norm before clipping.
    clipped: [steps] share of the batch whose gradient was clipped.
    batch: [steps] realised batch sizes.
    num_nonfinite: [steps] examples left out for a non-finite gradient.
    l2_clip: [steps] the bound in use. This one is private when `adaptive`
      moved it, and a constant otherwise.
  """

  loss: jax.Array
  mean_norm: jax.Array
  clipped: jax.Array
  batch: jax.Array
  num_nonfinite: jax.Array
  l2_clip: jax.Array


class DpSgdState(NamedTuple):
  """What the next step needs, and a checkpoint holds."""

  params: Params
  optimizer: Any
  l2_clip: jax.Array


def dp_sgd(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: DpSgdConfig = DpSgdConfig(),
  *,
  key: jax.Array,
  initial: Params | None = None,
) -> Fit:
  """Trains a model with differentially private stochastic gradient descent.

  g = (sum_i clip(grad_i, C) + N(0, (C z)^2 I)) / (q n),  then one step of any
  optimizer on g.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    examples: the private data.
    config: settings.
    key: initial parameters, samples and noise. For a release it must come from
      the operating system: `privacy.os_key()`.
    initial: parameters to start from; they must not depend on the private
      data. Drawn by `model.init` if None.

  Returns:
    `Fit(params, NonPrivateDpTrace)`.

  Privacy:
    The parameters (all of them, at every step) are what
    `config.event(examples.size)` says, for adding or removing one example; n
    is public. The divisor is the expected batch size, a public constant.
    Nothing is charged here: `train_to_budget` keeps the ledger.

  Reference:
    Abadi et al. 2016.
  """
  checks.one_key("key", key)
  config.check(model, loss, examples)
  traced = not checks.concrete((examples, config, key, initial))
  loop = _driver.choose_loop(config.loop, model, examples.x, traced=traced)
  config = dataclasses.replace(config, loop=loop)
  work = _train_jit if loop == "scan" else _train
  return work(model, loss, examples, config, key, initial)


def check_per_example(model: Model, loss: PerExampleLoss, examples: Examples) -> None:
  """Refuses a model or loss that couples examples: clipping would not hold."""
  refuse_64_bit_mode()
  one = jax.ShapeDtypeStruct(examples.x.shape[1:], examples.x.dtype)
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  few = jax.ShapeDtypeStruct((4, *one.shape), one.dtype)
  models.check_independent(model, params, few)
  logits = jax.eval_shape(model.apply, params, few)
  y_one = jnp.zeros(examples.y.shape[1:], examples.y.dtype)
  models.check_loss(loss, logits.shape[-1], y_one=y_one)


def _train(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: DpSgdConfig,
  key: jax.Array,
  initial: Params | None,
) -> Fit:
  state = begin(model, examples, config, key, initial)
  state, trace = advance(model, loss, examples, config, state, key=key, count=config.steps)
  return Fit(state.params, trace)


_train_jit = jax.jit(_train, static_argnames=("model", "loss"))


@functools.partial(jax.jit, static_argnames=("model",))
def begin(
  model: Model, examples: Examples, config: DpSgdConfig, key: jax.Array, initial: Params | None
) -> DpSgdState:
  """The state before the first step."""
  if initial is None:
    one = jnp.zeros(examples.x.shape[1:], examples.x.dtype)
    initial = model.init(jax.random.fold_in(key, 0), one)
  state = config.optimizer(config.learning_rate).init(initial)
  return DpSgdState(initial, state, jnp.asarray(config.l2_clip, jnp.float32))


class Feed(NamedTuple):
  """What one step is given: its batch, keys of two noises and a penalty."""

  batch: Batch
  key_sum: jax.Array
  key_count: jax.Array
  key_penalty: jax.Array


@functools.partial(jax.jit, static_argnames=("num_examples", "count"))
def make_feeds(
  config: DpSgdConfig, num_examples: int, count: int, *, key: jax.Array, start: Any = 0
) -> Feed:
  """Samples and keys of `count` steps from `start` on.

  Keys are named by the step's index, so a training cut into segments draws
  the same samples and noise as one in a piece.
  """
  sampler = config.sampler(num_examples)
  key_batch, *keys = (jax.random.fold_in(key, purpose) for purpose in (1, 2, 3, 4))

  def one(step: jax.Array) -> Feed:
    return Feed(
      sampler.draw(key=jax.random.fold_in(key_batch, step)),
      *(jax.random.fold_in(own, step) for own in keys),
    )

  return jax.vmap(one)(start + jnp.arange(count))


@dataclasses.dataclass(frozen=True)
class _Feeds:
  """`make_feeds` from (config, key)."""

  num_examples: int

  def __call__(self, source: Any, start: Any, count: int) -> Feed:
    config, key = source
    return make_feeds(config, self.num_examples, count, key=key, start=start)


def advance(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: DpSgdConfig,
  state: DpSgdState,
  *,
  key: jax.Array,
  count: int,
  start: Any = 0,
) -> tuple[DpSgdState, NonPrivateDpTrace]:
  """Takes `count` steps from `start` on."""
  step = DpSgdStep(
    model,
    loss,
    config.optimizer,
    float(config.batch_size),
    config.method,
    config.per_layer,
    config.adaptive,
  )
  loop: Literal["scan", "step"] = "step" if config.loop == "step" else "scan"
  people, finite = zero_broken(jax.tree.map(jnp.asarray, examples))
  size = examples.x.shape[0]
  found, trace = _driver.run_blocks(
    step,
    state,
    _Feeds(size),
    (config, key),
    (people, finite, config),
    steps=count,
    start=start,
    rows=config.sampler(size).max_batch,
    loop=loop,
  )
  return found, trace


@dataclasses.dataclass(frozen=True)
class DpSgdStep:
  """One step: static parts only."""

  model: Model
  loss: PerExampleLoss
  optimizer: Optimizer
  expected_size: float
  method: Method
  per_layer: bool
  adaptive: QuantileClip | None

  def __call__(
    self, state: DpSgdState, feed: Feed, inputs: tuple[Examples, jax.Array, DpSgdConfig]
  ) -> tuple[DpSgdState, NonPrivateDpTrace]:
    """Samples, clips, adds noise, averages, steps."""
    everybody, finite, config = inputs
    rows, mask = feed.batch
    extra = None
    if config.penalty is not None:
      extra = config.penalty.gradient(state.params, l2_clip=state.l2_clip, key=feed.key_penalty)
    inside = config.penalty is not None and config.penalty.inside
    model, loss, method = self.model, self.loss, self.method
    if inside:
      model, loss, method = *shifted(model, loss, extra), "vmap"
    gradient = clipped_grad(
      model, loss, l2_clip=state.l2_clip, method=method, per_layer=self.per_layer
    )
    people, whole = _batches.look_up((everybody, finite), rows)
    clipped, losses = gradient.with_losses(state.params, people, mask, whole)
    noisy = noise.gaussian(
      clipped.total, sigma=config.noise_multiplier * gradient.sensitivity, key=feed.key_sum
    )
    mean = tree.scale(1 / self.expected_size, noisy)
    mean = tree.add(mean, tree.scale(config.weight_decay, state.params))
    if extra is not None and not inside:
      mean = tree.add(mean, extra)
    updates, optimizer = self.optimizer(config.learning_rate).update(
      mean, state.optimizer, state.params
    )
    clip = state.l2_clip
    if self.adaptive is not None:
      # Whoever is left out of the sum is not counted, either: to be left out
      # is then as not to be there.
      clip = self.adaptive.update(
        clip, clipped.norms, mask & whole, expected_size=self.expected_size, key=feed.key_count
      )
    trace = _trace(losses, clipped, mask, state.l2_clip)
    params = optax.apply_updates(state.params, updates)
    return DpSgdState(params, optimizer, clip), trace


def _trace(losses: jax.Array, clipped: Any, mask: jax.Array, clip: jax.Array) -> NonPrivateDpTrace:
  count = jnp.sum(mask)
  share = 1 / jnp.maximum(count, 1)
  return NonPrivateDpTrace(
    loss=jnp.sum(jnp.where(mask, losses, 0.0)) * share,
    mean_norm=jnp.sum(clipped.norms) * share,
    clipped=jnp.sum(clipped.norms > clip) * share,
    batch=count,
    num_nonfinite=clipped.num_nonfinite,
    l2_clip=clip,
  )
