"""PF-LD: training under fairness constraints with private group attributes.

Of the Lagrangian

  mean loss + sum_{s,a} mu_{s,a} (E[h | s, a] - E[h | s])

only E[h | s, a] knows groups. Each person's part in its gradient is clipped
and noised at every primal step, each person's part in its value at every dual
step, and the sizes of the groups once, at the start. All the rest is computed
as it is: features and labels are public here.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import accounting, checks, tree
from jaxfair.accounting.search import smallest_noise
from jaxfair.fairness.constraints import Notion
from jaxfair.fairness.groups import group_counts, group_sums
from jaxfair.privacy import noise
from jaxfair.privacy.clipping import Method, clipped_grad
from jaxfair.privacy.sampling import PoissonSampler
from jaxfair.training import driver
from jaxfair.training.dp_sgd import DpSgdConfig, check_per_example
from jaxfair.training.fit import Optimizer, check_anchor, penalty
from jaxfair.types import Examples, Fit, Model, Params, PerExampleLoss


@functools.partial(
  jax.tree_util.register_dataclass,
  data_fields=[
    "learning_rate", "weight_decay", "proximity", "dual_rate", "tolerance",
    "l2_clip", "noise_multiplier", "dual_noise", "count_noise",
  ],
  meta_fields=[
    "constraint", "rounds", "steps_per_round", "batch_size", "max_batch",
    "optimizer", "method", "loop",
  ],
)  # fmt: skip
@dataclasses.dataclass(frozen=True)
class PrivateLagrangianConfig:
  """Settings of `private_lagrangian`; `calibrated` sets the three noises.

  Attributes:
    learning_rate: of the primal optimizer.
    weight_decay: pulls all parameters to 0.
    proximity: pulls them to the `anchor`, which must not know groups.
    dual_rate: the multipliers' step.
    tolerance: the violation that is allowed.
    l2_clip: bound C on one person's part in the constraints' gradient.
    noise_multiplier: of that gradient, over C.
    dual_noise: of the violations, over what one attribute can move.
    count_noise: of the groups' sizes, likewise.
    constraint: a notion of `fairness.constraints` with a bounded statistic.
    rounds: dual steps.
    steps_per_round: primal steps before each of them.
    batch_size: expected size of a Poisson sample.
    max_batch: public cap on it; None chooses one that is never reached.
    optimizer: `learning_rate -> optax.GradientTransformation`.
    method: how gradients are clipped; see `privacy.clipped_grad`.
    loop: "scan"; anything else is refused.
  """

  learning_rate: Any = 1e-3
  weight_decay: Any = 0.0
  proximity: Any = 0.0
  dual_rate: Any = 0.5
  tolerance: Any = 0.0
  l2_clip: Any = 1.0
  noise_multiplier: Any = 1.0
  dual_noise: Any = 100.0
  count_noise: Any = 100.0
  constraint: Notion | None = None
  rounds: int = 50
  steps_per_round: int = 20
  batch_size: int = 256
  max_batch: int | None = None
  optimizer: Optimizer = optax.adam
  method: Method = "auto"
  loop: driver.Loop = "scan"

  def check(
    self, model: Model, loss: PerExampleLoss, examples: Examples
  ) -> None:
    """Refuses what cannot be trained privately, before any work."""
    for name in ("learning_rate", "l2_clip"):
      checks.positive(name, getattr(self, name))
    for name in (
      "weight_decay", "proximity", "dual_rate", "tolerance",
      "noise_multiplier", "dual_noise", "count_noise",
    ):  # fmt: skip
      checks.non_negative(name, getattr(self, name))
    checks.require(
      isinstance(self.constraint, Notion),
      "constraint must be a notion of fairness.constraints: other functions "
      "have no known sensitivity",
    )
    checks.require(
      math.isfinite(self.notion.bound) and self.notion.unmix is None,
      f"{self.notion.name} has no bound, so no noise protects it; pass "
      "bound=... or choose another notion",
    )
    checks.one_of("loop", self.loop, ("scan", "auto"))
    checks.integer("rounds", self.rounds, low=1)
    checks.integer("steps_per_round", self.steps_per_round, low=1)
    size = checks.same_length(**examples._asdict())
    checks.require(size > 0, "examples is empty; training needs some rows")
    checks.finite("examples.x", examples.x)
    checks.ids("examples.group", examples.group, self.notion.num_groups)
    self.sampler(size)
    check_per_example(model, loss, examples)

  @property
  def notion(self) -> Notion:
    """The constraint."""
    assert isinstance(self.constraint, Notion)
    return self.constraint

  def sampler(self, num_examples: int) -> PoissonSampler:
    """The sampler this config trains with on n examples."""
    return DpSgdConfig(
      steps=self.rounds * self.steps_per_round, batch_size=self.batch_size,
      max_batch=self.max_batch,
    ).sampler(num_examples)  # fmt: skip

  def event(self, num_examples: int) -> accounting.Event:
    """What a training on n people is charged as, for one group changed."""
    sampler = self.sampler(num_examples)
    return accounting.Composed(
      (
        accounting.DpSgd(
          float(self.noise_multiplier), sampler.rate,
          self.rounds * self.steps_per_round, num_examples, sampler.max_batch,
        ),
        accounting.Repeated(
          accounting.Gaussian(float(self.dual_noise)), self.rounds
        ),
        accounting.Gaussian(float(self.count_noise)),
      )
    )  # fmt: skip

  def guarantee(
    self, num_examples: int, *, delta: float
  ) -> accounting.PrivacyGuarantee:
    """What a training on n people costs, for one person's group changed."""
    return accounting.composed_guarantee(
      [self.event(num_examples)], delta=delta,
      relation=accounting.Relation.ATTRIBUTE,
    )  # fmt: skip

  def calibrated(
    self,
    num_examples: int,
    *,
    epsilon: float,
    delta: float,
    dual_share: float = 0.25,
    count_share: float = 0.05,
  ) -> "PrivateLagrangianConfig":
    """The same settings with noise for (epsilon, delta).

    Args:
      num_examples: n, public.
      epsilon: of the whole training, for one person's group.
      delta: likewise.
      dual_share: share of the budget (in zCDP) for the violations.
      count_share: for the groups' sizes; the primal gets all that is left.
    """
    for name, value in (("dual", dual_share), ("count", count_share)):
      checks.number(
        f"{name}_share", value, low=0.0, high=0.5, open_low=True, open_high=True
      )
    unit = accounting.discrete_gaussian_sigma(epsilon=epsilon, delta=delta)
    config = dataclasses.replace(
      self,
      dual_noise=unit * math.sqrt(self.rounds / dual_share),
      count_noise=unit / math.sqrt(count_share),
    )

    def cost(multiplier: float) -> float:
      own = dataclasses.replace(config, noise_multiplier=multiplier)
      try:
        return own.guarantee(num_examples, delta=delta).epsilon
      except accounting.NotCovered:  # hardly any noise
        return math.inf

    found = smallest_noise(cost, epsilon, 2.0)
    return dataclasses.replace(config, noise_multiplier=found)


class DualTrace(NamedTuple):
  """What happened along a training; covered by the same guarantee.

  Attributes:
    loss: [rounds] mean loss over the round's batches; knows no groups.
    gaps: [rounds, S, G, d] violations as seen through noise.
    multipliers: [rounds, 2, S, G, d] of gap and -gap.
    sizes: [S, G] noisy sizes.
  """

  loss: jax.Array
  gaps: jax.Array
  multipliers: jax.Array
  sizes: jax.Array


def private_lagrangian(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: PrivateLagrangianConfig,
  *,
  key: jax.Array,
  initial: Params | None = None,
  anchor: Params | None = None,
) -> Fit:
  """Trains under fairness constraints, with the groups private (PF-LD).

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    examples: public x and y, private group.
    config: settings, with noise from `config.calibrated(...)`.
    key: initial parameters, samples and noise.
    initial: parameters to start from; they must not know groups.
    anchor: centre of the proximity term; likewise.

  Returns:
    `Fit(params, DualTrace)`.

  Privacy:
    Parameters and trace are what `config.event(n)` says, for the group of one
    person changed: Poisson-sampled Gaussians for the primal steps, plain ones
    for the dual steps and the sizes. Changing a group changes one clipped
    gradient (twice C) and moves one person's statistics, of norm at most
    B sqrt(d), from one sum to another (sqrt(2) times that).

  Reference:
    Tran, Fioretto & Van Hentenryck (2021), Differentially private and fair
    deep learning: a Lagrangian dual approach. Theirs takes the whole gradient
    to be private; for the attribute alone the loss needs no noise.
  """
  checks.key("key", key)
  config.check(model, loss, examples)
  check_anchor(config, anchor)  # type: ignore[arg-type]
  return _train(model, loss, examples, config, key, initial, anchor)


class _State(NamedTuple):
  params: Params
  optimizer: Any
  multipliers: jax.Array  # [2, S, G, d]


class _Inputs(NamedTuple):
  examples: Examples
  config: PrivateLagrangianConfig
  anchor: Any
  sizes: jax.Array  # [S, G], noisy
  strata: jax.Array  # [S], exact: labels are public


@functools.partial(jax.jit, static_argnames=("model", "loss"))
def _train(
  model: Model, loss: PerExampleLoss, examples: Examples,
  config: PrivateLagrangianConfig, key: jax.Array, initial: Any, anchor: Any,
) -> Fit:  # fmt: skip
  examples = jax.tree.map(jnp.asarray, examples)
  notion = config.notion
  names = ("start", "batches", "primal", "dual", "sizes")
  keys = {n: jax.random.fold_in(key, i) for i, n in enumerate(names)}
  if initial is None:
    initial = model.init(keys["start"], examples.x[0])
  width = _width(model, notion, initial, examples)
  shape = (notion.num_strata, notion.num_groups)
  cell = _cells(notion, examples)
  sizes = noise.gaussian(
    group_counts(cell, math.prod(shape)).astype(jnp.float32).reshape(shape),
    sigma=config.count_noise * math.sqrt(2), key=keys["sizes"],
  )  # fmt: skip
  sizes = jnp.maximum(sizes, 1.0)
  strata = group_counts(notion.stratum(examples.y), notion.num_strata)
  state = _State(
    initial,
    config.optimizer(config.learning_rate).init(initial),
    jnp.zeros((2, *shape, width)),
  )
  feeds = _feeds(config, examples.size, keys)
  step = _Round(_Primal(model, loss), _Dual(model, notion))
  inputs = _Inputs(examples, config, anchor, sizes, strata)
  state, (losses, gaps, multipliers) = driver.run_steps(
    step, state, feeds, inputs
  )
  return Fit(state.params, DualTrace(losses, gaps, multipliers, sizes))


def _feeds(
  config: PrivateLagrangianConfig, size: int, keys: dict[str, jax.Array]
) -> Any:
  sampler = config.sampler(size)
  rounds, steps = config.rounds, config.steps_per_round

  def primal(number: jax.Array) -> Any:
    drawn = sampler.draw(key=jax.random.fold_in(keys["batches"], number))
    return drawn, jax.random.fold_in(keys["primal"], number)

  numbers = jnp.arange(rounds * steps)
  primals = jax.tree.map(
    lambda leaf: leaf.reshape(rounds, steps, *leaf.shape[1:]),
    jax.vmap(primal)(numbers),
  )
  duals = jax.vmap(lambda r: jax.random.fold_in(keys["dual"], r))
  return primals, duals(jnp.arange(rounds))


@dataclasses.dataclass(frozen=True)
class _Primal:
  """One step of the parameters."""

  model: Model
  loss: PerExampleLoss

  def __call__(
    self, state: _State, feed: Any, inputs: _Inputs
  ) -> tuple[_State, jax.Array]:
    (rows, mask), key = feed
    config, notion = inputs.config, inputs.config.notion
    batch = inputs.examples.take(rows)
    total = inputs.examples.size
    signed = state.multipliers[0] - state.multipliers[1]  # [S, G, d]
    stratum = notion.stratum(batch.y)
    inside = (stratum >= 0) & (stratum < notion.num_strata) & mask

    def public(params: Params) -> tuple[jax.Array, jax.Array]:
      """The loss, and E[h | s] of the constraints: both know no groups."""
      scores = self.model.apply(params, batch.x)
      losses = jnp.where(mask, self.loss(scores, batch.y), 0.0)
      mean = jnp.sum(losses) / config.batch_size
      price = jnp.sum(signed, axis=1) / jnp.maximum(inputs.strata, 1)[:, None]
      values = notion.statistic(scores, batch.y) * price[stratum]
      values = jnp.where(inside[:, None], values, 0.0)
      everybody = total * jnp.sum(values) / config.batch_size
      extra = penalty(params, config, inputs.anchor)  # type: ignore[arg-type]
      return mean - everybody + extra, mean

    gradient, mean = jax.grad(public, has_aux=True)(state.params)
    price = total * signed / inputs.sizes[..., None]
    own = jnp.where(inside[:, None], price[stratum, batch.group], 0.0)
    packed = jnp.concatenate([batch.y[:, None].astype(own.dtype), own], axis=1)
    clipped = clipped_grad(
      self.model, _Priced(notion), l2_clip=config.l2_clip, method=config.method
    )
    sums = clipped(state.params, batch._replace(y=packed), mask).total
    noisy = noise.gaussian(
      sums, sigma=config.noise_multiplier * clipped.sensitivity, key=key
    )
    gradient = tree.add(gradient, tree.scale(1 / config.batch_size, noisy))
    updates, optimizer = config.optimizer(config.learning_rate).update(
      gradient, state.optimizer, state.params
    )
    params = optax.apply_updates(state.params, updates)
    return state._replace(params=params, optimizer=optimizer), mean


@dataclasses.dataclass(frozen=True)
class _Priced:
  """Statistics times their price, as a loss: y is packed (label, prices)."""

  notion: Notion

  def __call__(self, scores: Any, packed: Any) -> jax.Array:
    label = packed[:, 0].astype(jnp.int32)
    return jnp.sum(self.notion.statistic(scores, label) * packed[:, 1:], -1)


@dataclasses.dataclass(frozen=True)
class _Dual:
  """One step of the multipliers, on all people."""

  model: Model
  notion: Notion

  def __call__(
    self, state: _State, key: jax.Array, inputs: _Inputs
  ) -> tuple[_State, Any]:
    notion, config, people = self.notion, inputs.config, inputs.examples
    scores = self.model.apply(state.params, people.x)
    values = jnp.clip(
      notion.decision(scores, people.y), -notion.bound, notion.bound
    )
    shape = state.multipliers.shape[1:]
    sums = group_sums(values, _cells(notion, people), shape[0] * shape[1])
    sensitivity = math.sqrt(2 * shape[2]) * notion.bound
    sums = noise.gaussian(
      sums.reshape(shape), sigma=config.dual_noise * sensitivity, key=key
    )
    public = group_sums(values, notion.stratum(people.y), notion.num_strata)
    everybody = public / jnp.maximum(inputs.strata, 1)[:, None]
    gaps = sums / inputs.sizes[..., None] - everybody[:, None]
    excess = jnp.stack([gaps, -gaps]) - config.tolerance
    multipliers = state.multipliers + config.dual_rate * excess
    multipliers = jnp.maximum(0.0, multipliers)
    return state._replace(multipliers=multipliers), (gaps, multipliers)


@dataclasses.dataclass(frozen=True)
class _Round:
  primal: _Primal
  dual: _Dual

  def __call__(
    self, state: _State, feed: Any, inputs: _Inputs
  ) -> tuple[_State, Any]:
    primals, key = feed
    state, losses = driver.run_steps(self.primal, state, primals, inputs)
    state, (gaps, multipliers) = self.dual(state, key, inputs)
    return state, (jnp.mean(losses), gaps, multipliers)


def _cells(notion: Notion, people: Examples) -> jax.Array:
  """[n] cell ids; one past the last for people of no stratum."""
  stratum = notion.stratum(people.y)
  inside = (stratum >= 0) & (stratum < notion.num_strata)
  cells = stratum * notion.num_groups + people.group
  return jnp.where(inside, cells, notion.num_strata * notion.num_groups)


def _width(
  model: Model, notion: Notion, params: Params, people: Examples
) -> int:
  """d, the number of statistics."""
  few = jax.eval_shape(
    lambda p: notion.statistic(model.apply(p, people.x[:1]), people.y[:1]),
    params,
  )
  return int(np.shape(few)[-1])
