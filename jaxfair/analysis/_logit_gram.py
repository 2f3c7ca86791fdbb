"""How the logits of one person move together when the parameters do.

With J the [C, p] Jacobian of one person's logits by the parameters, the Gram
matrix K = J J' holds all that norms and Gauss-Newton traces need: a gradient
is J' r, so |J' r|^2 = r' K r, and Tr(J' A J) = <A, K>. It is contracted from
the layers' inputs and back-propagated signals; J is never built.
"""

import jax
import jax.numpy as jnp

from jaxfair import models
from jaxfair.analysis._directional_derivatives import in_chunks
from jaxfair.analysis._layer_outputs import Layers, read_layers
from jaxfair.models import _losses
from jaxfair.privacy import _factor_norms, _factors, _site_factors
from jaxfair.types import Array, Features, Model, Params, PerExampleLoss, PyTree

# Losses that do not change when a constant is added to all logits of a person:
# their derivatives by the logits sum to zero, and contrasts say it all.
SHIFT_INVARIANT: frozenset[PerExampleLoss] = frozenset(
  {models.cross_entropy, models.soft_cross_entropy, _losses.ramp, _losses.exponential}
)


def logit_gram(
  model: Model, params: Params, x: Features, *, contrasts: bool = False
) -> tuple[jax.Array, jax.Array]:
  """Every person's logits and Gram matrix of the logits' Jacobian.

  K_i = J_i J_i',  J_i = d logits(x_i) / d params

  Args:
    model: any model without operations across examples.
    params: the parameters at which it is evaluated.
    x: [n, ...] inputs.
    contrasts: of the differences to the last class's logit instead: one class
      less, which is half the work for two.

  Returns:
    [n, C] logits and [n, C, C] Gram matrices, for C backward passes; with
    contrasts [n, C - 1, C - 1]. Differentiable by the parameters.
  """
  layers = read_layers(model, params, x)
  return in_chunks(lambda rows: _gram(layers, params, rows, contrasts), x)


def one_loss(loss: PerExampleLoss, logits: jax.Array, y: Array) -> jax.Array:
  """The loss of one person's [C] logits."""
  return loss(logits[None], y[None])[0]


def contraction(matrices: jax.Array, gram: jax.Array) -> jax.Array:
  """[n] <A, K>, for symmetric [n, C, C] matrices A.

  Where the Gram matrices are of contrasts, the rows of A must sum to zero:
  then A is determined by its part without the last class.
  """
  kept = gram.shape[-1]
  return jnp.sum(matrices[:, :kept, :kept] * gram, axis=(1, 2))


def _gram(
  layers: Layers, params: Params, x: jax.Array, contrasts: bool
) -> tuple[jax.Array, jax.Array]:
  def pull(x_one: jax.Array) -> PyTree:
    logits, backward, inputs = jax.vjp(
      lambda pushes: layers.logits(params, pushes, x_one), layers.zeros(), has_aux=True
    )
    basis = jnp.eye(logits.shape[0])
    if contrasts and len(basis) > 1:
      basis = basis[:-1] - basis[-1]
    (signals,) = jax.vmap(backward)(basis)
    return logits, inputs, signals

  logits, inputs, signals = jax.vmap(pull, out_axes=(0, 0, 1))(x)

  def parts(signal: PyTree) -> list[list[_factors.Part]]:
    at_sites, at_leaves = signal
    found: list[list[_factors.Part]] = [[] for _ in layers.shapes]
    sites = layers.reading.sites
    for site, data, one in zip(sites, inputs, at_sites, strict=True):
      leaf = site.view.leaf
      found[leaf].append(_site_factors.part(site, data, one, layers.shapes[leaf]))
    for leaf, one in zip(layers.whole, at_leaves, strict=True):
      found[leaf].append(_factors.Whole(one))
    return [_factors.gather(p, s) for p, s in zip(found, layers.shapes, strict=True)]

  def inner(first: PyTree, second: PyTree) -> jax.Array:
    total = jnp.zeros(x.shape[0])
    for a, b in zip(parts(first), parts(second), strict=True):
      total += _factor_norms.inner_products(a, b, x.shape[0])
    return total

  by_pairs = jax.vmap(jax.vmap(inner, in_axes=(None, 0)), in_axes=(0, None))
  return logits, jnp.moveaxis(by_pairs(signals, signals), -1, 0)
