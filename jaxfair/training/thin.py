"""Products with very few columns, column by column.

The gradient of a softmax regression's weights, x^T g, has as many columns as
there are classes. For two to four of them it is a product of a matrix and a
few vectors, but XLA's CPU backend packs the large operand first, as for a
large product, and takes up to ten times as long as for one vector after the
other. So the steps of a training are rewritten. The sums are the same, and
for batches of usual size to the last bit.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core as jex_core

CALLS = frozenset({"jit", "pjit", "closed_call", "core_call"})
WIDEST = 4  # columns; from about six on XLA's own product is faster
LARGE = 32  # rows and columns from which more than two thin columns pay
PACKED = 2**16  # numbers; from here on packing costs more than compiling


def by_columns(function: Callable[..., Any]) -> Callable[..., Any]:
  """The same function of pytrees, its thin products taken column by column.

  On other backends than the CPU it is the function itself.

  Args:
    function: pure.
  """

  def run(*arguments: Any) -> Any:
    if jax.default_backend() != "cpu":
      return function(*arguments)
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    leaves = jax.tree.leaves(arguments)
    results = _evaluate(closed.jaxpr, closed.consts, leaves)
    return jax.tree.unflatten(jax.tree.structure(shapes), results)

  return run


def _evaluate(
  jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any]
) -> list[Any]:
  known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
  known.update(zip(jaxpr.invars, arguments, strict=True))

  def look_up(atom: Any) -> Any:
    return atom.val if isinstance(atom, jex_core.Literal) else known[atom]

  for equation in jaxpr.eqns:
    inputs = [look_up(atom) for atom in equation.invars]
    with equation.ctx.manager:
      results = _apply(equation, inputs)
    known.update(zip(equation.outvars, results, strict=True))
  return [look_up(atom) for atom in jaxpr.outvars]


def _apply(equation: Any, inputs: Sequence[Any]) -> Sequence[Any]:
  if _is_thin(equation):
    return [_columns(*inputs, **equation.params)]
  if equation.primitive.name in CALLS and _has_thin(_inner(equation)):
    closed = equation.params["jaxpr"]
    return _evaluate(_inner(equation), getattr(closed, "consts", ()), inputs)
  params = equation.primitive.get_bind_params(equation.params)
  results = equation.primitive.bind(*inputs, **params)
  return results if equation.primitive.multiple_results else [results]


def _inner(equation: Any) -> Any:
  closed = equation.params["jaxpr"]
  return getattr(closed, "jaxpr", closed)


def _has_thin(jaxpr: Any) -> bool:
  return any(
    _is_thin(equation)
    or (equation.primitive.name in CALLS and _has_thin(_inner(equation)))
    for equation in jaxpr.eqns
  )


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
  left: Any, right: Any, *, dimension_numbers: Any, **params: Any
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
