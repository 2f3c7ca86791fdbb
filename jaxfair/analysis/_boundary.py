"""How close people are to the decision boundary."""

import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxfair import checks
from jaxfair.types import ArrayLike, Features, Model, Params

# Rounding that float32 logits of a linear model may show, relative.
_LINEAR_TOLERANCE = 1e-3
_DUAL: dict[float, int] = {2: 2, math.inf: 1}  # order -> order of the dual norm


def closeness(logits: ArrayLike) -> Float[jax.Array, "..."]:
  """How undecided a prediction is.

  1 - sum_k f_k^2,  f = softmax(logits)

  0 if one class has all the probability, 1 - 1/K if all have the same. For
  softmax regression the Hessian's trace is (|x|^2 + 1) times this (the 1 is
  the bias).

  Args:
    logits: [..., K] scores.

  Returns:
    [...] numbers in [0, 1 - 1/K].

  Reference:
    Thesis chapter 3, Theorem 3.5.
  """
  logits = jnp.asarray(logits)
  chex.assert_shape(logits, (..., None))
  probability = jax.nn.softmax(logits, axis=-1)
  # As a sum of products it cannot fall below 0 by rounding.
  return jnp.sum(probability * (1 - probability), axis=-1)


def top_two_margin(scores: ArrayLike) -> Float[jax.Array, "..."]:
  """The largest score minus the second largest.

  Returns:
    [...] margins, 0 on the boundary.
  """
  checks.require(
    np.ndim(scores) > 0 and np.shape(scores)[-1] > 1,
    "scores need at least two classes along the last axis",
  )
  top = jax.lax.top_k(jnp.asarray(scores), 2)[0]
  return top[..., 0] - top[..., 1]


def linear_distance(
  model: Model, params: Params, x: Features, *, order: float = 2
) -> Float[jax.Array, "n"]:
  """The exact distance of each input to the decision boundary of a linear model.

  min_{c != k} (z_k - z_c) / |w_k - w_c|_*,  k the predicted class,
  |.|_* the dual of the distance's norm

  The region of a class is an intersection of half spaces, so the nearest of
  their boundaries is the nearest boundary of the region.

  Args:
    model: whose logits are linear in the input, e.g. `models.logistic`.
    params: its parameters.
    x: [n, ...] inputs.
    order: order of the norm that measures distances: 2, or inf for the largest
      change of any feature.

  Returns:
    [n] distances in the space of inputs; infinite if no change of the input
    changes the class.
  """
  checks.one_of("order", order, _DUAL)
  distances, off = _distances(model, params, jnp.asarray(x), _DUAL[order])
  if checks.concrete(off):
    checks.require(
      bool(off <= _LINEAR_TOLERANCE),
      "model is not linear in its input, so its boundary is not made of "
      "planes; use closeness or top_two_margin",
    )
  return distances


@functools.partial(jax.jit, static_argnames=("model", "dual"))
def _distances(
  model: Model, params: Params, x: jax.Array, dual: int
) -> tuple[jax.Array, jax.Array]:
  """[n] distances, and how far the logits are from linear ones."""
  origin = jnp.zeros((1, *x.shape[1:]), x.dtype)
  offset = model.apply(params, origin)[0]
  slopes = jax.jacrev(lambda one: model.apply(params, one)[0])(origin)
  slopes = slopes.reshape(offset.shape[0], -1)  # [C, d]
  logits = model.apply(params, x)
  linear = x.reshape(x.shape[0], -1) @ slopes.T + offset
  off = jnp.max(jnp.abs(logits - linear)) / (1 + jnp.max(jnp.abs(logits)))
  best = jnp.argmax(logits, axis=-1)
  ahead = jnp.max(logits, axis=-1, keepdims=True) - logits
  between = slopes[best][:, None] - slopes[None]
  length = jnp.linalg.norm(between, dual, axis=-1)
  parallel = length == 0
  distance = ahead / jnp.where(parallel, 1.0, length)
  distance = jnp.where(parallel & (ahead > 0), jnp.inf, distance)
  own = jnp.arange(logits.shape[-1]) == best[:, None]
  return jnp.min(jnp.where(own, jnp.inf, distance), axis=-1), off
