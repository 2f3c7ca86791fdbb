"""Decision rules as piece-wise linear functions, learned from released counts.

Entities are put into bins by a *released* count, and a linear regression or a
linear SVM per bin imitates the rule. Bins and coefficients are functions of
released numbers, so they are free; learning them from true counts, as the
thesis does, would be a release of its own.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.decisions._function_values import Problem
from jaxfair.types import Array, ArrayLike, Counts


class Line(NamedTuple):
  """score = features . slope + intercept; granted where it is above 0."""

  slope: Array
  intercept: Array


Learner = Callable[[Any, Any, Any], Line]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PiecewiseProxy:
  """A rule that is linear in the counts, with one line per bin.

  Attributes:
    bins: [n] the bin of each entity, fixed when it was learned.
    lines: slopes [G, k] and intercepts [G] in raw counts.
  """

  bins: Array
  lines: Line

  def __call__(self, counts: Counts) -> jax.Array:
    """[n] decisions."""
    features = _features(counts)
    own = jax.tree.map(lambda leaf: jnp.asarray(leaf)[self.bins], self.lines)
    return jnp.sum(features * own.slope, axis=-1) + own.intercept > 0


def fit_proxy(
  rule: Problem, released: tuple[Any, ...], *, learner: Learner, by: int = 1, num_bins: int = 9
) -> PiecewiseProxy:
  """Learns a piece-wise linear approximation of a rule from released counts.

  Args:
    rule: `(counts) -> [n]` decisions; its answers on the released counts are
      what is imitated.
    released: k arrays of n counts, noise included.
    learner: `linear_regression` or `linear_svm`.
    by: which count makes the bins.
    num_bins: of about equal size.

  Privacy:
    Post-processing of `released`.

  Reference:
    Thesis, section 2.9.3, with released in place of true counts.
  """
  checks.integer("num_bins", num_bins, low=1)
  columns = np.stack([np.asarray(c, np.float64) for c in released], axis=-1)
  checks.finite("released", columns)
  checks.require(
    len(columns) >= num_bins, f"num_bins={num_bins} exceeds the {len(columns)} entities; use fewer"
  )
  bins = equal_bins(columns[:, by], num_bins)
  with jax.enable_x64(True):
    granted = rule(tuple(jnp.asarray(column) for column in columns.T))
    signs = jnp.where(granted, 1.0, -1.0)
    inside = jnp.asarray(bins == np.arange(num_bins)[:, None], jnp.float64)
    lines = _fit_all(jnp.asarray(columns), signs, inside, learner)
    lines = jax.tree.map(np.asarray, lines)
  return PiecewiseProxy(bins, lines)


def equal_bins(values: ArrayLike, num_bins: int) -> np.ndarray:
  """[n] bin ids by rank, of sizes that differ by one at most."""
  values = np.asarray(values)
  rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
  return (rank * num_bins // len(values)).astype(np.int32)


def linear_regression(x: Array, signs: Array, weight: Array) -> Line:
  """Least squares of the signs on the features, by weight."""
  design = jnp.concatenate([x, jnp.ones((len(x), 1))], axis=1)
  weighted = design * weight[:, None]
  # The least ridge that leaves a feature without spread harmless.
  gram = weighted.T @ design + 1e-9 * jnp.eye(design.shape[1])
  solution = jnp.linalg.solve(gram, weighted.T @ signs)
  return Line(solution[:-1], solution[-1])


def linear_svm(x: Array, signs: Array, weight: Array) -> Line:
  """Linear support vector machine: |w|^2 / 2 + sum of squared hinge losses.

  The intercept is penalized as well. Newton steps with halving: the loss is
  convex and piece-wise quadratic, so that a few dozen reach the optimum.
  """
  design = jnp.concatenate([x, jnp.ones((len(x), 1))], axis=1)

  def objective(w: Array) -> Array:
    short = jnp.maximum(0, 1 - signs * (design @ w))
    return 0.5 * w @ w + jnp.sum(weight * short**2)

  halves = 0.5 ** jnp.arange(12)

  def step(_: object, w: Array) -> jax.Array:
    active = weight * (signs * (design @ w) < 1)
    slope = w - 2 * (active * (signs - design @ w)) @ design
    curve = jnp.eye(len(w)) + 2 * (design * active[:, None]).T @ design
    way = jnp.linalg.solve(curve, slope)
    tried = w - halves[:, None] * way
    values = jax.vmap(objective)(tried)
    best = jnp.argmin(values)
    return jnp.where(values[best] < objective(w), tried[best], w)

  w = jax.lax.fori_loop(0, 60, step, jnp.zeros(design.shape[1]))
  return Line(w[:-1], w[-1])


@jax.jit(static_argnames="learner")
def _fit_all(columns: Array, signs: Array, inside: Array, learner: Learner) -> Line:
  def one(weight: Array) -> Line:
    count = jnp.maximum(weight.sum(), 1.0)
    mean = (weight @ columns) / count
    spread = jnp.sqrt((weight @ (columns - mean) ** 2) / count)
    spread = jnp.where(spread > 0, spread, 1.0)
    line = learner((columns - mean) / spread, signs, weight)
    slope = line.slope / spread
    return Line(slope, line.intercept - slope @ mean)

  return jax.vmap(one)(inside)


def _features(counts: Counts) -> jax.Array:
  return jnp.stack([jnp.asarray(column) for column in counts], axis=-1)
