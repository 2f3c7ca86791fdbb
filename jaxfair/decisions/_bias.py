"""Who gains and who loses by the noise: bias, error and alpha per entity."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from jaxfair import checks
from jaxfair.decisions import _problems
from jaxfair.decisions._function_values import Problem, in_float64, wide
from jaxfair.decisions._mechanisms import Mechanism, Release, on_counts
from jaxfair.types import Counts, Index, Key

CHUNK_NUMBERS = 2**14  # of one chunk of draws: 128 kB a column stay in cache


class NonPrivateBias(NamedTuple):
  """What noise does to every entity, computed from the true counts.

  For the agency's own eyes: no noise protects these numbers.

  Attributes:
    truth: [n] outcomes on the true counts.
    bias: [n] E[outcome] - truth.
    standard_error: [n] of the bias, from the draws.
    variance: [n] of the outcome.
    error: [n] E|outcome - truth|; of a rule, the chance of a wrong decision.
    draws: number of draws.
    is_rule: whether outcomes are decisions; fairness then compares |bias|.
  """

  truth: np.ndarray
  bias: np.ndarray
  standard_error: np.ndarray
  variance: np.ndarray
  error: np.ndarray
  draws: int
  is_rule: bool

  @property
  def compared(self) -> np.ndarray:
    """[n] what fairness compares: the bias, or a rule's error."""
    return np.abs(self.bias) if self.is_rule else self.bias

  @property
  def disparity(self) -> np.ndarray:
    """[n] xi_i = max_j |B_i - B_j|."""
    low, high = self.compared.min(), self.compared.max()
    return np.maximum(high - self.compared, self.compared - low)

  @property
  def alpha(self) -> float:
    """max B - min B: the mechanism is alpha-fair on these counts.

    Of a simulation it is never 0, as the largest of n errors is not;
    `alpha_interval` says what can be distinguished from 0.
    """
    return float(self.compared.max() - self.compared.min())

  def alpha_interval(self, level: float = 0.95) -> tuple[float, float]:
    """Where alpha lies, the errors of all n biases considered at once.

    B_i +- z s_i, with z at 1 - (1 - level) / (2 n) (Bonferroni)
    """
    checks.number("level", level, low=0, high=1, open_low=True, open_high=True)
    z = special.ndtri(1 - (1 - level) / (2 * len(self.bias)))
    low = self.compared - z * self.standard_error
    high = self.compared + z * self.standard_error
    least = max(0.0, float(low.max() - high.min()))
    return least, float(high.max() - low.min())


def simulate(
  problem: Problem,
  counts: Counts,
  *,
  release: Release,
  draws: int = 10_000,
  key: Key,
  control: bool | None = None,
) -> NonPrivateBias:
  """Estimates the bias of a problem on noisy counts by Monte Carlo, in float64.

  B_i = E[P_i(release(x))] - P_i(x)

  Args:
    problem: function of the counts; post-processing goes in here.
    counts: [n] or a tree of [n] arrays.
    release: `(counts, key=...) -> noisy counts`.
    draws: number of draws of the noise; memory does not grow with them.
    key: for all draws.
    control: use the linear part of every outcome, which has mean 0, as a control variate, so that
      small biases show. By default where it is sound: numeric outcomes
      under noise that is declared unbiased.
  """
  return simulate_mechanism(
    on_counts(problem, release), problem, counts, draws=draws, key=key, control=control
  )


def simulate_mechanism(
  mechanism: Mechanism,
  problem: Problem,
  counts: Counts,
  *,
  draws: int = 10_000,
  key: Key,
  control: bool | None = None,
) -> NonPrivateBias:
  """Estimates the bias of a mechanism against the problem that it approximates.

  Args:
    mechanism: from true counts to outcomes.
    problem: what the outcome should be.
    counts: [n] or a tree of [n] arrays.
    draws: number of draws of the noise.
    key: for all draws.
    control: see `simulate`.
  """
  checks.integer("draws", draws, low=2)
  checks.one_key("key", key)
  _problems.check_counts(counts)
  with jax.enable_x64(True):
    counts = in_float64(counts)
    problem = wide(problem)
    is_rule = _problems.check_problem(problem, counts)
    mechanism = wide(mechanism)
    sound = getattr(mechanism.release, "unbiased", False) and not is_rule
    checks.require(
      not control or sound,
      "control=True needs numbers as outcomes and a release with "
      "unbiased = True; leave control out",
    )
    controlled = sound if control is None else control
    query = mechanism.query(counts)
    width = sum(np.size(leaf) for leaf in jax.tree.leaves(query))
    chunk = int(min(draws, max(1, CHUNK_NUMBERS // max(width, 1))))
    truth, sums = _run(problem, mechanism, counts, key, draws, chunk=chunk, control=controlled)
    truth, sums = jax.tree.map(np.asarray, (truth, sums))
  return _summary(truth, sums, draws, is_rule)


class _Sums(NamedTuple):
  deviation: Any  # of outcomes from the truth
  square: Any
  magnitude: Any
  rest: Any  # the deviation without its linear part
  rest_square: Any


@jax.jit(static_argnames=("chunk", "control"))
def _run(
  problem: Problem,
  mechanism: Mechanism,
  counts: Counts,
  key: jax.Array,
  draws: Index,
  *,
  chunk: int,
  control: bool,
) -> tuple[Any, _Sums]:
  truth = problem(counts)
  wanted = truth.astype(jnp.float64)
  query = mechanism.query(counts)
  linear = jax.linearize(mechanism.decide, query)[1] if control else None

  def draw(index: Index) -> tuple[Any, Any]:
    noisy = mechanism.release(query, key=jax.random.fold_in(key, index))
    away = mechanism.decide(noisy).astype(jnp.float64) - wanted
    if linear is None:
      return away, away
    return away, away - linear(jax.tree.map(jnp.subtract, noisy, query))

  def step(i: Index, sums: _Sums) -> _Sums:
    index = i * chunk + jnp.arange(chunk)
    away, rest = jax.vmap(draw)(index)
    known = (index < draws)[:, None]
    found = _Sums(away, away**2, jnp.abs(away), rest, rest**2)
    more = (jnp.where(known, f, 0).sum(axis=0) for f in found)
    return _Sums(*(s + m for s, m in zip(sums, more, strict=True)))

  zeros = _Sums(*(jnp.zeros(truth.shape) for _ in _Sums._fields))
  steps = (draws + chunk - 1) // chunk
  return truth, jax.lax.fori_loop(0, steps, step, zeros)


def _summary(truth: np.ndarray, sums: _Sums, draws: int, is_rule: bool) -> NonPrivateBias:
  mean = sums.deviation / draws
  variance = np.maximum(sums.square / draws - mean**2, 0) * draws / (draws - 1)
  bias = sums.rest / draws
  spread = np.maximum(sums.rest_square / draws - bias**2, 0)
  error = np.sqrt(spread / (draws - 1))
  if is_rule:
    # No wrong decision in m draws does not mean that there never is one.
    rate = (sums.magnitude + 2) / (draws + 4)
    error = np.sqrt(rate * (1 - rate) / (draws + 4))
  return NonPrivateBias(truth, bias, error, variance, sums.magnitude / draws, draws, is_rule)
