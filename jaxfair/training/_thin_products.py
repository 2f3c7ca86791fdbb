"""Products with very few columns, column by column.

The gradient of a softmax regression's weights, x^T g, has as many columns as there are classes. For
two to four of them it is a product of a matrix and a few vectors, but XLA's CPU backend packs the
large operand first, as for a large product, and takes up to ten times as long as for one vector
after the other. So the steps of a training are rewritten. The sums are the same, and for batches of
usual size to the last bit.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from jaxfair import _jaxpr

CALL = _jaxpr.Kind.CALL  # loops and rematerialized parts stay as they are
WIDEST = 4  # columns; from about six on XLA's own product is faster
LARGE = 32  # rows and columns from which more than two thin columns pay
PACKED = 2**16  # numbers; from here on packing costs more than compiling


def by_columns(function: Callable[..., Any]) -> Callable[..., Any]:
  """The same function of pytrees, its thin products taken column by column.

  On other backends than the CPU it is the function itself.
  """

  def run(*arguments: Any) -> Any:
    if jax.default_backend() != "cpu":
      return function(*arguments)
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    leaves = jax.tree.leaves(arguments)
    results = _jaxpr.walk(closed, leaves, _rule, constant=lambda value: value)
    return jax.tree.unflatten(jax.tree.structure(shapes), results)

  return run


def _rule(equation: core.JaxprEqn, inputs: Sequence[Any]) -> Any:
  """A thin product by columns; anything else as it is."""
  if _is_thin(equation):
    with equation.ctx.manager:
      return [_columns(*inputs, **equation.params)]
  if _jaxpr.kind(equation) is CALL:
    inside = _jaxpr.equations(_jaxpr.opened(equation), through=(CALL,))
    if any(map(_is_thin, inside)):
      return None
  return _jaxpr.bind(equation, inputs)


def _is_thin(equation: Any) -> bool:
  """Whether it is a product of a large matrix and a few columns or rows.

  Measured on matrices of 32 to 30,000 rows and 20 to 784 columns. Summing
  down the columns of the large one is slow at any size; along its rows, where
  nothing needs turning round, only for large ones and two thin columns.
  """
  if equation.primitive.name != "dot_general":
    return False
  sums, batch = equation.params["dimension_numbers"]
  shapes = [atom.aval.shape for atom in equation.invars]
  matrices = all(len(shape) == 2 for shape in shapes)
  if batch != ((), ()) or not matrices or len(sums[0]) != 1:
    return False
  free = [shape[1 - axis] for shape, (axis,) in zip(shapes, sums, strict=True)]
  large = int(free[1] > free[0])
  few, shape = free[1 - large], shapes[large]
  if not 1 < few <= WIDEST < free[large]:
    return False
  if sums[large] == (0,):
    return few == 2 or min(shape) >= LARGE
  return few == 2 and math.prod(shape) >= PACKED


def _columns(
  left: jax.Array, right: jax.Array, *, dimension_numbers: Any, **params: Any
) -> jax.Array:
  """The product, by one product of matrix and vector for each column."""
  ((by_left,), (by_right,)), _ = dimension_numbers
  thin_left = left.shape[1 - by_left] < right.shape[1 - by_right]
  thin, free = (left, 1 - by_left) if thin_left else (right, 1 - by_right)
  found = []
  for index in range(thin.shape[free]):
    one = jax.lax.index_in_dim(thin, index, free, keepdims=False)
    first, second = (one, right) if thin_left else (left, one)
    axes = ((0,), (by_right,)) if thin_left else ((by_left,), (0,))
    found.append(jax.lax.dot_general(first, second, (axes, ((), ())), **params))
  return jnp.stack(found, axis=0 if thin_left else 1)
