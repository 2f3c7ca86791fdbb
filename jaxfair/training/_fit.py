"""Plain training: mini-batches, any optax optimizer, one compiled program."""

import functools
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import DTypeLike

from jaxfair import checks, tree
from jaxfair.training import _batches as batches
from jaxfair.training import _driver, _regularizers
from jaxfair.training._optimizers import Optimizer, check_optimizer, optimizer_of
from jaxfair.training._program import Begun, Given, Program, descend, settings, train
from jaxfair.training._regularizers import Penalty
from jaxfair.training._streaming import is_absent
from jaxfair.types import (
  Examples,
  Fit,
  Index,
  Key,
  Model,
  NonPrivateTrace,
  Number,
  Params,
  PerExampleLoss,
  PyTree,
  Source,
)


@settings("learning_rate", "weight_decay", "proximity", "penalties")
class FitConfig:
  """Settings of non-private training (`fit`).

  The objective is

    mean loss + weight_decay / 2 ||theta||^2
              + proximity / 2 ||theta - anchor||^2 + sum of penalties

  The first three fields are numbers that may be traced: stacked values are
  swept by `fit_many` in one program. The others fix the program's shape.

  Attributes:
    learning_rate: passed to the optimizer, if that is a function of it.
    weight_decay: pulls all parameters to 0.
    proximity: pulls them to the `anchor` given to `fit`.
    steps: number of batches.
    batch_size: at most the number of examples; None for all of them.
    sampling: "shuffle" visits every example once per epoch; "poisson" lets each example take part
      in each step by chance, as private training does, so that `batch_size` is the expected size.
    optimizer: a function of the learning rate, such as `optax.adamw`, whose rate can be swept; or
      any optax object, such as `optax.adamw(schedule)`, and `learning_rate` is not used then.
    loop: "scan", "step" or "auto", which chooses the faster one for model and backend.
    penalties: more terms, such as `parity_penalty`; their weights may be swept.
  """

  learning_rate: Number = 1e-3
  weight_decay: Number = 0.0
  proximity: Number = 0.0
  steps: int = 1000
  batch_size: int | None = 256
  sampling: Literal["shuffle", "poisson"] = "shuffle"
  optimizer: Optimizer = optax.adam
  loop: _driver.Loop = "auto"
  penalties: tuple[Penalty, ...] = ()

  def check(self, model: Model, loss: PerExampleLoss, examples: Examples) -> None:
    """Raises, before any work, if training with these settings is impossible."""
    del loss
    check_optimizer(self)
    _regularizers.check(self, model)
    checks.integer("steps", self.steps, low=1)
    check_examples(model, examples)
    check_batch("batch_size", self.batch_size, examples)
    checks.require(
      self.batch_size is not None or not is_absent(examples),
      "batch_size=None reads all people in every step; give a Source a batch_size, such as 256",
    )
    checks.one_of("sampling", self.sampling, ("shuffle", "poisson"))


def fit(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples | Source,
  config: FitConfig = FitConfig(),
  *,
  key: Key,
  initial: Params | None = None,
  anchor: Params | None = None,
  mask: Params | None = None,
) -> Fit:
  """Trains a model without privacy, for a fixed number of steps.

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses.
    examples: the training part, in memory or a `Source`.
    config: settings.
    key: initial parameters and the order of batches.
    initial: parameters to start from; drawn by `model.init` if None.
    anchor: center of the proximity term; needed if `proximity` is set.
    mask: parameters are multiplied by it at the start and after every step,
      e.g. 0 for weights that were pruned.

  Returns:
    `Fit(params, NonPrivateTrace)`.
  """
  return train(FitProgram(model, loss), Given(examples, config, key, initial, anchor, mask))


def check_examples(model: Model, examples: Examples) -> None:
  """Raises if the examples cannot be trained on.

  Class ids must have an output each: an id beyond them makes the loss NaN, and
  every parameter with it. Real or soft targets pass.
  """
  checks.people(examples)
  if is_absent(examples):
    return  # each batch is looked at when it is read
  checks.finite("examples.x", examples.x)
  outputs = _num_outputs(model, examples.x.shape[1:], examples.x.dtype)
  is_id = np.issubdtype(examples.y.dtype, np.integer) and examples.y.ndim == 1
  if outputs > 1 and is_id:
    checks.ids("examples.y", examples.y, outputs)


@functools.lru_cache(maxsize=256)
def _num_outputs(model: Model, shape: tuple[int, ...], dtype: DTypeLike) -> int:
  one = jax.ShapeDtypeStruct(shape, dtype)
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  batch = jax.ShapeDtypeStruct((1, *shape), dtype)
  return int(jax.eval_shape(model.apply, params, batch).shape[-1])


def check_batch(name: str, size: int | None, examples: Examples) -> None:
  """Raises if the batch is larger than the data set; None means all examples."""
  if size is not None:
    remedy = f"{name}=None uses all examples in every step"
    checks.integer(name, size, low=1, high=examples.size, remedy=remedy)


class FitState(NamedTuple):
  """The state of a non-private training between steps."""

  params: Params
  optimizer: Any


class Feed(NamedTuple):
  """The feed of one step."""

  rows: Any  # [batch] row numbers; None: all examples
  mask: Any  # [batch] which of them take part; None: all
  step: Any  # its number
  key: Any  # of the penalties, if there are any


class _Source(NamedTuple):
  batches: Any  # shuffles, or a key of Poisson samples; None: all examples
  key: Any  # of the penalties, if there are any


class FitProgram(Program):
  """Plain training."""

  def plain(self, config: Any) -> FitConfig:
    """The settings of plain training in a config."""
    own: FitConfig = config
    return own

  def key_of(self, given: Given) -> jax.Array | None:
    """A key for what is random in a step besides its batch."""
    return jax.random.fold_in(given.key, 2) if given.config.penalties else None

  def begin(self, given: Given) -> Begun:
    """Parameters and optimizer, and what batches are made of."""
    config, size = self.plain(given.config), given.examples.size
    params = self.start(given)
    source: Any = None
    if config.batch_size is not None:
      source = jax.random.fold_in(given.key, 1)
      if config.sampling == "shuffle":
        source = batches.shuffles_for(size, config.batch_size, config.steps, key=source)
    state = FitState(params, optimizer_of(config).init(params))
    return Begun(state, _Source(source, self.key_of(given)), given)

  def steps(self, config: Any) -> int:
    """How many batches."""
    return self.plain(config).steps

  def rows(self, inputs: Given) -> int:
    """The size of a batch."""
    return self.plain(inputs.config).batch_size or 1

  def feed(self, source: _Source, inputs: Given, start: Index, count: int) -> Feed:
    """Row numbers, a mask where the size is random, and the penalties' keys."""
    config, size = self.plain(inputs.config), inputs.examples.size
    steps = start + jnp.arange(count)
    key = None
    if source.key is not None:
      key = jax.vmap(jax.random.fold_in, (None, 0))(source.key, steps)
    if config.batch_size is None:
      return Feed(None, None, steps, key)
    if config.sampling == "shuffle":
      rows = batches.batch_rows(source.batches, size, config.batch_size, count, start=start)
      return Feed(rows, None, steps, key)
    sampler = batches.poisson_sampler(size, config.batch_size, config.steps)
    batch = jax.vmap(lambda s: sampler.draw(key=jax.random.fold_in(source.batches, s)))(steps)
    return Feed(batch.rows, batch.mask, steps, key)

  def chosen(self, feeds: Feed) -> tuple[Any, Any]:
    """The rows of the batches, and a mask where their size is random."""
    return feeds.rows, feeds.mask

  def at_hand(self, feed: Feed, inputs: Given, people: Examples) -> tuple[Feed, Given]:
    """The batch is all of these people."""
    return feed._replace(rows=None), inputs._replace(examples=people)

  def check_read(self, people: Examples) -> None:
    """Applies `check_examples` to a batch; an empty batch is a normal step."""
    if people.size:
      check_examples(self.model, people)

  def sum(self, state: FitState, feed: Feed, inputs: Given) -> tuple[Params, jax.Array]:
    """The gradient of the mean loss with weight decay and proximity, and the mean loss."""
    examples, config = inputs.examples, inputs.config
    size = float(config.batch_size or examples.size)  # expected, where it is random
    if feed.rows is not None:
      examples = batches.look_up(examples, feed.rows)

    def objective(params: Params) -> tuple[jax.Array, jax.Array]:
      losses = self.loss(self.model.apply(params, examples.x), examples.y)
      if feed.mask is not None:
        losses = jnp.where(feed.mask, losses, 0.0)
      loss = jnp.sum(losses) / size
      return loss + _regularizers.pull(params, config, inputs.anchor), loss

    return jax.grad(objective, has_aux=True)(state.params)

  def update(
    self, state: FitState, released: Params, seen: PyTree, feed: Feed, inputs: Given
  ) -> tuple[FitState, NonPrivateTrace]:
    """Adds the penalties' gradients; then one step of the optimizer."""
    config = self.plain(inputs.config)
    extra = _regularizers.penalty_gradient(config, state.params, l2_clip=None, key=feed.key)
    gradient = released if extra is None else tree.add(released, extra)
    after = descend(config, gradient, state.optimizer, state.params, mask=inputs.mask)
    return FitState(*after), NonPrivateTrace(seen, tree.norm(gradient))
