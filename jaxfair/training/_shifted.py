"""The same gradient added to every person's, before any clipping."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxfair import tree
from jaxfair.types import Model, Params, PerExampleLoss


def shifted(model: Model, loss: PerExampleLoss, shift: Params) -> tuple[Model, PerExampleLoss]:
  """A model and loss whose gradient is each person's plus `shift`.

  l_i(theta) + <theta - theta_0, shift>,  theta_0 the parameters as they are

  The second term travels as one more output of the model; its value is 0.

  Args:
    model: any model with outputs [n, C].
    loss: `(logits, y) -> [n]` losses.
    shift: tree of the parameters.
  """

  def apply(params: Params, x: Any) -> jax.Array:
    outputs = model.apply(params, x)
    moved = tree.subtract(params, jax.lax.stop_gradient(params))
    term = jnp.full((outputs.shape[0], 1), tree.dot(moved, shift))
    return jnp.concatenate([outputs, term], axis=1)

  def total(outputs: jax.Array, y: Any) -> jax.Array:
    return loss(outputs[:, :-1], y) + outputs[:, -1]

  return Model(model.init, apply), total
