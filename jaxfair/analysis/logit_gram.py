"""How the logits of one person move together when the parameters do.

With J the [C, p] Jacobian of one person's logits by the parameters, the Gram
matrix K = J J' holds all that norms and Gauss-Newton traces need: a gradient
is J' r, so |J' r|^2 = r' K r, and Tr(J' A J) = <A, K>. It is contracted from
the layers' inputs and back-propagated signals; J is never built.
"""

from typing import Any

import jax
import jax.numpy as jnp

from jaxfair.analysis.directions import in_chunks
from jaxfair.analysis.layers import Layers, read_layers
from jaxfair.privacy import factors
from jaxfair.types import Model, Params


def logit_gram(
  model: Model, params: Params, x: Any
) -> tuple[jax.Array, jax.Array]:
  """Every person's logits and Gram matrix of the logits' Jacobian.

  K_i = J_i J_i',  J_i = d logits(x_i) / d params

  Args:
    model: any model without operations across examples.
    params: where.
    x: [n, ...] inputs.

  Returns:
    [n, C] logits and [n, C, C] Gram matrices, for C backward passes.
    Differentiable by the parameters.
  """
  layers = read_layers(model, params, x)
  return in_chunks(lambda rows: _gram(layers, params, rows), x)


def _gram(
  layers: Layers, params: Params, x: jax.Array
) -> tuple[jax.Array, jax.Array]:
  def pull(x_one: jax.Array) -> Any:
    logits, backward, inputs = jax.vjp(
      lambda pushes: layers.logits(params, pushes, x_one),
      layers.zeros(),
      has_aux=True,
    )
    (signals,) = jax.vmap(backward)(jnp.eye(logits.shape[0]))
    return logits, inputs, signals

  logits, inputs, signals = jax.vmap(pull, out_axes=(0, 0, 1))(x)

  def parts(signal: Any) -> list[list[factors.Part]]:
    at_sites, at_leaves = signal
    found: list[list[factors.Part]] = [[] for _ in layers.shapes]
    sites = layers.reading.sites
    for site, data, one in zip(sites, inputs, at_sites, strict=True):
      leaf = site.view.leaf
      found[leaf].append(factors.part(site, data, one, layers.shapes[leaf]))
    for leaf, one in zip(layers.whole, at_leaves, strict=True):
      found[leaf].append(factors.Whole(one))
    return [
      factors.gather(p, s) for p, s in zip(found, layers.shapes, strict=True)
    ]

  def inner(first: Any, second: Any) -> jax.Array:
    total = jnp.zeros(x.shape[0])
    for a, b in zip(parts(first), parts(second), strict=True):
      total += factors.inner_products(a, b, x.shape[0])
    return total

  by_pairs = jax.vmap(jax.vmap(inner, in_axes=(None, 0)), in_axes=(0, None))
  return logits, jnp.moveaxis(by_pairs(signals, signals), -1, 0)
