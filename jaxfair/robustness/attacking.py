"""Attacks on many examples, for a list of epsilons in one program."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, models
from jaxfair.robustness.attacks import Attack, Best, Judge, State, judge_of
from jaxfair.training import driver
from jaxfair.types import Examples, Model, Params, PerExampleLoss


class Attacked(NamedTuple):
  """Examples after an attack, one leading axis for the epsilons.

  Attributes:
    x: [E, n, ...] pushed inputs.
    loss: [E, n] the attack's loss there.
    success: [E, n] whether they are predicted wrongly. An example that was
      wrong from the start counts, too.
  """

  x: np.ndarray
  loss: np.ndarray
  success: np.ndarray


def attack(
  model: Model,
  params: Params,
  examples: Examples,
  how: Attack,
  *,
  epsilons: Sequence[float],
  key: jax.Array,
  loss: PerExampleLoss = models.cross_entropy,
  batch_size: int = 512,
  loop: driver.Loop = "auto",
) -> Attacked:
  """Attacks every example, for all epsilons side by side.

  Args:
    model: any model; it sees inputs in the attack's declared range.
    params: its parameters.
    examples: x in the declared range; y, what the attack leads away from.
    how: the attack.
    epsilons: sizes of the pushes, in units of the inputs.
    key: of random starts; each epsilon and example has its own.
    loss: what the attack raises, `(logits, y) -> [n]`.
    batch_size: examples held in memory at once, each once per epsilon.
    loop: see `training.choose_loop`.

  Returns:
    `Attacked`, on the host.

  Assumptions:
    Success is a lower bound: a failed attack proves nothing. Where the loss is
    flat (large logits round cross-entropy's gradient to 0) an attack stands
    still; `negative_margin` does not flatten.
  """
  checks.non_negative("epsilons", epsilons)
  checks.require(
    np.ndim(epsilons) == 1 and np.size(epsilons) > 0,
    "epsilons must be a list of sizes, e.g. [0.01, 0.03]",
  )
  checks.integer("batch_size", batch_size, low=1)
  checks.one_key("key", key)
  size = checks.same_length(**examples._asdict())
  checks.require(size > 0, "examples is empty; there is nobody to attack")
  how.check(examples.x)
  chosen = driver.choose_loop(
    loop, model, examples.x, traced=not checks.concrete((params, examples))
  )
  sizes = jnp.asarray(epsilons, jnp.float32)
  batch = min(batch_size, size)
  found = []
  for index, first in enumerate(range(0, size, batch)):
    # The last batch is filled up with its last row, so that one program serves.
    rows = np.minimum(np.arange(first, first + batch), size - 1)
    some = jax.tree.map(jnp.asarray, examples.take(rows))
    own = jax.random.fold_in(key, index)
    best = _run(model, loss, how, chosen, params, some, sizes, own)
    kept = min(batch, size - first)
    found.append([np.asarray(leaf)[:, :kept] for leaf in best])
  return Attacked(
    *(np.concatenate(parts, 1) for parts in zip(*found, strict=True))
  )


def negative_margin(logits: Any, y: Any) -> jax.Array:
  """max_{c != y} logits_c - logits_y: above 0 exactly where y loses.

  As a loss for attacks it does not flatten with the size of the logits.

  Reference:
    Carlini and Wagner 2017.
  """
  return -models.margin(logits, y)


class _Inputs(NamedTuple):
  params: Any
  examples: Examples
  epsilons: Any


@dataclasses.dataclass(frozen=True)
class _Advance:
  """One step of an attack at all epsilons: static parts only."""

  model: Model
  loss: PerExampleLoss
  how: Attack

  def judge(self, inputs: _Inputs) -> Judge:
    return judge_of(self.model, self.loss, inputs.params, inputs.examples.y)

  def begin(self, inputs: _Inputs, key: jax.Array) -> State:
    keys = jax.random.split(key, inputs.epsilons.shape[0])
    return jax.vmap(
      lambda epsilon, own: self.how.begin(
        self.judge(inputs), inputs.examples.x, epsilon, own
      )
    )(inputs.epsilons, keys)

  def __call__(
    self, state: State, feed: Any, inputs: _Inputs
  ) -> tuple[State, None]:
    del feed
    judge, x = self.judge(inputs), inputs.examples.x
    return jax.vmap(
      lambda own, epsilon: self.how.advance(judge, own, x, epsilon)
    )(state, inputs.epsilons), None

  def end(self, state: State, inputs: _Inputs) -> Best:
    return jax.vmap(lambda own: self.how.end(self.judge(inputs), own))(state)


def _run(
  model: Model, loss: PerExampleLoss, how: Attack, loop: Any, params: Params,
  examples: Examples, epsilons: jax.Array, key: jax.Array,
) -> Best:  # fmt: skip
  step, inputs = _Advance(model, loss, how), _Inputs(params, examples, epsilons)
  if loop == "scan":
    return _whole(step, inputs, key)
  return _steps(step, inputs, key, loop)


def _steps(step: _Advance, inputs: _Inputs, key: jax.Array, loop: Any) -> Best:
  state = _begin(step, inputs, key)
  if step.how.steps:
    feeds = jnp.arange(step.how.steps)
    state, _ = driver.run_steps(step, state, feeds, inputs, loop=loop)
  return _end(step, state, inputs)


@functools.partial(jax.jit, static_argnames=("step",))
def _whole(step: _Advance, inputs: _Inputs, key: jax.Array) -> Best:
  return _steps(step, inputs, key, "scan")


@functools.partial(jax.jit, static_argnames=("step",))
def _begin(step: _Advance, inputs: _Inputs, key: jax.Array) -> State:
  return step.begin(inputs, key)


@functools.partial(jax.jit, static_argnames=("step",))
def _end(step: _Advance, state: State, inputs: _Inputs) -> Best:
  return step.end(state, inputs)
