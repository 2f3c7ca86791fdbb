"""Plain training: mini-batches, any optax optimizer, one compiled program."""

import dataclasses
import functools
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import checks, tree
from jaxfair.training import _batches as batches
from jaxfair.training import _driver
from jaxfair.training._optimizers import Optimizer
from jaxfair.training._penalties import Penalty
from jaxfair.types import Examples, Fit, Model, NonPrivateTrace, Params, PerExampleLoss


@functools.partial(
  jax.tree_util.register_dataclass,
  data_fields=["learning_rate", "weight_decay", "proximity", "penalty"],
  meta_fields=["steps", "batch_size", "sampling", "optimizer", "loop"],
)
@dataclasses.dataclass(frozen=True)
class FitConfig:
  """Settings of a plain training.

  The objective is

    mean loss + weight_decay / 2 ||theta||^2
              + proximity / 2 ||theta - anchor||^2 + penalty

  The first three fields are numbers that may be traced: stacked values are
  swept by `fit_many` in one program. The others fix the program's shape.

  Attributes:
    learning_rate: handed to the optimizer.
    weight_decay: pulls all parameters to 0.
    proximity: pulls them to the `anchor` given to `fit`.
    steps: how many batches.
    batch_size: at most the number of examples; None for all of them.
    sampling: "shuffle" visits every example once per epoch; "poisson" lets
      each example take part in each step by chance, as private training does,
      so that `batch_size` is the expected size.
    optimizer: `learning_rate -> optax.GradientTransformation`.
    loop: see `driver.choose_loop`.
    penalty: one more term, such as `parity_penalty`; its weight may be swept.
  """

  learning_rate: Any = 1e-3
  weight_decay: Any = 0.0
  proximity: Any = 0.0
  steps: int = 1000
  batch_size: int | None = 256
  sampling: Literal["shuffle", "poisson"] = "shuffle"
  optimizer: Optimizer = optax.adam
  loop: _driver.Loop = "auto"
  penalty: Penalty | None = None

  def check(self, model: Model, loss: PerExampleLoss, examples: Examples) -> None:
    """Refuses what cannot be trained with, before any work."""
    del loss
    if self.penalty is not None:
      self.penalty.check(model)
    checks.positive("learning_rate", self.learning_rate)
    checks.non_negative("weight_decay", self.weight_decay)
    checks.non_negative("proximity", self.proximity)
    checks.integer("steps", self.steps, low=1)
    check_examples(model, examples)
    if self.batch_size is not None:
      checks.integer(
        "batch_size",
        self.batch_size,
        low=1,
        high=examples.size,
        remedy="batch_size=None uses all examples in every step",
      )
    checks.one_of("sampling", self.sampling, ("shuffle", "poisson"))


def fit(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: FitConfig = FitConfig(),
  *,
  key: jax.Array,
  initial: Params | None = None,
  anchor: Params | None = None,
) -> Fit:
  """Trains a model without privacy, for a fixed number of steps.

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses.
    examples: the training part.
    config: settings.
    key: initial parameters and the order of batches.
    initial: parameters to start from; drawn by `model.init` if None.
    anchor: centre of the proximity term; needed if `proximity` is set.

  Returns:
    `Fit(params, NonPrivateTrace)`.
  """
  config.check(model, loss, examples)
  check_anchor(config, anchor)
  checks.one_key("key", key)
  traced = not checks.concrete((examples, config, key, initial, anchor))
  loop = _driver.choose_loop(config.loop, model, examples.x, traced=traced)
  config = dataclasses.replace(config, loop=loop)
  if loop == "scan":
    return _fit_scan(model, loss, examples, config, key, initial, anchor)
  return _fit(model, loss, examples, config, key, initial, anchor)


def check_examples(model: Model, examples: Examples) -> None:
  """Refuses people that nothing can be learnt from.

  Class ids must have an output each: an id beyond them makes the loss NaN, and
  every parameter with it. Real or soft targets pass.
  """
  checks.people(examples)
  checks.finite("examples.x", examples.x)
  outputs = _num_outputs(model, examples.x.shape[1:], examples.x.dtype)
  is_id = np.issubdtype(examples.y.dtype, np.integer) and examples.y.ndim == 1
  if outputs > 1 and is_id:
    checks.ids("examples.y", examples.y, outputs)


@functools.lru_cache(maxsize=256)
def _num_outputs(model: Model, shape: tuple[int, ...], dtype: Any) -> int:
  one = jax.ShapeDtypeStruct(shape, dtype)
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  batch = jax.ShapeDtypeStruct((1, *shape), dtype)
  return int(jax.eval_shape(model.apply, params, batch).shape[-1])


def check_anchor(config: FitConfig, anchor: Params | None) -> None:
  """Refuses a proximity term without a centre."""
  if checks.concrete(config.proximity) and anchor is None:
    checks.require(
      not np.any(np.asarray(config.proximity) > 0),
      "proximity needs a centre; pass anchor=parameters",
    )


@dataclasses.dataclass(frozen=True)
class PlainStep:
  """One step of `fit`: static parts only."""

  model: Model
  loss: PerExampleLoss
  optimizer: Optimizer
  expected_size: float  # what sums of losses are divided by

  def __call__(self, carry: Any, batch: "_Feed", inputs: "_Inputs") -> tuple[Any, NonPrivateTrace]:
    """Takes a batch, its gradient, and the optimizer's step."""
    params, state = carry
    examples, config = inputs.examples, inputs.config
    if batch.rows is not None:
      examples = batches.look_up(examples, batch.rows)

    def objective(p: Params) -> tuple[jax.Array, jax.Array]:
      losses = self.loss(self.model.apply(p, examples.x), examples.y)
      if batch.mask is not None:
        losses = jnp.where(batch.mask, losses, 0.0)
      loss = jnp.sum(losses) / self.expected_size
      return loss + penalty(p, config, inputs.anchor), loss

    gradient, loss = jax.grad(objective, has_aux=True)(params)
    if config.penalty is not None:
      extra = config.penalty.gradient(params, l2_clip=None, key=batch.key)
      gradient = tree.add(gradient, extra)
    updates, state = self.optimizer(config.learning_rate).update(gradient, state, params)
    info = NonPrivateTrace(loss, tree.norm(gradient))
    return (optax.apply_updates(params, updates), state), info


def penalty(params: Params, config: FitConfig, anchor: Params | None) -> jax.Array:
  """The regularisers of `FitConfig`."""
  value = 0.5 * config.weight_decay * tree.squared_norm(params)
  if anchor is not None:
    distance = tree.squared_norm(tree.subtract(params, anchor))
    value += 0.5 * config.proximity * distance
  return value


class _Feed(NamedTuple):
  rows: Any  # [batch] row numbers; None: all examples
  mask: Any  # [batch] which of them take part; None: all
  step: Any
  key: Any = None  # of the penalty, if there is one


class _Inputs(NamedTuple):
  examples: Examples
  config: FitConfig
  anchor: Any


def _fit(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: FitConfig,
  key: jax.Array,
  initial: Any,
  anchor: Any,
) -> Fit:
  carry, source, examples = begin(model, examples, config, key, initial)
  feeds = PlainFeeds(examples.size, config.batch_size, config.sampling)
  size = config.batch_size or examples.size
  step = PlainStep(model, loss, config.optimizer, float(size))
  loop: Literal["scan", "step"] = "step" if config.loop == "step" else "scan"
  (params, _), trace = _driver.run_blocks(
    step,
    carry,
    feeds,
    source,
    _Inputs(examples, config, anchor),
    steps=config.steps,
    rows=feeds.rows,
    loop=loop,
  )
  return Fit(params, trace)


_fit_scan = jax.jit(_fit, static_argnames=("model", "loss"))


class _Source(NamedTuple):
  batches: Any  # shuffles, or a key of Poisson samples; None: all examples
  key: Any  # of the penalty, if there is one


@functools.partial(jax.jit, static_argnames=("model",))
def begin(
  model: Model, examples: Examples, config: FitConfig, key: jax.Array, initial: Any
) -> tuple[Any, _Source, Examples]:
  """Parameters and optimizer, what batches are made of, and the examples."""
  examples = jax.tree.map(jnp.asarray, examples)
  if initial is None:
    initial = model.init(jax.random.fold_in(key, 0), examples.x[0])
  source: Any = None
  if config.batch_size is not None:
    source = jax.random.fold_in(key, 1)
    if config.sampling == "shuffle":
      source = batches.shuffles_for(examples.size, config.batch_size, config.steps, key=source)
  own = None if config.penalty is None else jax.random.fold_in(key, 2)
  state = config.optimizer(config.learning_rate).init(initial)
  return (initial, state), _Source(source, own), examples


@dataclasses.dataclass(frozen=True)
class PlainFeeds:
  """One batch per step: row numbers, and a mask where the size is random."""

  num_rows: int
  batch_size: int | None
  sampling: str

  @property
  def rows(self) -> int:
    """Rows that one step's feed names."""
    return self.batch_size or 1

  def __call__(self, source: _Source, start: Any, count: int) -> _Feed:
    """The batches, and the penalty's keys if there is one."""
    steps = start + jnp.arange(count)
    key = None
    if source.key is not None:
      key = jax.vmap(jax.random.fold_in, (None, 0))(source.key, steps)
    if self.batch_size is None:
      return _Feed(None, None, steps, key)
    if self.sampling == "shuffle":
      rows = batches.batch_rows(source.batches, self.num_rows, self.batch_size, count, start=start)
      return _Feed(rows, None, steps, key)
    sampler = batches.poisson_sampler(self.num_rows, self.batch_size)
    batch = jax.vmap(lambda s: sampler.draw(key=jax.random.fold_in(source.batches, s)))(steps)
    return _Feed(batch.rows, batch.mask, steps, key)
