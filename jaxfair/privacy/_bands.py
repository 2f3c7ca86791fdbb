"""Noise that several steps share: banded matrix factorization (DP-BandMF).

DP-SGD adds noise of its own to the sum G_t of every step, and the noise on the model, a sum over
steps, grows with the root of their number. Here each release mixes the sums of b steps,

  y_t = c_0 G_t + c_1 G_{t-1} + ... + c_{b-1} G_{t-b+1} + N(0, (z C)^2 I),   c_0^2 + ... <= 1,

and the estimate of G_t is solved from what was released:

  x_t = (y_t - c_1 x_{t-1} - ... - c_{b-1} x_{t-b+1}) / c_0

The errors x_t - G_t are correlated: a large part of the error of one step is taken back by the
next ones, and sums of steps have less noise. `band_weights` finds the weights with the least noise.

Theorem: let every person be in one of b parts, drawn at random for each person independently, and
let step t take the people of part t mod b, each with probability b q <= 1 independently. Then T
steps cost at most what ceil(T / b) independent Gaussian releases of noise multiplier z cost, each
on a Poisson sample of rate b q: for one person added or removed, replaced or zeroed out.

Proof. Take neighbors D = D' + {x} and fix the parts and coins of everybody else. They are drawn in
the same way for D and D', and the laws of the outputs are mixtures over them with the same weights;
the part p of x is mixed over too, on one side only. Hockey-stick divergences, and exp((a - 1) D_a)
of Renyi divergences, are jointly convex, so a bound that holds for all fixed values holds for the
mixtures. x can take part in steps p, p + b, p + 2b, ... only. Cut time into blocks that start at
these steps; there are at most ceil(T / b), and the steps before p do not know x. Within a block x
has one coin B of probability b q, and one gradient g, of norm C at most, which is fixed by what was
released before the block. In step i of the block the mix holds c_i B g, and nothing of x from
earlier blocks: their steps lie b or more back. Everything else in y is a function h_i of the
fixed coins and of what was released before. Given that, y -> (y_i - h_i(y before i)) is a bijection
with unit Jacobian, for D and for D' the same one: the block releases
B (c_0 g, ..., c_{b-1} g) + N(0, (z C)^2 I), and the length of that vector is at most C. It is one
Gaussian release on a Poisson sample of rate b q. Blocks compose adaptively. Replacing x keeps its
part and its coins, and is the same argument with g' in place of 0. QED.

Nothing here knows how many people a part has: sums are divided by the expected batch size q n, and
the sample of a step is Binomial(n, q) in size, as in DP-SGD, since every person is in it with
probability (1 / b) b q. So the cap on batches costs what it costs there, `truncation_delta` with
all T steps: draw parts and coins of the others first, and the tails are those of Binomial(n, q).

The bound on gradients may move between steps, if it is computed from what was released: sums are
divided by the sensitivity in force before they are mixed, and multiplied by the present one after
they are solved. Counts with noise of their own, of a person in the steps that it takes part in,
add to the one Gaussian vector of the block as they do to that of a step of DP-SGD.

The mix, and not the noise, is what carries the correlation: y_t is released as any sum is, on a
grid with noise whose low bits tell nothing, and x_t is computed from y alone. Adding correlated
noise to G_t is the same in real numbers, but then no single release has noise of a known law.
What is kept for it, the last b - 1 sums, is private: it is in the state, and nowhere else.

Reference:
  Choquette-Choo et al. 2023, (Amplified) Banded Matrix Factorization.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from jaxfair import checks, tree
from jaxfair.privacy import noise
from jaxfair.types import Key, Params

# Of the weights. Numbers of the mix are off by a few 2^-24 of the largest terms.
NORM = 1 - 2.0**-20


class Memory(NamedTuple):
  """The sums and estimates of the last b - 1 steps; the place of a step is its number mod b - 1.

  Not for release: sums have no noise.

  Attributes:
    sums: [b - 1, ...] clipped sums over their sensitivities.
    estimates: [b - 1, ...] the estimates of these, which are computed from releases alone.
    step: number of the next step.
  """

  sums: Params
  estimates: Params
  step: jax.Array

  @classmethod
  def empty(cls, params: Params, bands: int) -> "Memory":
    """Before the first step."""
    zeros = jax.tree.map(lambda leaf: jnp.zeros((bands - 1, *leaf.shape), jnp.float32), params)
    return cls(zeros, zeros, jnp.int32(0))

  def mix(self, weights: np.ndarray, total: Params) -> Params:
    """c_0 G_t + c_1 G_{t-1} + ..., to which noise is added."""
    return tree.add(tree.scale(weights[0], total), self._past(weights, self.sums))

  def solve(self, weights: np.ndarray, released: Params) -> Params:
    """x_t, from the noisy mix alone."""
    rest = tree.subtract(released, self._past(weights, self.estimates))
    return jax.tree.map(lambda leaf: leaf / weights[0], rest)

  def then(self, total: Params, estimate: Params) -> "Memory":
    """After the step."""
    place = self.step % self._length

    def put(held: jax.Array, new: jax.Array) -> jax.Array:
      return held.at[place].set(new)

    sums = jax.tree.map(put, self.sums, total)
    return Memory(sums, jax.tree.map(put, self.estimates, estimate), self.step + 1)

  @property
  def _length(self) -> int:
    length: int = jax.tree.leaves(self.sums)[0].shape[0]
    return length

  def _past(self, weights: np.ndarray, held: Params) -> Params:
    """c_1 a_{t-1} + ... + c_{b-1} a_{t-b+1}."""
    places = jnp.arange(self._length)
    age = (self.step - 1 - places) % self._length  # 0: the step before
    own = jnp.asarray(weights[1:])[age]

    def weighed(leaf: jax.Array) -> Any:
      return jnp.tensordot(own, leaf, axes=1, precision=jax.lax.Precision.HIGHEST)

    return jax.tree.map(weighed, held)


def release_mix(
  memory: Memory, total: Params, weights: np.ndarray, sensitivity: Any, *, sigma: Any, key: Key
) -> tuple[Params, Memory]:
  """Releases the mix of a step's sum and the sums before it; the estimate of the step's sum.

  Args:
    memory: of the steps before.
    total: G_t, a sum of float32 arrays.
    weights: c, from `band_weights`.
    sensitivity: how far one person moves the sum, at most.
    sigma: noise over the sensitivity.
    key: used once.

  Returns:
    x_t, a function of what was released up to now, and the memory after the step.
  """
  own = tree.scale(1 / sensitivity, total)
  noisy = noise.gaussian(memory.mix(weights, own), sigma=sigma, key=key)
  estimate = memory.solve(weights, noisy)
  return tree.scale(sensitivity, estimate), memory.then(own, estimate)


@functools.lru_cache(maxsize=256)
def band_weights(bands: int, steps: int) -> np.ndarray:
  """The weights of norm one that add least noise to the sums of the first t steps.

  min_c sum_t Var[x_1 + ... + x_t],  t from 1 to T

  With power series, the noise of the sum of t steps is beta_0 z_t + beta_1 z_{t-1} + ... with
  beta = 1 / ((1 - s) c(s)), so the objective is sum_k (T - k) beta_k^2. Solved with c_0 = 1, times
  |c|^2. The gradient by c_i is that of beta: -s^i beta(s) / c(s).

  Args:
    bands: b, 1 to T.
    steps: T.

  Returns:
    [b] float32 numbers of a norm just below 1, which pays for rounding sums when they are mixed.
  """
  checks.integer("bands", bands, low=1, high=steps, remedy="a training has no more steps to mix")
  # The square root of summing, 1 / sqrt(1 - s), is the optimum without a limit on b.
  start = np.cumprod(1 - 0.5 / np.arange(1, bands))
  found = start
  if bands > 1:
    found = optimize.minimize(
      functools.partial(_log_noise, steps=steps), start, jac=True, options={"gtol": 1e-6}
    ).x
  weights = np.concatenate([[1.0], found])
  weights = (weights * (NORM / np.linalg.norm(weights))).astype(np.float32)
  weights.flags.writeable = False  # they are shared by everyone who asks
  return weights


def noise_of_sums(weights: np.ndarray, steps: int) -> np.ndarray:
  """[T] standard deviations of x_1 + ... + x_t over that of one release, for t from 1 to T."""
  return np.sqrt(np.cumsum(_series(np.asarray(weights, np.float64), np.ones(steps)) ** 2))


def _log_noise(free: np.ndarray, *, steps: int) -> tuple[float, np.ndarray]:
  """log(|c|^2 sum_k (T - k) beta_k^2) at c = (1, free), and its gradient."""
  weights, left = np.concatenate([[1.0], free]), np.arange(steps, 0, -1.0)
  with np.errstate(all="ignore"):
    beta = _series(weights, np.ones(steps))
    total = left @ beta**2
    if not total < 1e200:  # 1 / c(s) grows: the line search went too far
      return 1e3, np.zeros_like(free)
    slope, own = _series(weights, beta), left * beta
  lags = [own[i:] @ slope[: steps - i] for i in range(1, len(weights))]
  square = weights @ weights
  return math.log(square * total), -2 * np.array(lags) / total + 2 * free / square


def _series(weights: np.ndarray, numbers: np.ndarray) -> np.ndarray:
  """The power series of numbers(s) / c(s)."""
  from scipy import signal  # which takes a moment to load

  series: np.ndarray = signal.lfilter([1.0], weights, numbers)
  return series
