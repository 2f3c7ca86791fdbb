"""Gradient canaries: records with a fixed gradient, hidden in a training to audit it.

A canary's gradient is one fixed direction, of one fixed norm, at every step:
along its own parameter, which no other record affects. It is clipped to the
clip bound, so it moves the sum as far as the sensitivity allows. To the
trainer it is an ordinary record of an ordinary model.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import checks
from jaxfair.types import Array, ArrayLike, Examples, Key, Model, Params, PerExampleLoss, PyTree

PERSON, EMPTY = 0, -1  # what the last column says; i + 1 for canary i
MAX_CANARIES = 2**24 - 1  # float32 counts that far


@dataclasses.dataclass(frozen=True)
class GradientCanaries:
  """A model with canaries, made by `gradient_canaries`.

  Attributes:
    model: the model with one parameter more per canary; its parameters are
      `{"model": ..., "canaries": [m, 1]}`.
    loss: the loss that goes with it.
    num_canaries: m.
  """

  model: Model
  loss: PerExampleLoss
  num_canaries: int

  def flip(self, *, key: Key) -> jax.Array:
    """[m] fair coins: which canaries take part."""
    checks.one_key("key", key)
    return jax.random.bernoulli(key, 0.5, (self.num_canaries,))

  def hide(self, people: Examples, included: ArrayLike) -> Examples:
    """The people, and one row for every canary after them.

    A canary that does not take part is an empty record: it is sampled like
    anybody and contributes nothing. Pure, and vmappable over `included`.

    Returns:
      n + m examples; features are flat, with one column more.
    """
    included = jnp.asarray(included)
    m = self.num_canaries
    checks.require(
      included.shape == (m,),
      f"included has shape {included.shape}; flip one coin for each of the {m} canaries",
    )
    x = jnp.asarray(people.x)
    flat = x.reshape(x.shape[0], -1)
    numbers = jnp.where(included, jnp.arange(1, m + 1), EMPTY)
    marks = jnp.concatenate([jnp.full(x.shape[0], PERSON), numbers])
    rows = jnp.concatenate([flat, jnp.zeros((m, flat.shape[1]), x.dtype)])
    return Examples(
      jnp.concatenate([rows, marks[:, None].astype(x.dtype)], axis=1),
      _padded(people.y, m),
      _padded(people.group, m),
    )

  def scores(self, params: Params) -> jax.Array:
    """[m] scores of a trained model: how far it went against the gradient."""
    return -params["canaries"][:, 0]


def gradient_canaries(
  model: Model, loss: PerExampleLoss, people: Examples, *, num_canaries: int, norm: float = 1e3
) -> GradientCanaries:
  """Adds canaries to a model, for the audit of one training.

      canaries = auditing.gradient_canaries(model, loss, people, ...)
      coins = canaries.flip(key=key_coins)
      fitted = training.dp_sgd(
        canaries.model, canaries.loss, canaries.hide(people, coins), ...
      )
      auditing.audit_one_run(canaries.scores(fitted.params), coins, ...)

  loss of canary i = norm * theta_i

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    people: whose shapes are needed. A row of zeros must have a finite loss.
    num_canaries: m; each costs one parameter and one record.
    norm: of a canary's gradient before clipping; at least the clip bound.

  Returns:
    The model and loss to train, and how to make rows and read scores.

  Privacy:
    For audits only: parameters trained on canaries are not for release.
  """
  checks.integer("num_canaries", num_canaries, low=1, high=MAX_CANARIES)
  checks.positive("norm", norm)
  shape = tuple(np.shape(people.x)[1:])
  return GradientCanaries(
    _with_parameters(model, shape, num_canaries), _with_canaries(loss, norm), num_canaries
  )


def likelihood_recorder(
  optimizer: Callable[[Any], optax.GradientTransformation],
  *,
  sampling_rate: float,
  noise_multiplier: float,
  l2_clip: float,
  batch_size: int,
) -> Callable[[Any], optax.GradientTransformation]:
  """An optimizer whose canary parameters accumulate the likelihood-ratio evidence of each canary.

  sum_t log(1 - q + q exp((g_t - 1/2) / z^2)),  g_t the noisy gradient over C

  The privatized gradient of every step is released, as the accountant
  assumes, so an attacker may do with it what they like: this is the
  likelihood ratio of having taken part. All other parameters are trained by
  the optimizer. Without it the scores are plain sums of gradients, which are weaker the
  more a single step reveals.

  Args:
    optimizer: `learning_rate -> optax.GradientTransformation`.
    sampling_rate: q.
    noise_multiplier: z.
    l2_clip: C, which must not move.
    batch_size: the expected one, that sums are divided by.

  Returns:
    An optimizer for `DpSgdConfig(optimizer=...)`, without weight decay.
  """
  checks.number("sampling_rate", sampling_rate, low=0.0, high=1.0, open_low=True)
  checks.positive("noise_multiplier", noise_multiplier)
  checks.positive("l2_clip", l2_clip)
  checks.integer("batch_size", batch_size, low=1)
  absent = np.log1p(-sampling_rate) if sampling_rate < 1 else -np.inf

  def make(learning_rate: optax.ScalarOrSchedule) -> optax.GradientTransformation:
    inner = optimizer(learning_rate)

    def init(params: Params) -> PyTree:
      return inner.init(params["model"])

    def update(gradient: Params, state: PyTree, params: Params | None = None) -> tuple[Params, Any]:
      known = None if params is None else params["model"]
      moves, state = inner.update(gradient["model"], state, known)
      seen = gradient["canaries"] * (batch_size / l2_clip)
      ratio = (seen - 0.5) / noise_multiplier**2
      evidence = jnp.logaddexp(absent, np.log(sampling_rate) + ratio)
      return {"model": moves, "canaries": -evidence}, state

    return optax.GradientTransformation(init, update)

  return make


def likelihood_separation(*, sampling_rate: float, noise_multiplier: float, steps: int) -> float:
  """How far the recorded evidence moves if a canary takes part; used to plan an audit.

  mu = q sqrt(steps (e^(1/z^2) - 1)), in standard deviations of the evidence

  It is the limit of many steps, and at most what full batches would give.

  Args:
    sampling_rate: q.
    noise_multiplier: z.
    steps: number of steps.

  Reference:
    Bu, Dong, Long & Su (2020).
  """
  checks.positive("noise_multiplier", noise_multiplier)
  whole = math.sqrt(steps) / noise_multiplier
  signal = math.expm1(min(noise_multiplier**-2, 700.0))
  return min(whole, sampling_rate * math.sqrt(steps * signal))


def _with_parameters(model: Model, shape: tuple[int, ...], num_canaries: int) -> Model:
  def init(key: Key, x_one: Array) -> Params:
    return {
      "model": model.init(key, jnp.reshape(x_one[:-1], shape)),
      "canaries": jnp.zeros((num_canaries, 1)),
    }

  def apply(params: Params, x: Array) -> jax.Array:
    logits = model.apply(params["model"], x[:, :-1].reshape(-1, *shape))
    marks = x[:, -1:]
    rows = jnp.maximum(marks[:, 0], 1).astype(jnp.int32) - 1
    own = jnp.take(params["canaries"], rows, axis=0, mode="clip")
    return jnp.concatenate([logits, own, marks.astype(logits.dtype)], axis=1)

  return Model(init, apply)


def _with_canaries(loss: PerExampleLoss, norm: float) -> PerExampleLoss:
  def with_canaries(outputs: jax.Array, y: Array) -> jax.Array:
    own, marks = outputs[:, -2], outputs[:, -1]
    canary = jnp.where(marks > PERSON, norm * own, 0.0)
    return jnp.where(marks == PERSON, loss(outputs[:, :-2], y), canary)

  return with_canaries


def _padded(values: Array, count: int) -> jax.Array:
  """The rows, followed by `count` rows of zeros."""
  values = jnp.asarray(values)
  empty = jnp.zeros((count, *values.shape[1:]), values.dtype)
  return jnp.concatenate([values, empty])
