"""Norms of inputs and of gradients: what clipping acts on."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxfair.analysis._by_group import ByGroup, mean_by_group
from jaxfair.analysis._curvature import check_people
from jaxfair.analysis._logit_gram import SHIFT_INVARIANT, contraction, logit_gram, one_loss
from jaxfair.privacy import clipped_grad
from jaxfair.types import Examples, Model, Params, PerExampleLoss


class NonPrivateNorms(NamedTuple):
  """Norms per person and their means per group. Not for release.

  Attributes:
    inputs: [n] |x_i|.
    gradients: [n] |grad l_i|, before any clipping; 0 for a person whose
      gradient is not finite, as in private training.
    mean_input: means of `inputs`.
    mean_gradient: means of `gradients`.
  """

  inputs: jax.Array
  gradients: jax.Array
  mean_input: ByGroup
  mean_gradient: ByGroup


def norms(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, *, num_groups: int
) -> NonPrivateNorms:
  """Norms of every person's input and gradient, and the groups' means.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    params: the parameters at which it is evaluated.
    examples: the people.
    num_groups: static number of groups G.

  Reference:
    Thesis chapter 3, Examples 3.1 and 3.2: for softmax regression
    |grad l_i| = |f - y| sqrt(|x_i|^2 + 1), the 1 from the bias.
  """
  check_people(examples, num_groups)
  return _norms(model, loss, params, examples, num_groups)


def gradient_norms(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples
) -> jax.Array:
  """[n] norms of per-person gradients, which are not built.

  |grad l_i|^2 = r_i' K_i r_i, with r the slope by the logits and K the Gram
  matrix of the logits' Jacobian. Unlike the norms that `privacy.clipped_grad`
  reports, these are differentiable by the parameters: where a gradient is
  zero, so is its norm's derivative.
  """
  logits, gram = logit_gram(model, params, examples.x, contrasts=loss in SHIFT_INVARIANT)
  own = functools.partial(one_loss, loss)
  slopes = jax.vmap(jax.grad(own))(logits, examples.y)
  squared = contraction(slopes[:, :, None] * slopes[:, None], gram)
  positive = squared > 0
  return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1.0)), 0.0)


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups"))
def _norms(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, num_groups: int
) -> NonPrivateNorms:
  examples = jax.tree.map(jnp.asarray, examples)
  flat = examples.x.reshape(examples.x.shape[0], -1)
  inputs = jnp.linalg.norm(flat, axis=1)
  gradients = clipped_grad(model, loss, l2_clip=1.0)(params, examples).norms
  return NonPrivateNorms(
    inputs,
    gradients,
    mean_by_group(inputs, examples.group, num_groups),
    mean_by_group(gradients, examples.group, num_groups),
  )
