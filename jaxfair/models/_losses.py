"""Losses of one prediction each: `(logits, y) -> [n]`; no means are taken here.

All stay finite, with finite gradients, for float32 logits up to 1e4 in size. A
class id outside 0..C-1 gives NaN, never a silent class.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxfair import checks
from jaxfair.types import Array, Labels, Scores

# exp(-margin) is continued by its tangent below this margin: e^20 squared
# still fits float32, which gradient norms need.
_STEEPEST_MARGIN = -20.0


def cross_entropy(logits: Scores, y: Labels) -> Float[jax.Array, "n"]:
  """-log softmax(logits)[y].

  Args:
    logits: [n, C] scores.
    y: [n] class ids.

  Returns:
    [n] losses.
  """
  _check_ids("cross_entropy", logits, y)
  return -_pick(jax.nn.log_softmax(logits, axis=-1), y)


def soft_cross_entropy(logits: Scores, targets: Scores) -> Float[jax.Array, "n"]:
  """Cross-entropy against weights of the classes.

  sum_c a_c (-log softmax(logits)[c])

  Weights need not sum to one and may be negative, as noisy vote shares are;
  the loss is linear in them. With negative weights it has no lower bound.

  Args:
    logits: [n, C] scores.
    targets: [n, C] weights a.

  Returns:
    [n] losses.
  """
  _check_same("soft_cross_entropy", logits, targets)
  return -jnp.sum(targets * jax.nn.log_softmax(logits, axis=-1), axis=-1)


def squared(logits: Scores, y: Array) -> Float[jax.Array, "n"]:
  """Squared error of the raw scores, without a softmax.

  sum_c (logits_c - t_c)^2,  t = the one-hot row of y, or y itself

  Args:
    logits: [n, C] scores; [n, 1] for a regression.
    y: [n] class ids; or real targets, [n, C] or, for C = 1, [n].

  Returns:
    [n] losses.
  """
  num_outputs = np.shape(logits)[-1]
  if jnp.issubdtype(jnp.result_type(y), jnp.floating):
    scalar = np.ndim(y) < np.ndim(logits)
    targets = jnp.expand_dims(y, -1) if scalar else y
    _check_same("squared", logits, targets)
    return jnp.sum(jnp.square(logits - targets), axis=-1)
  _check_ids("squared", logits, y)
  checks.require(num_outputs > 1, "squared: one output is a regression; pass y as float targets")
  chosen = _chosen(y, num_outputs)
  losses = jnp.sum(jnp.square(logits - chosen), axis=-1)
  return jnp.where(jnp.any(chosen, axis=-1), losses, jnp.nan)


def margin(logits: Scores, y: Labels) -> Float[jax.Array, "n"]:
  """How far the score of y lies above the best other score.

  m = logits_y - max_{c != y} logits_c

  For two classes and y in {-1, 1} this is y f(x), f the difference of scores.

  Returns:
    [n] margins; positive where the prediction is right.
  """
  _check_ids("margin", logits, y)
  num_classes = np.shape(logits)[-1]
  checks.require(num_classes > 1, "margin: logits need at least two classes")
  others = jnp.where(_chosen(y, num_classes), -jnp.inf, logits)
  return _pick(logits, y) - jnp.max(others, axis=-1)


def ramp(logits: Scores, y: Labels) -> Float[jax.Array, "n"]:
  """min(1, max(0, 1 - margin)): bounded, so no outlier can dominate.

  At a margin of exactly 0 or 1 the gradient is half of the slope inside, so a
  model started at zero does move.

  Returns:
    [n] losses in [0, 1].
  """
  return jnp.minimum(1.0, jnp.maximum(0.0, 1.0 - margin(logits, y)))


def exponential(logits: Scores, y: Labels) -> Float[jax.Array, "n"]:
  """exp(-margin), continued by its tangent where the margin is below -20.

  Returns:
    [n] losses.
  """
  m = margin(logits, y)
  steepest = float(np.exp(-_STEEPEST_MARGIN))
  tangent = steepest * (1.0 + _STEEPEST_MARGIN - m)
  # The inner maximum keeps the branch not taken from overflowing.
  curve = jnp.exp(-jnp.maximum(m, _STEEPEST_MARGIN))
  return jnp.where(m > _STEEPEST_MARGIN, curve, tangent)


def zero_one(logits: Scores, y: Labels) -> Float[jax.Array, "n"]:
  """1 where the predicted class is not y, else 0; ties go to the lower id.

  Args:
    logits: [n, C] scores.
    y: [n] class ids.

  Returns:
    [n] losses; their gradient is zero everywhere.
  """
  _check_ids("zero_one", logits, y)
  wrong = jnp.argmax(logits, axis=-1) != y
  known = jnp.any(_chosen(y, np.shape(logits)[-1]), axis=-1)
  return jnp.where(known, wrong.astype(jnp.float32), jnp.nan)


def _chosen(y: Array, num_classes: int) -> jax.Array:
  """[n, C] mask of each row's class; an id out of range chooses none."""
  return jnp.expand_dims(y, -1) == jnp.arange(num_classes)


def _pick(values: Array, y: Array) -> jax.Array:
  """values[i, y[i]]. A mask, because a gather's gradient scatters, slowly."""
  chosen = _chosen(y, np.shape(values)[-1])
  picked = jnp.sum(jnp.where(chosen, values, 0.0), axis=-1)
  return jnp.where(jnp.any(chosen, axis=-1), picked, jnp.nan)


def _check_ids(loss: str, logits: Scores, y: Array) -> None:
  checks.require(
    np.ndim(logits) == np.ndim(y) + 1
    and np.shape(logits)[:-1] == np.shape(y)
    and not jnp.issubdtype(jnp.result_type(y), jnp.floating),
    f"{loss}: needs logits [n, C] and integer class ids y [n], got "
    f"{np.shape(logits)} and {jnp.result_type(y)} {np.shape(y)}",
  )


def _check_same(loss: str, logits: Scores, targets: Array) -> None:
  checks.require(
    np.shape(logits) == np.shape(targets),
    f"{loss}: needs logits and targets of one shape [n, C], got "
    f"{np.shape(logits)} and {np.shape(targets)}",
  )
