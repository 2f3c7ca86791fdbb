"""Where bias comes from: the curvature of an allotment.

Noise of variance v on every count moves entity i's mean by v / 2 times the
trace of its Hessian, to second order. Linear allotments have none.
"""

from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.decisions import _problems
from jaxfair.decisions._function_values import Problem, in_float64, wide
from jaxfair.types import ArrayLike, Counts, Index

CHUNK_NUMBERS = 2**20


def allotment_trace(counts: ArrayLike, *, weights: ArrayLike) -> np.ndarray:
  """Hessian traces of `title_one`, in closed form.

  Tr(H P_i) = 2 a_i (x_i sum_j a_j^2 - a_i Z) / Z^3,  Z = sum_j a_j x_j

  Reference:
    Thesis, section 2.6.1.
  """
  _problems.check_counts(counts, weights=weights)
  x = np.asarray(counts, np.float64)
  a = np.asarray(weights, np.float64)
  total = np.sum(a * x)
  return 2 * a * (x * np.sum(a**2) - a * total) / total**3


def decision_trace(problem: Problem, counts: Counts) -> np.ndarray:
  """Hessian traces of any twice-differentiable allotment, all entities at once.

  A second derivative along one direction is one pass for all n outcomes; no
  n x n matrix is built.

  Args:
    problem: function of the counts, returning numbers.
    counts: [n] or a tree of [n] arrays.

  Returns:
    [n] sums over counts j of d^2 P_i / d x_j^2, in float64; within `jax.enable_x64(True)` they are
    differentiable by the counts, and then JAX arrays. Not for release: they are those of the true
    counts.
  """
  _problems.check_counts(counts)
  xp: Any = np if checks.concrete(counts) else jnp
  with jax.enable_x64(True):
    counts = in_float64(counts)
    problem = wide(problem)
    is_rule = _problems.check_problem(problem, counts)
    checks.require(not is_rule, "problem is a decision rule; only numbers have a curvature")
    size = jax.flatten_util.ravel_pytree(counts)[0].size
    width = max(1, CHUNK_NUMBERS // max(1, size))
    return xp.asarray(_exact(problem, counts, chunk=min(width, size)))


def second_order_bias(trace: ArrayLike, *, variance: ArrayLike) -> np.ndarray:
  """B_i ~= variance / 2 * Tr(H P_i); Laplace noise has variance 2 scale^2.

  Assumptions:
    The noise is independent, of mean 0, and small against what the allotment
    divides by; the thesis writes Delta^2 / epsilon^2 Tr, the same for Laplace.
  """
  checks.non_negative("variance", variance)
  return 0.5 * np.asarray(variance) * np.asarray(trace)


def _along(problem: Problem, counts: Counts, direction: Counts) -> jax.Array:
  """d^2 / dt^2 problem(counts + t direction) at t = 0."""

  def slope(at: Counts) -> jax.Array:
    return jax.jvp(problem, (at,), (direction,))[1]

  return jax.jvp(slope, (counts,), (direction,))[1]


@jax.jit(static_argnames="chunk")
def _exact(problem: Problem, counts: Counts, *, chunk: int) -> jax.Array:
  flat, restore = jax.flatten_util.ravel_pytree(counts)

  def one(index: Index) -> jax.Array:
    # Beyond the last count the direction is 0 and adds nothing.
    way = (jnp.arange(flat.size) == index).astype(flat.dtype)
    return _along(problem, counts, restore(way))

  def step(i: Index, total: jax.Array) -> jax.Array:
    return total + jax.vmap(one)(i * chunk + jnp.arange(chunk)).sum(axis=0)

  shape = jax.eval_shape(problem, counts).shape
  steps = -(-flat.size // chunk)
  return jax.lax.fori_loop(0, steps, step, jnp.zeros(shape))
