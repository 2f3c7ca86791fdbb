"""Does a model's answer for one person depend on who else is in the batch?

If it does (BatchNorm in training mode, a softmax over the batch axis, ...), one
person's data reaches the gradients of others, and clipping per person bounds
nothing. Private trainers reject such a model or loss.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.models import _dependence, _probe
from jaxfair.types import ArrayLike, Features, Model, Params, PerExampleLoss, PyTree


class CouplingError(checks.JaxfairError):
  """A model or loss whose value for one example depends on the others."""


def check_independent(model: Model, params: Params, x: Features | jax.ShapeDtypeStruct) -> None:
  """Raises if a model couples the examples of a batch.

  First the traced program is searched for operations across the batch axis
  (`dependence`): that decides for nearly every model, for all parameters and
  all data. A program with an operation that the search has no rule for is run
  on batches that differ in all rows but one (`probe`). Either way, one row
  alone must give what it gives in a batch, unless the programs for batches of
  two sizes have the same operations and numbers. What depends on shapes alone
  is worked out once for a model.

  Args:
    model: the model.
    params: its parameters, or their shapes.
    x: [n, ...] a few examples, or their shapes.

  Raises:
    CouplingError: says what couples them and what to use instead.

  Assumptions:
    The probe, unlike the search, can miss a coupling behind a comparison that
    no probed value crosses. A function that does something else for large
    batches than for small ones is seen at small ones only.
  """
  reason = _coupling(model.apply, params, (x,))
  if reason:
    raise CouplingError(
      f"the model couples the examples of a batch ({reason}), so clipping one "
      "person's gradient does not bound what that person changes; use "
      "GroupNorm or LayerNorm in place of BatchNorm, and no operation across "
      "axis 0"
    )


def check_loss(loss: PerExampleLoss, num_classes: int, *, y_one: ArrayLike = 0) -> None:
  """Raises if a loss is not per example.

  Args:
    loss: `(logits [n, C], y [n, ...]) -> [n]`.
    num_classes: C.
    y_one: a target of the kind that the loss takes; only its shape and
      type count: 0 for class ids, 0.0 for a regression, `numpy.zeros(C)` for
      soft targets.

  Raises:
    CouplingError: for a loss that returns a mean, a sum, a matrix, or values
      that depend on other examples or on the size of the batch.
  """
  checks.integer("num_classes", num_classes, low=1)
  remedy = "return one value for each example, and leave means to the trainer"
  n = _probe.ROWS
  one = _dependence.shape_of(y_one)
  logits = jax.ShapeDtypeStruct((n, num_classes), jnp.float32)
  y = jax.ShapeDtypeStruct((n, *one.shape), one.dtype)
  shape = jax.eval_shape(loss, logits, y).shape
  if shape != (n,):
    raise CouplingError(f"the loss of {n} examples has shape {shape}, not ({n},); {remedy}")
  reason = _coupling(_of_rows(loss), (), (logits, y))
  if reason:
    raise CouplingError(f"the loss couples the examples of a batch ({reason}); {remedy}")


@functools.cache
def _of_rows(loss: PerExampleLoss) -> Callable[..., Any]:
  return lambda _, logits, y: loss(logits, y)


def _coupling(function: Callable[..., Any], fixed: PyTree, rows: PyTree) -> str:
  """Describes what couples the rows of `function(fixed, *rows)`; empty if nothing does."""
  leaves, structure = jax.tree.flatten(
    (
      jax.tree.map(_dependence.shape_of, fixed),
      jax.tree.map(lambda leaf: _dependence.shape_of(leaf, _probe.ROWS), rows),
    )
  )
  state, by_size = _from_shapes(function, structure, tuple(leaves))
  if isinstance(state, _dependence.Mixed):
    return state.reason
  if isinstance(state, _dependence.Unknown):
    return _probe.changes(function, fixed, rows) or by_size
  return by_size


@functools.lru_cache(maxsize=256)
def _from_shapes(
  function: Callable[..., Any], structure: jax.tree_util.PyTreeDef, leaves: tuple[Any, ...]
) -> tuple[_dependence.State, str]:
  """The part of the check that depends on shapes alone, cached for all trainings of a study."""
  fixed, rows = jax.tree.unflatten(structure, leaves)
  state = _dependence.analyze(function, fixed, rows)
  if isinstance(state, _dependence.Mixed):
    return state, ""
  one, several = (_dependence.numbers(function, fixed, rows, size) for size in (1, 3))
  # Equal programs need no run, which a deep network takes long to compile for.
  if one == several and not isinstance(state, _dependence.Unknown):
    return state, ""
  return state, _probe.size_matters(function, fixed, rows)
