"""Terms of an objective besides the people's losses, the same for every trainer.

  mean loss + weight_decay / 2 ||theta||^2 + proximity / 2 ||theta - anchor||^2
            + sum of penalties

The first two are numbers of a config, and may be swept. Penalties are objects with a gradient of
their own. None of them is protected by clipping or noise.
"""

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, tree
from jaxfair.types import Array, Key, Labels, Model, Number, Params, PerExampleLoss


class UncoveredError(checks.JaxfairError):
  """An epsilon was asked for that would not cover all that was computed."""


class Penalty(Protocol):
  """A term of the objective besides the people's losses.

  Attributes:
    public: whether it reads nothing but parameters and public data. If not, no
      epsilon covers the training, and its config gives none.
    inside: whether private training adds its gradient to each person's before
      clipping, instead of behind the noise.
  """

  @property
  def public(self) -> bool:
    """See the class."""

  @property
  def inside(self) -> bool:
    """See the class."""

  def check(self, model: Model) -> None:
    """Raises, before any work, if training with these settings is impossible."""

  def gradient(self, params: Params, *, l2_clip: jax.Array | None, key: Key) -> Params:
    """Its gradient at the parameters; the key is used once.

    There is no clip bound in a training without privacy.
    """


def check(config: Any, model: Model) -> None:
  """Raises for negative weights and for penalties that were made for another model."""
  checks.non_negative("weight_decay", config.weight_decay)
  checks.non_negative("proximity", getattr(config, "proximity", 0.0))
  penalties = getattr(config, "penalties", ())
  checks.require(isinstance(penalties, tuple), "penalties must be a tuple, such as (penalty,)")
  for penalty in penalties:
    penalty.check(model)


def check_anchor(config: Any, anchor: Params | None) -> None:
  """Raises for a proximity term without a center."""
  proximity = getattr(config, "proximity", 0.0)
  if checks.concrete(proximity) and anchor is None:
    checks.require(
      not np.any(np.asarray(proximity) > 0), "proximity needs a center; pass anchor=parameters"
    )


def pull(params: Params, config: Any, anchor: Params | None) -> jax.Array:
  """Weight decay and proximity of a config: the part that is differentiated with the losses."""
  value = 0.5 * config.weight_decay * tree.squared_norm(params)
  if anchor is not None:
    distance = tree.squared_norm(tree.subtract(params, anchor))
    value += 0.5 * config.proximity * distance
  return value


def penalty_gradient(
  config: Any,
  params: Params,
  *,
  l2_clip: Number | None,
  key: Key | None,
  inside: bool | None = None,
) -> Params | None:
  """The sum of the gradients of a config's penalties; None if there is none.

  Args:
    config: has `penalties`.
    params: the parameters at which the gradient is taken.
    l2_clip: the clip bound in use; None in a training without privacy.
    key: used by one penalty, or split among several.
    inside: takes only those inside the clip, or only those behind the noise.
  """
  total = None
  for penalty, own in zip(config.penalties, _keys(key, len(config.penalties)), strict=True):
    if inside is None or penalty.inside == inside:
      one = penalty.gradient(params, l2_clip=l2_clip, key=own)
      total = one if total is None else tree.add(total, one)
  return total


def _keys(key: Any, count: int) -> list[Any]:
  return count * [key] if count < 2 else list(jax.random.split(key, count))


def added_to_each(
  model: Model, loss: PerExampleLoss, extra: Params
) -> tuple[Model, PerExampleLoss]:
  """A model and loss whose gradient is each person's plus `extra`, before any clipping.

  l_i(theta) + <theta - theta_0, extra>,  theta_0 the parameters as they are

  The second term travels as one more output of the model; its value is 0.
  """

  def apply(params: Params, x: Array) -> jax.Array:
    outputs = model.apply(params, x)
    moved = tree.subtract(params, jax.lax.stop_gradient(params))
    term = jnp.full((outputs.shape[0], 1), tree.dot(moved, extra))
    return jnp.concatenate([outputs, term], axis=1)

  def total(outputs: jax.Array, y: Labels) -> jax.Array:
    return loss(outputs[:, :-1], y) + outputs[:, -1]

  return Model(model.init, apply), total
