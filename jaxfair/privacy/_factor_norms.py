"""Norms of per-example gradients from their factors, never below the truth.

If a norm is computed too small, the clipped gradient exceeds the bound, so every norm
includes an upper bound on its float32 rounding error.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.privacy._factors import PRECISION, Part, Product, Whole

_ROUNDING = 2.0**-24  # of one float32 operation, relative
_SMALLEST = 2.0**-126  # below it CPUs count float32 numbers as zero
_einsum = functools.partial(jnp.einsum, precision=PRECISION)


def squared_norms(parts: list[Part], num_examples: int) -> jax.Array:
  """[n] squared norms of one leaf's per-example gradients.

  |sum_i P_i|^2 = sum_i |P_i|^2 + 2 sum_{i<j} <P_i, P_j>
  """
  total = jnp.zeros(num_examples)
  for i, a in enumerate(parts):
    total += _over_slices(_squared_norm(a), a.stack)
    for b in parts[:i]:
      total += 2 * _inner(a, b)
  return total


class Allowance(NamedTuple):
  """A bound on what rounding hides of squared norms: share * squared + least + more.

  Attributes:
    share: of the squared norm.
    least: for squares below the smallest float.
    more: [n] numbers that depend on the example; None if there are none.
  """

  share: float
  least: float
  more: jax.Array | None


def hidden_by_rounding(parts: list[Part], squared: jax.Array, later: int = 0) -> jax.Array:
  """[n] the most by which `squared_norms` may lie below the truth, for the parts of one leaf."""
  allowed = allowance(parts, squared.shape[0], later)
  hidden = allowed.share * squared + allowed.least
  return hidden if allowed.more is None else hidden + allowed.more


def largest_norms(kept: list[list[Part]], squared: jax.Array) -> jax.Array:
  """[leaves, n] upper bounds on the squared norms that hold despite float32 rounding.

  Never negative, and finite only if the norm and what is added to it are.

  Args:
    kept: the parts of each leaf.
    squared: [leaves, n] their `squared_norms`.
  """
  # All leaves at once: kernels of a few numbers are soon run but as long to compile as others.
  allowed = [allowance(parts, squared.shape[1], len(kept)) for parts in kept]
  share = np.array([[a.share] for a in allowed], np.float32)
  least = np.array([[a.least] for a in allowed], np.float32)
  hidden = share * squared + least
  if any(a.more is not None for a in allowed):
    zeros = jnp.zeros(squared.shape[1])
    hidden += jnp.stack([zeros if a.more is None else a.more for a in allowed])
  return squared + hidden


def allowance(parts: list[Part], count: int, later: int) -> Allowance:
  """What is added to the squared norms of `count` gradients of one leaf.

  With u = 2^-24, a float32 sum or dot product of m terms, in whatever order,
  is off by gamma_m = m u / (1 - m u) times the sum of the terms' sizes at most
  (Higham 2002, section 3.1). Squares that are added up are their own sizes.
  Terms of a Gram matrix have either sign: for rows l_t of length h and r_t of
  width w, at T positions of p products, the sum over pairs of positions is off
  by gamma_m S, m = h + w + 2 T + p^2 + 8, S = (sum_t |l_t| |r_t|)^2, however
  small it is itself. S is computed in float32, too, which the factor gamma_m / (1 - gamma_m)
  accounts for. Squares below the smallest float count as zero; that is accounted for
  twice, since S lacks them, too. Norms of slices add up, and so do their bounds.

  Args:
    parts: of one leaf.
    count: number of examples.
    later: roundings of non-negative sums that are still to come.
  """
  if len(parts) == 1 and isinstance(parts[0], Whole):
    shape, stack = parts[0].gradients.shape[1:], parts[0].stack
    share = _rounding_share(sum(shape) + 2 + later + stack)
    return Allowance(share, stack * math.prod(shape) * _SMALLEST, None)
  products = [p for p in parts if isinstance(p, Product)]
  positions = sum(p.right.shape[1] for p in products)
  stack = products[0].stack if products else 1  # several products are never stacked
  sizes = lost = jnp.zeros(stack * count)
  longest = 0
  for p in products:
    left, right = _squared_rows(p), _squared_lengths(p.right)
    # Of one-hot rows no products are taken.
    height, width = p.height if p.left.ndim == 3 else 0, p.right.shape[2]
    sizes += jnp.sum(jnp.sqrt(left) * jnp.sqrt(right), axis=1)
    flushed = height * right + width * left
    lost += positions * _SMALLEST * (jnp.sum(flushed, axis=1) + positions)
    longest = max(longest, height + width)
  later += stack
  lost = _over_slices(lost, stack)
  if positions == 1:  # |l|^2 |r|^2: nothing cancels
    return Allowance(_rounding_share(longest + 2 + later), 0.0, 2 * lost)
  share = _rounding_share(longest + 2 * positions + len(parts) ** 2 + 8 + later)
  return Allowance(0.0, 0.0, share * _over_slices(sizes**2, stack) + 2 * lost)


def inner_products(parts: list[Part], others: list[Part], num_examples: int) -> jax.Array:
  """[n] inner products of two gradients of one leaf, from like parts.

  <sum_i P_i, sum_j Q_j> = sum_{i,j} <P_i, Q_j>

  Args:
    parts: of one gradient, as `gather` keeps them.
    others: of the other; the same sites under another signal.
    num_examples: n.
  """
  total = jnp.zeros(num_examples)
  for a in parts:
    for b in others:
      total += _inner(a, b)
  return total


def _over_slices(values: jax.Array, stack: int) -> jax.Array:
  """[stack * n] -> [n] sums: slices of a leaf are different parameters."""
  return values if stack == 1 else jnp.sum(values.reshape(stack, values.shape[0] // stack), axis=0)


def _rounding_share(roundings: int) -> float:
  """gamma_m / (1 - gamma_m) for m = `roundings` + 2; the two cover this computation itself."""
  errors = (roundings + 2) * _ROUNDING
  if errors > 0.1:
    raise checks.ArgumentError(
      f"a layer sums {roundings} float32 numbers for one gradient's norm, more "
      "than its rounding can be bounded for; split the layer"
    )
  return errors / (1 - 2 * errors)


def _squared_norm(p: Part) -> jax.Array:
  if isinstance(p, Whole):
    return _add_up(p.gradients**2)
  if p.right.shape[1] == 1 and p.left.ndim == 3:  # |a g^T|^2 = |a|^2 |g|^2
    return jnp.sum(p.left**2, axis=(1, 2)) * jnp.sum(p.right**2, axis=(1, 2))
  return _inner(p, p)


def _squared_rows(p: Product) -> jax.Array:
  """[n, positions] squared norms of the rows of L."""
  if p.left.ndim == 3:
    return _squared_lengths(p.left)
  inside = (p.left >= 0) & (p.left < p.height)
  return inside.astype(p.right.dtype)


def _squared_lengths(rows: jax.Array) -> jax.Array:
  """[n, positions]; of one, as `_squared_norm` sums it: once for both."""
  if rows.shape[1] == 1:
    return jnp.sum(rows**2, axis=(1, 2))[:, None]
  return jnp.sum(rows**2, axis=2)


def _inner(a: Part, b: Part) -> jax.Array:
  """Per example <La^T Ra, Lb^T Rb> = sum_{s,t} (La Lb^T)_st (Ra Rb^T)_st."""
  if isinstance(a, Whole) and isinstance(b, Whole):
    return _add_up(a.gradients * b.gradients)
  assert isinstance(a, Product)
  assert isinstance(b, Product)
  positions = (a.right.shape[1], b.right.shape[1])
  if positions == (1, 1) and a.left.ndim == b.left.ndim == 3:
    # One position each: two dot products, far faster than products of matrices.
    lefts = jnp.sum(a.left * b.left, axis=(1, 2))
    return lefts * jnp.sum(a.right * b.right, axis=(1, 2))
  rights = _einsum("nsw,ntw->nst", a.right, b.right)
  return _add_up(_left_gram(a, b) * rights)


def _left_gram(a: Product, b: Product) -> jax.Array:
  if a.left.ndim == 3 and b.left.ndim == 3:
    return _einsum("nsh,nth->nst", a.left, b.left)
  if a.left.ndim == 2 and b.left.ndim == 2:
    inside = (a.left >= 0) & (a.left < a.height)
    same = a.left[:, :, None] == b.left[:, None, :]
    return (same & inside[:, :, None]).astype(a.right.dtype)
  if a.left.ndim == 3:
    return jnp.swapaxes(_left_gram(b, a), 1, 2)
  look_up = jax.vmap(lambda rows, left: left.at[:, rows].get(mode="fill", fill_value=0))
  return jnp.swapaxes(look_up(a.left, b.left), 1, 2)


def _add_up(values: jax.Array) -> jax.Array:
  """[n, ...] -> [n], one axis after the other.

  The error of a sum may grow with the number of its terms, so that many short
  sums are better than a long one. The compiler would make one of them.
  """
  while values.ndim > 2:
    values = jax.lax.optimization_barrier(jnp.sum(values, axis=-1))
  return jnp.sum(values, axis=tuple(range(1, values.ndim)))
