"""DP-SGD with one mistake each, and neighbors that show it.

The reference is `training.dp_sgd` itself. `Step` is a step of it made of the
library's parts, cut so that one part can be replaced; a mutant replaces one.
All go through one harness: an optimizer that writes down every privatized
gradient, since that is what the accountant covers.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import accounting, auditing, tree
from jaxfair.accounting import _composition
from jaxfair.auditing import _bounds
from jaxfair.privacy import noise
from jaxfair.privacy._clipping import clipped_grad
from jaxfair.privacy._sampling import Batch
from jaxfair.training import DpSgdConfig, dp_sgd
from jaxfair.training._dp_sgd import DpSgdProgram, DpSgdState, make_feeds
from jaxfair.training._program import Given, begin
from jaxfair.types import Examples, Model

# A guarantee is a curve, and any of its points may be audited: at a large delta
# few runs tell much.
DELTA = 0.02
RUNS = 20_000
# Seven references at this level: one of them is flagged by chance with
# probability below 1e-6.
CONFIDENCE = 1 - 1e-7


@functools.cache
def linear(steps: int) -> Model:
  """Under `linear_loss` a person's gradient is that person's x.

  The history belongs to the optimizer; the loss does not depend on it.
  """

  def init(key: jax.Array, x_one: Any) -> Any:
    del key
    width = x_one.shape[0]
    return {"history": jnp.zeros((width, steps)), "w": jnp.zeros((width, 1))}

  return Model(init, lambda params, x: x @ params["w"])


def linear_loss(outputs: Any, y: Any) -> Any:
  del y
  return outputs[:, 0]


def recorder(learning_rate: Any) -> optax.GradientTransformation:
  """Gradient descent that keeps the gradients it was given."""

  def init(params: Any) -> Any:
    del params
    return jnp.zeros((), jnp.int32)

  def update(gradient: Any, step: Any, params: Any) -> tuple[Any, Any]:
    now = jnp.arange(params["history"].shape[1]) == step
    kept = jnp.where(now, gradient["w"], 0.0)
    return {"history": kept, "w": -learning_rate * gradient["w"]}, step + 1

  return optax.GradientTransformation(init, update)


@dataclasses.dataclass(frozen=True)
class Step:
  """One step of DP-SGD, in parts that can be replaced."""

  config: DpSgdConfig

  def __call__(self, examples: Examples, state: DpSgdState, feed: Any) -> tuple[DpSgdState, None]:
    config, batch = self.config, examples.take(feed.batch.rows)
    total, count = self.total(state.params, batch, feed.batch.mask, config.l2_clip)
    # Raised as that of the reference is, which is traced.
    sigma = config.noise_multiplier * config.l2_clip * (1 + 2.0**-20)
    noisy = self.noisy(total, sigma, feed.key_sum)
    mean = tree.scale(1 / self.divisor(count), noisy)
    updates, optimizer = config.optimizer(config.learning_rate).update(
      mean, state.optimizer, state.params
    )
    params = optax.apply_updates(state.params, updates)
    return DpSgdState(params, optimizer, state.l2_clip), None

  def feeds(self, feeds: Any, num_examples: int) -> Any:
    """Batches and keys of all steps."""
    del num_examples
    return feeds

  def total(self, params: Any, batch: Examples, mask: Any, l2_clip: Any) -> tuple[Any, Any]:
    """The sum of clipped gradients, and how many people are in it."""
    model = linear(self.config.steps)
    clipped = clipped_grad(model, linear_loss, l2_clip=l2_clip)(params, batch, mask)
    return clipped.total, jnp.sum(mask) - clipped.num_nonfinite

  def noisy(self, total: Any, sigma: Any, key: jax.Array) -> Any:
    return noise.gaussian(total, sigma=sigma, key=key)

  def divisor(self, count: Any) -> Any:
    del count
    return float(self.config.batch_size)


class NoClip(Step):
  def total(self, params, batch, mask, l2_clip):
    del l2_clip
    return super().total(params, batch, mask, 1e30)


class HalfNoise(Step):
  def noisy(self, total, sigma, key):
    return super().noisy(total, sigma / 2, key)


class ReusedKey(Step):
  def feeds(self, feeds, num_examples):
    first = jnp.zeros(feeds.key_sum.shape, jnp.int32)
    return feeds._replace(key_sum=feeds.key_sum[first])


class RealizedBatch(Step):
  def divisor(self, count):
    return jnp.maximum(count, 1)


class EveryoneInEveryBatch(Step):
  def feeds(self, feeds, num_examples):
    steps = self.config.steps
    rows = jnp.broadcast_to(jnp.arange(num_examples), (steps, num_examples))
    return feeds._replace(batch=Batch(rows, jnp.ones(rows.shape, bool)))


class ClipAfterAveraging(Step):
  def total(self, params, batch, mask, l2_clip):
    total, count = super().total(params, batch, mask, 1e30)
    size = float(self.config.batch_size)
    return tree.scale(size, clip(tree.scale(1 / size, total), l2_clip)), count


class LeakingBatchNorm(Step):
  """Clips each person's gradient of a loss that sees the whole batch.

  The check for coupled models is left out, and so is the library's own
  clipping, which looks at one person at a time: there a BatchNorm is useless,
  but cannot leak.
  """

  def total(self, params, batch, mask, l2_clip):
    def losses(params):
      return linear_loss(COUPLED.apply(params, batch.x), batch.y)

    gradients = jax.jacrev(losses)(params)
    each = jax.vmap(clip, in_axes=(0, None))(gradients, l2_clip)
    return jax.tree.map(lambda g: jnp.sum(g, axis=0), each), jnp.sum(mask)


def clip(gradient: Any, bound: Any) -> Any:
  norm = jnp.maximum(tree.norm(gradient), 1e-30)
  return tree.scale(jnp.minimum(1.0, bound / norm), gradient)


def batch_norm(params: Any, x: Any) -> Any:
  """A linear layer after normalization by the batch's own statistics."""
  centered = x - jnp.mean(x, axis=0)
  spread = jnp.sqrt(jnp.mean(centered**2, axis=0) + 1e-5)
  return 100 * centered / spread @ params["w"]


COUPLED = Model(linear(1).init, batch_norm)


def reference(config: DpSgdConfig, examples: Examples, key: jax.Array) -> jax.Array:
  """[parameters, steps] privatized gradients of the library's DP-SGD."""
  fitted = dp_sgd(linear(config.steps), linear_loss, examples, config, key=key)
  return fitted.params["history"]


def mutated(step: type[Step], config: DpSgdConfig, examples: Examples, key: jax.Array) -> jax.Array:
  """The same of a training with other steps; `Step` changes nothing."""
  program = DpSgdProgram(linear(config.steps), linear_loss)
  state = begin(program, Given(examples, config, key)).state
  taken, size = step(config), examples.x.shape[0]
  feeds = taken.feeds(make_feeds(config, size, config.steps, key=key), size)
  state, _ = jax.lax.scan(functools.partial(taken, examples), state, feeds)
  return state.params["history"]


class Case(NamedTuple):
  """A mistake, the training that is claimed, and two neighbors.

  The neighbors differ in the last row: a person, or a record that contributes
  nothing (zeros; NaN for somebody who is not there at all).
  """

  mutant: type[Step]
  config: DpSgdConfig
  without: Examples
  present: Examples

  def claimed(self) -> float:
    event = self.config.event(self.without.size)
    return _composition.composed_epsilon(
      [event], delta=DELTA, relation=accounting.Relation.ZERO_OUT
    )

  def audit_mutant(self, *, seed: int = 0) -> _bounds.EpsilonBound:
    mechanism = functools.partial(mutated, self.mutant, self.config)
    return self._audit(mechanism, seed)

  def audit_reference(self, *, seed: int = 0) -> _bounds.EpsilonBound:
    return self._audit(functools.partial(reference, self.config), seed)

  def _audit(self, mechanism: Callable[..., Any], seed: int) -> _bounds.EpsilonBound:
    return auditing.audit_mechanism(
      mechanism,
      self.without,
      self.present,
      num_runs=RUNS,
      delta=DELTA,
      confidence=CONFIDENCE,
      key=jax.random.key(seed),
    )


def crowd(others: Any, person: Any) -> tuple[Examples, Examples]:
  """Neighbors: the others with an empty record, or with the person."""
  others = np.atleast_2d(np.asarray(others, np.float32))
  both = []
  for last in (np.zeros(others.shape[1]), person):
    x = np.concatenate([others, np.broadcast_to(last, (1, others.shape[1]))])
    ids = np.zeros(len(x), np.int32)
    both.append(Examples(x.astype(np.float32), ids, ids))
  return both[0], both[1]


def _config(noise_multiplier: float, steps: int, batch_size: int) -> Any:
  return DpSgdConfig(
    learning_rate=1.0,
    l2_clip=1.0,
    noise_multiplier=noise_multiplier,
    steps=steps,
    batch_size=batch_size,
    optimizer=recorder,
    loop="scan",
  )


def _cases() -> dict[str, Case]:
  nobody = np.zeros((7, 1))  # seven others, whose gradients are zero
  full = _config(1.0, steps=1, batch_size=8)
  # Dividing by the number of people tells it by the size of the noise, best
  # seen in many directions; so this person is there or is not.
  along = np.ones((1, 20)) / np.sqrt(20)
  there = crowd(along, -along)[1]
  gone = there._replace(x=np.where(np.arange(2)[:, None] == 1, np.nan, there.x))
  return {
    "no clip": Case(NoClip, full, *crowd(nobody, 10.0)),
    "noise at half scale": Case(HalfNoise, full, *crowd(nobody, 1.0)),
    # Who is in one of two batches shows in the difference, noise gone.
    "noise key reused between steps": Case(
      ReusedKey, _config(2.0, steps=2, batch_size=4), *crowd(nobody, 1.0)
    ),
    "normalization by the realized batch": Case(
      RealizedBatch, _config(1.0, steps=1, batch_size=2), gone, there
    ),
    "sampling without accounting": Case(
      EveryoneInEveryBatch, _config(1.0, steps=4, batch_size=1), *crowd(np.zeros((9, 1)), 1.0)
    ),
    "clip after averaging": Case(ClipAfterAveraging, full, *crowd(nobody, 100.0)),
    # One person moves the mean, and with it everybody's gradient.
    "leaking BatchNorm": Case(LeakingBatchNorm, full, *crowd(nobody, 1.0)),
  }


CASES = _cases()


def main() -> None:
  """Prints the table of docs/audit.md: python -m helpers.mutants, in tests."""
  print("| mistake | claimed | shown of the mutant | of the reference |")
  print("|---|---|---|---|")
  for name, case in CASES.items():
    shown = (case.audit_mutant().epsilon, case.audit_reference().epsilon)
    print(f"| {name} | {case.claimed():.2f} | {shown[0]:.2f} | {shown[1]:.2f} |")


if __name__ == "__main__":
  main()
