"""Allowed perturbations: balls around an input, in two norms."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair.types import Array, Number

_SMALL, _SHIFT = 1e-24, 1e-18  # squares below lose digits; a scale that helps


class Ball(NamedTuple):
  """All perturbations up to some size, for batches [n, ...] of inputs.

  Attributes:
    name: name for tables and figures.
    norm: `perturbations -> [n]` their sizes.
    steepest: `gradients -> perturbations` of size 1 along which a function with these
      gradients rises fastest; 0 where the gradient is 0.
    project: `(perturbations, epsilon) -> perturbations` the nearest ones within epsilon,
      which is one number, or [n] numbers.
    dual: order of the norm that measures gradients: a linear function changes
      by at most epsilon times the dual norm of its slope.
  """

  name: str
  norm: Callable[[Any], jax.Array]
  steepest: Callable[[Any], jax.Array]
  project: Callable[[Any, Any], jax.Array]
  dual: int


def times(per_row: Array, values: Array) -> jax.Array:
  """Each row times its own number.

  As a matrix: over the short last axis of an image the compiler's loops are
  three times slower.
  """
  return (_rows(values) * per_row[:, None]).reshape(values.shape)


def beside(per_row: Number, values: Array) -> Number:
  """One number as it is; [n] numbers so that they go with rows of values."""
  if not jnp.ndim(per_row):
    return per_row
  return jnp.reshape(per_row, (-1, *(1,) * (values.ndim - 1)))


def choose(mask: Array, new: Array, old: Array) -> jax.Array:
  """Each row from the new ones where the mask is True; as matrices, too."""
  chosen = jnp.where(mask[:, None], _rows(new), _rows(old))
  return chosen.reshape(new.shape)


def _largest(push: Array) -> jax.Array:
  return jnp.max(jnp.abs(_rows(push)), axis=1)


def _clip(push: Array, epsilon: Number) -> jax.Array:
  bound = beside(epsilon, push)
  return jnp.clip(push, -bound, bound)


def _length(push: Array) -> jax.Array:
  """Euclidean lengths, also where the squares leave float32's range."""
  plain = _squares(push)
  scale = jnp.where(plain < _SMALL, 1 / _SHIFT, 1.0)
  scale = jnp.where(jnp.isfinite(plain), scale, _SHIFT)
  return jnp.sqrt(_squares(times(scale, push))) / scale


def _squares(push: Array) -> jax.Array:
  return jnp.sum(jnp.square(_rows(push)), axis=1)


def _unit(gradient: Array) -> jax.Array:
  length = _length(gradient)
  return times(1 / jnp.where(length > 0, length, jnp.inf), gradient)


def _shorten(push: Array, epsilon: Number) -> jax.Array:
  # No scaling here: a push whose square rounds to 0 is inside.
  length = jnp.sqrt(_squares(push))
  factor = jnp.where(length > epsilon, epsilon / jnp.maximum(length, 1e-30), 1)
  return times(factor, push)


def _rows(values: Array) -> jax.Array:
  return jnp.reshape(values, (values.shape[0], -1))


LINF = Ball("l_inf", _largest, jnp.sign, _clip, dual=1)
L2 = Ball("l_2", _length, _unit, _shorten, dual=2)
