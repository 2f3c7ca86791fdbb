"""Runs a function on batches that differ in all rows but one.

The one row's output, and its gradient with respect to its input, must stay the
same to the last bit: shapes are equal, so every sum is taken in the same order.
Rows are replaced by each other, by zeros, by large values and by NaN, at the
given and at random parameters. NaN finds what values cannot: 0 times NaN is
NaN, so a coupling is found even while a zero parameter hides it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.models._dependence import shape_of
from jaxfair.types import Array, PyTree

ROWS = 4
_ENDS = (0, ROWS - 1)  # a running sum couples the last row, not the first


def changes(function: Callable[..., Any], fixed: PyTree, rows: PyTree) -> str:
  """What happens to one row when the others change; empty if nothing does.

  Args:
    function: maps `(fixed, *rows)` to an array with the batch axis first.
    fixed: a tree of arrays or shapes; shapes are filled with random values.
    rows: a tuple of trees of arrays or shapes with the batch axis first.

  Returns:
    A reason to refuse the function, or the empty string.
  """
  settings = [_parameters(jax.tree.map(shape_of, fixed))]
  batches = [_batch(jax.tree.map(shape_of, rows))]
  if _has_values(fixed):
    settings.append(fixed)
  if _has_values(rows):
    batches.append(jax.tree.map(_first_rows, rows))
  pairs = [(values, batch) for values in settings for batch in batches]
  reasons = [_one_setting(function, *pair) for pair in pairs]
  if all(reason == _NOT_FINITE for reason in reasons):
    return _NOT_FINITE
  return next((r for r in reasons if r and r != _NOT_FINITE), "")


def size_matters(function: Callable[..., Any], fixed: PyTree, rows: PyTree) -> str:
  """Whether one row alone gives what it gives in a batch, to rounding.

  Args:
    function: maps `(fixed, *rows)` to an array with the batch axis first.
    fixed: a tree of shapes.
    rows: a tuple of trees of shapes with the batch axis first.

  Returns:
    A reason to refuse the function, or the empty string.
  """
  values, batch = _parameters(fixed), _batch(rows)
  together = _run(function, values, batch)[0]
  alone = _run(function, values, jax.tree.map(lambda leaf: leaf[:1], batch))[0]
  if not np.all(np.isfinite(together)):
    return ""
  # Another size may sum in another order, hence a tolerance; dividing by the
  # size of the batch is far beyond it.
  error = np.max(np.abs(together - alone), initial=0.0)
  if error > 0.01 * np.max(np.abs(together), initial=0.0):
    return "one example alone gives another output than in a batch"
  return ""


_NOT_FINITE = "outputs are not finite, so independence cannot be checked"


def _one_setting(function: Callable[..., Any], values: PyTree, batch: PyTree) -> str:
  outputs = _run(function, values, batch)
  if not np.all(np.isfinite(outputs)):
    return _NOT_FINITE
  slopes = _slopes(function, values, batch)
  for kept in _ENDS:
    if _reaches_others(slopes[kept], kept):
      return "one row's output has a slope in another row"
    for what, changed in _replacements(batch, kept):
      if not _same(outputs[kept], _run(function, values, changed)[kept]):
        return f"one row's output changes when the others become {what}"
      again = _slopes(function, values, changed)
      if not _same(slopes[kept][kept], again[kept][kept]):
        return f"one row's gradient changes when the others become {what}"
  return ""


def _replacements(batch: PyTree, kept: int) -> Iterator[tuple[str, Any]]:
  """The batch with every row but one replaced, in several ways."""

  def with_others(rule: Callable[[np.ndarray], np.ndarray]) -> PyTree:
    def replace(leaf: np.ndarray) -> np.ndarray:
      changed = np.array(rule(leaf), leaf.dtype)
      changed[kept] = leaf[kept]
      return changed

    return jax.tree.map(replace, batch)

  def real(rule: Callable[[np.ndarray], np.ndarray]) -> PyTree:
    return with_others(lambda leaf: rule(leaf) if _is_real(leaf) else leaf)

  yield "each other", with_others(lambda leaf: np.roll(leaf, 1, axis=0))
  yield "zero", with_others(np.zeros_like)
  yield "large", real(lambda leaf: 100 * leaf + 10)
  yield "NaN", real(lambda leaf: np.full_like(leaf, np.nan))


def _run(function: Callable[..., Any], fixed: PyTree, rows: PyTree) -> np.ndarray:
  with jax.ensure_compile_time_eval():
    return np.asarray(jax.jit(function)(fixed, *rows))


def _slopes(function: Callable[..., Any], fixed: PyTree, rows: PyTree) -> np.ndarray:
  """[row of the output, row of the input, ...]; zero for ids."""
  first, *rest = rows
  if not _is_real(first):
    return np.zeros((ROWS, ROWS, 1))
  with jax.ensure_compile_time_eval():
    return np.asarray(_jacobian(function, fixed, first, *rest))


@partial(jax.jit, static_argnums=0)
def _jacobian(
  function: Callable[..., jax.Array], fixed: PyTree, first: PyTree, *rest: PyTree
) -> jax.Array:
  def totals(batch: PyTree) -> jax.Array:
    return function(fixed, batch, *rest).reshape(ROWS, -1).sum(axis=1)

  return jax.jacrev(totals)(first)


def _reaches_others(slopes: np.ndarray, kept: int) -> bool:
  others = np.delete(slopes, kept, axis=0)
  # Zero times an infinite slope of another row's own is NaN and no coupling.
  return bool(np.any(others[np.isfinite(others)] != 0))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
  return np.array_equal(a, b, equal_nan=True)


def _parameters(specs: PyTree) -> PyTree:
  """Random values, scaled so that deep networks neither explode nor fade."""

  def draw(spec: jax.ShapeDtypeStruct) -> np.ndarray:
    fan_in = int(np.prod(spec.shape[:-1])) if len(spec.shape) > 1 else 1
    return _draw(spec, spec.shape, 1.0 / np.sqrt(max(fan_in, 1)))

  return jax.tree.map(draw, specs)


def _batch(specs: PyTree) -> PyTree:
  return jax.tree.map(lambda s: _draw(s, (ROWS, *s.shape[1:]), 1.0), specs)


def _draw(spec: jax.ShapeDtypeStruct, shape: tuple[int, ...], scale: float) -> np.ndarray:
  """Normal values; ids are 0 and 1, which every table of two rows has."""
  draws = np.random.default_rng(int(np.prod(shape)))
  if not _is_real(spec):
    return draws.integers(0, 2, shape).astype(spec.dtype)
  return (scale * draws.standard_normal(shape)).astype(spec.dtype)


def _is_real(leaf: Array | jax.ShapeDtypeStruct) -> bool:
  return jnp.issubdtype(leaf.dtype, jnp.floating)


def _has_values(tree: PyTree) -> bool:
  leaves = jax.tree.leaves(tree)
  return checks.concrete(leaves) and not any(
    isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves
  )


def _first_rows(leaf: Array) -> np.ndarray:
  leaf = np.asarray(leaf)
  return leaf[np.arange(ROWS) % leaf.shape[0]]
