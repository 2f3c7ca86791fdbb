"""Predictions of a trained model for many people, in bounded memory."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from jaxfair import checks
from jaxfair.types import Features, Model, Params


def predict(
  model: Model, params: Params, x: Features, *, batch_size: int = 1024
) -> Int[jax.Array, "n"]:
  """The class with the largest logit; ties go to the lower id.

  Args:
    model: any model; a static argument of the compiled program.
    params: its parameters.
    x: [n, ...] examples.
    batch_size: examples held in memory at once.

  Returns:
    [n] int32 class ids.
  """
  logits = _logits(model, params, x, batch_size)
  return jnp.argmax(logits, axis=-1).astype(jnp.int32)


def scores(
  model: Model, params: Params, x: Features, *, batch_size: int = 1024
) -> Float[jax.Array, "n classes"]:
  """softmax(logits), the probability of each class.

  Args:
    model: any model; a static argument of the compiled program.
    params: its parameters.
    x: [n, ...] examples.
    batch_size: examples held in memory at once.

  Returns:
    [n, C] probabilities.
  """
  return jax.nn.softmax(_logits(model, params, x, batch_size), axis=-1)


def _logits(model: Model, params: Params, x: Features, batch_size: int) -> jax.Array:
  checks.integer("batch_size", batch_size, low=1)
  checks.require(np.ndim(x) > 0, "x needs a leading batch axis")
  return _chunked(model, params, x, int(batch_size))


@functools.partial(jax.jit, static_argnums=(0, 3))
def _chunked(model: Model, params: Params, x: jax.Array, batch_size: int) -> jax.Array:
  n = x.shape[0]
  if n <= batch_size:
    return model.apply(params, x)
  num_chunks = -(-n // batch_size)
  # Chunks of equal size, so that fewer rows are padded than there are chunks.
  size = -(-n // num_chunks)
  # Repeating a row pads with values that the model is known to take.
  last = jnp.broadcast_to(x[-1:], (num_chunks * size - n, *x.shape[1:]))
  chunks = jnp.concatenate([x, last]).reshape(num_chunks, size, *x.shape[1:])
  logits = jax.lax.map(functools.partial(model.apply, params), chunks)
  return logits.reshape(num_chunks * size, *logits.shape[2:])[:n]
