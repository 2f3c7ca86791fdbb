"""Allotments and decision rules: plain functions of counts.

An allotment gives every entity a number, a decision rule a yes or no. Both are
pure, compile, and map over draws of noise. Your own is any function of the
counts that returns one number or one boolean per entity.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Bool, Float

from jaxfair import checks
from jaxfair.decisions._function_values import Problem, as_tree
from jaxfair.types import Array, ArrayLike, Counts, Number

BUDGET = 6.5e9  # dollars a year in Title I basic grants, as the thesis has it
SHARE, NUMBER, ILLITERACY = 0.05, 10_000, 0.0131


def title_one(counts: Array, *, weights: ArrayLike) -> Float[jax.Array, "n"]:
  """Every district's share of the budget: weighted counts over their total.

  P_i(x) = a_i x_i / sum_j a_j x_j
  """
  weighted = jnp.asarray(weights) * counts
  return weighted / jnp.sum(weighted)


def ratio(numerator: Array, denominator: Array, *, floor: Number | None = None) -> Array:
  """x / max(y, floor); plain x / y without a floor.

  A noisy denominator has mass around 0, so that x / y has no mean at all: a
  simulation of it settles nowhere. With a public floor, such as 1 person, it
  has one, and `theory.floored_inverse_mean` tells it.
  """
  return numerator / (denominator if floor is None else jnp.maximum(denominator, floor))


def minority_language(s: Array, sp: Array, spe: Array) -> Bool[Array, "n"]:
  """Whether ballots must be in the language, too (Section 203).

  (sp / s > 5% or sp > 10,000) and spe / sp > 1.31%

  Products stand in for the ratios, so that a noisy count of 0 or below is no
  division: the two agree for positive counts.

  Args:
    s: [n] voting-age citizens.
    sp: [n] of them with limited English.
    spe: [n] of them with little schooling.
  """
  many = (sp > SHARE * s) | (sp > NUMBER)
  return many & (spe > ILLITERACY * sp)


def either(first: Problem, second: Problem) -> Problem:
  """The rule that grants what at least one rule grants."""
  return Partial(_either, as_tree(first), as_tree(second))


def check_counts(
  counts: Counts,
  *,
  weights: ArrayLike | None = None,
  names: Sequence[str] | np.ndarray | None = None,
) -> None:
  """Requires known counts, not negative, and a total to divide by; passes inside a program.

  Args:
    counts: array or tree of arrays of n counts.
    weights: [n] for an allotment; its weighted total must be above 0.
    names: [n] of the entities, for the message; row numbers by default.
  """
  if not checks.concrete(counts):
    return
  for leaf in jax.tree.leaves(counts):
    values = np.asarray(leaf)
    for bad, told in (
      (~np.isfinite(values), "missing or infinite"),
      (np.isfinite(values) & (values < 0), "negative"),
    ):
      checks.require(
        not bad.any(), f"counts are {told} in {_rows(bad, names)}; drop or fix these rows"
      )
  if weights is not None:
    values = np.asarray(weights, np.float64)
    bad = ~np.isfinite(values) | (values < 0)
    checks.require(
      not bad.any(),
      f"weights are negative or missing in {_rows(bad, names)}; a weight is an "
      "expenditure, 0 or above",
    )
    total = float(np.sum(values * np.asarray(counts, np.float64)))
    checks.require(total > 0, "counts and weights give a total of 0: nothing can be shared")


def check_problem(problem: Problem, counts: Counts) -> bool:
  """Requires one number or boolean per entity; tells whether it is a rule."""
  try:
    found = jax.eval_shape(problem, counts)
  except TypeError as error:
    told = " ".join(str(error).split())
    raise checks.ArgumentError(
      f"problem cannot be computed from these counts ({told[:160]}); return "
      "one number or one boolean per entity"
    ) from None
  dtype = getattr(found, "dtype", np.dtype(object))
  is_rule = bool(dtype == jnp.bool_)
  checks.require(
    dtype.kind in "biuf",
    f"problem returns {type(found).__name__} of {dtype}; return one number (an "
    "allotment) or one boolean (a decision rule) per entity",
  )
  checks.require(
    len(found.shape) == 1, f"problem returns shape {found.shape}; return one value per entity"
  )
  return is_rule


def _either(first: Problem, second: Problem, counts: Counts) -> jax.Array:
  return first(counts) | second(counts)


def _rows(bad: np.ndarray, names: Sequence[str] | np.ndarray | None) -> str:
  rows = np.flatnonzero(bad)
  shown = [str(row if names is None else names[row]) for row in rows[:3]]
  more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
  return ("row " if names is None else "") + ", ".join(shown) + more
