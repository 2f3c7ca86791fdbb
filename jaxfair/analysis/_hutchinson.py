"""Traces from random directions, with their standard error (Hutchinson)."""

import chex
import jax
import jax.numpy as jnp

from jaxfair.analysis._directional_derivatives import along, in_chunks
from jaxfair.types import Examples, Key, Model, Params, PerExampleLoss, PyTree


def random_signs(params: Params, *, key: Key) -> Params:
  """A direction of independent signs, in the shape of the parameters."""
  leaves, treedef = jax.tree.flatten(params)
  keys = jax.random.split(key, len(leaves))
  signs = [
    jax.random.rademacher(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)
  ]
  return jax.tree.unflatten(treedef, signs)


def hutchinson_traces(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  weights: jax.Array,
  *,
  probes: int,
  key: Key,
) -> tuple[jax.Array, jax.Array]:
  """Unbiased estimates of every person's and every weighted mean's trace.

  Tr(H) = E[v' H v], v of independent signs

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    params: the parameters at which it is evaluated.
    examples: the people.
    weights: [K, n] rows whose sums with per-person traces are asked for.
    probes: number of directions m; the error falls with its root.
    key: for all directions.

  Returns:
    [n] means over the probes, and the [m, K] weighted means of each probe,
    whose spread tells the error.
  """
  chex.assert_shape(weights, (None, examples.x.shape[0]))

  def probe(total: jax.Array, index: jax.Array) -> PyTree:
    direction = random_signs(params, key=jax.random.fold_in(key, index))
    found = in_chunks(
      lambda rows: along(model, loss, params, rows, direction).curvatures, examples, 16_384
    )
    return total + found, weights @ found

  start = jnp.zeros(examples.x.shape[0])
  total, draws = jax.lax.scan(probe, start, jnp.arange(probes))
  return total / probes, draws
