"""Rates of a confusion tensor: accuracy, selection, true and false positives.

All take `[..., C, C]` counts (true class, predicted class) with any leading
axes, groups first by custom, and give NaN where a denominator is empty. A rate
that needs a positive class takes `pos_label`: a class id, or None. None means
class 1 when there are two classes; with more, every class in turn is the
positive one against the rest, and the result has a last axis of C.
"""

import functools

import chex
import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.fairness._groups import divide

_compiled = functools.partial(jax.jit, static_argnames="pos_label")


@jax.jit
def accuracy(counts: jax.Array) -> jax.Array:
  """P(y_pred = y_true): [...]."""
  _check(counts)
  right = jnp.trace(counts, axis1=-2, axis2=-1)
  return divide(right, jnp.sum(counts, axis=(-2, -1)))


@jax.jit
def balanced_accuracy(counts: jax.Array) -> jax.Array:
  """Mean over the classes that occur of P(y_pred = c | y_true = c): [...]."""
  _check(counts)
  hits = jnp.diagonal(counts, axis1=-2, axis2=-1)
  people = jnp.sum(counts, axis=-1)
  recalls = jnp.where(people > 0, hits / jnp.where(people > 0, people, 1), 0.0)
  return divide(jnp.sum(recalls, axis=-1), jnp.sum(people > 0, axis=-1))


@_compiled
def selection_rate(counts: jax.Array, pos_label: int | None = None) -> jax.Array:
  """P(y_pred = k): [...] or [..., C]."""
  _check(counts)
  predicted = jnp.sum(counts, axis=-2)
  total = jnp.sum(predicted, axis=-1, keepdims=True)
  return _positive(divide(predicted, total), pos_label)


@_compiled
def true_positive_rate(counts: jax.Array, pos_label: int | None = None) -> jax.Array:
  """P(y_pred = k | y_true = k): [...] or [..., C]."""
  _check(counts)
  hits = jnp.diagonal(counts, axis1=-2, axis2=-1)
  return _positive(divide(hits, jnp.sum(counts, axis=-1)), pos_label)


@_compiled
def false_negative_rate(counts: jax.Array, pos_label: int | None = None) -> jax.Array:
  """P(y_pred != k | y_true = k): [...] or [..., C]."""
  _check(counts)
  misses = jnp.sum(counts * _others(counts), axis=-1)
  return _positive(divide(misses, jnp.sum(counts, axis=-1)), pos_label)


@_compiled
def false_positive_rate(counts: jax.Array, pos_label: int | None = None) -> jax.Array:
  """P(y_pred = k | y_true != k): [...] or [..., C]."""
  false_alarms, negatives = _negatives(counts)
  return _positive(divide(false_alarms, negatives), pos_label)


@_compiled
def true_negative_rate(counts: jax.Array, pos_label: int | None = None) -> jax.Array:
  """P(y_pred != k | y_true != k): [...] or [..., C]."""
  false_alarms, negatives = _negatives(counts)
  return _positive(divide(negatives - false_alarms, negatives), pos_label)


def _check(counts: jax.Array) -> None:
  classes = counts.shape[-1]
  chex.assert_shape(counts, (..., classes, classes))


def _negatives(counts: jax.Array) -> tuple[jax.Array, jax.Array]:
  """False alarms, and everybody who is not of the class, for every class."""
  _check(counts)
  others = _others(counts)
  false_alarms = jnp.sum(counts * others, axis=-2)
  actual = jnp.sum(counts, axis=-1)
  negatives = jnp.sum(actual[..., None, :] * others, axis=-1)
  return false_alarms, negatives


def _others(counts: jax.Array) -> jax.Array:
  """[C, C] mask of the other classes.

  Adding them up keeps a few people exact beside millions; subtracting one
  class from the total would lose them in float32.
  """
  return 1 - jnp.eye(counts.shape[-1], dtype=counts.dtype)


def _positive(by_class: jax.Array, pos_label: int | None) -> jax.Array:
  num_classes = by_class.shape[-1]
  if pos_label is None:
    return by_class[..., 1] if num_classes == 2 else by_class
  checks.integer("pos_label", pos_label, low=0, high=num_classes - 1)
  return by_class[..., pos_label]
