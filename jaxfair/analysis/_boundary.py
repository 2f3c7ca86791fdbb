"""How close people are to the decision boundary."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxfair import checks
from jaxfair.types import ArrayLike


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
