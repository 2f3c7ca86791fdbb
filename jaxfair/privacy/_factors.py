"""Per-example gradients as products of factors, and their weighted sums.

Where a parameter matrix W meets data, the gradient of one example is `L^T R`:
L is [positions, height] and R [positions, width], one of them the inputs and
the other the back-propagated signals. At an embedding L is one-hot and kept as
row numbers. Weighted sums over examples come from the factors, and so do norms
(`factor_norms`); the product is built only where it is no larger than they are.
"""

import dataclasses
from collections.abc import Callable
from typing import TypeAlias, TypeGuard

import jax
import jax.numpy as jnp

from jaxfair.types import Array


@dataclasses.dataclass(frozen=True)
class Whole:
  """Gradients that were built.

  Attributes:
    gradients: [stack * n, ...] all their entries, in any layout.
    rebuild: from [stack, ...] of that layout to the leaf's; None if it is the leaf's (then the
      stack is 1).
    stack: how many gradients there are for each example: one for each slice of the leaf.
  """

  gradients: jax.Array
  rebuild: Callable[[jax.Array], jax.Array] | None = None
  stack: int = 1

  @property
  def exposed(self) -> jax.Array | None:
    """The numbers that a weighted sum multiplies by weights of 0, where these must be finite."""
    return self.gradients

  def with_exposed(self, numbers: jax.Array) -> "Whole":
    """The same part with other numbers there."""
    return dataclasses.replace(self, gradients=numbers)


@dataclasses.dataclass(frozen=True)
class Product:
  """L^T R per example.

  Attributes:
    left: [stack * n, positions, height] numbers, or [n, positions] row numbers that stand for
      one-hot rows (those outside the table count as zero).
    right: [stack * n, positions, width].
    rebuild: from [stack, height, width] to the leaf's gradient; None if the leaf is that matrix
      (then the stack is 1).
    height: number of rows.
    stack: how many products there are for each example: one for each slice of the leaf.
  """

  left: jax.Array
  right: jax.Array
  rebuild: Callable[[jax.Array], jax.Array] | None
  height: int
  stack: int = 1

  @property
  def exposed(self) -> jax.Array | None:
    """As `Whole.exposed`: signals are replaced where the weight is 0, row numbers are finite."""
    return self.left if self.left.ndim == 3 else None

  def with_exposed(self, numbers: jax.Array) -> "Product":
    """The same part with other numbers there."""
    return dataclasses.replace(self, left=numbers)


Part = Whole | Product
Leaf: TypeAlias = Array | jax.ShapeDtypeStruct  # a parameter; only its shape and type are read
# Accelerators multiply float32 matrices in fewer digits unless told otherwise: norms would be off
# by far more than is allowed for, and a clipped gradient would leave its bound in the sum.
PRECISION = jax.lax.Precision.HIGHEST


def gather(parts: list[Part], leaf: Leaf) -> list[Part]:
  """Chooses the form in which a leaf's gradients are kept.

  One product stays factored unless building it is cheaper. Several products (a shared matrix) stay
  factored if each is a plain matrix product; otherwise all parts are built and added.
  """
  if len(parts) < 2:
    return [_matrices(p) if _build_is_smaller(p) else p for p in parts]
  if all(_is_plain_product(p) for p in parts):
    return parts
  total = build(parts[0], leaf)
  for other in parts[1:]:
    total += build(other, leaf)
  return [Whole(total)]


def weighted_sum(parts: list[Part], weights: jax.Array, leaf: Leaf) -> jax.Array:
  """sum_i weights[i] gradient_i, in the leaf's shape."""
  total = jnp.zeros(leaf.shape, leaf.dtype)
  for p in parts:
    if isinstance(p, Whole):
      by_slice = p.gradients.reshape(p.stack, weights.shape[0], *p.gradients.shape[1:])
      found = _by_slice(
        lambda g: jnp.tensordot(weights, g, axes=1, precision=PRECISION), p.stack, by_slice
      )
      total += found[0] if p.rebuild is None else p.rebuild(found)
      continue
    # Where the weight is 0 the signal may be anything, NaN too.
    weight = jnp.tile(weights, p.stack)[:, None, None]
    right = jnp.where(weight == 0, 0.0, p.right * weight)
    if p.left.ndim == 2:
      rows = p.left.reshape(-1)
      updates = right.reshape(rows.size, right.shape[2])
      total = total.at[rows].add(updates, mode="drop")
      continue
    everywhere = weights.shape[0] * p.left.shape[1]
    matrices = _by_slice(
      lambda a, b: jnp.matmul(a.T, b, precision=PRECISION),
      p.stack,
      p.left.reshape(p.stack, everywhere, p.left.shape[2]),
      right.reshape(p.stack, everywhere, right.shape[2]),
    )
    total += matrices[0] if p.rebuild is None else p.rebuild(matrices)
  return total


def _by_slice(function: Callable[..., jax.Array], stack: int, *arrays: jax.Array) -> jax.Array:
  """The function of each slice; of one as it is, to the last bit of a plain product."""
  if stack == 1:
    return function(*(array[0] for array in arrays))[None]
  return jax.vmap(function)(*arrays)


def zero_where(bad: jax.Array, array: jax.Array, stack: int) -> jax.Array:
  """[stack * n, ...] numbers with those of some examples replaced by zero."""
  mask = jnp.tile(bad, stack).reshape(array.shape[0], *(1,) * (array.ndim - 1))
  return jnp.where(mask, jnp.zeros((), array.dtype), array)


def build(p: Part, leaf: Leaf) -> jax.Array:
  """[n, *leaf] gradients."""
  if isinstance(p, Whole):
    if p.rebuild is None:
      return p.gradients
    count = p.gradients.shape[0] // p.stack
    by_slice = p.gradients.reshape(p.stack, count, *p.gradients.shape[1:])
    return jax.vmap(p.rebuild, in_axes=1)(by_slice)
  if p.left.ndim == 2:
    empty = jnp.zeros(leaf.shape, leaf.dtype)
    return jax.vmap(lambda r, s: empty.at[r].add(s, mode="drop"))(p.left, p.right)
  return build(_matrices(p), leaf)


def products(left: jax.Array, right: jax.Array) -> jax.Array:
  """[n, height, width] L^T R, or [n, width, height] if the height is the longer side."""
  order = "nth,ntw->nwh" if left.shape[-1] > right.shape[-1] else "nth,ntw->nhw"
  return jnp.einsum(order, left, right)


def _matrices(p: Product) -> Whole:
  """[stack * n, height, width] or its transpose."""
  found = products(p.left, p.right)
  if p.left.shape[-1] <= p.right.shape[-1]:
    return Whole(found, p.rebuild, p.stack)

  def rebuild(matrices: jax.Array) -> jax.Array:
    turned = matrices.swapaxes(1, 2)
    return turned[0] if p.rebuild is None else p.rebuild(turned)

  return Whole(found, rebuild, p.stack)


def _is_plain_product(p: Part) -> bool:
  return isinstance(p, Product) and p.rebuild is None


def _build_is_smaller(p: Part) -> TypeGuard[Product]:
  """Whether L^T R is worth building: one matrix beats a Gram of positions.

  Building and keeping it saves the second contraction; it must not take more
  memory than the factors, which plain training holds as well.
  """
  if isinstance(p, Whole) or p.left.ndim == 2:
    return False
  positions, height, width = *p.left.shape[1:], p.right.shape[2]
  return positions > 1 and height * width <= 2 * positions * (height + width)
