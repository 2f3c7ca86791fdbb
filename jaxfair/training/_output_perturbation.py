"""Output perturbation: solve a convex problem, release it with noise."""

import dataclasses
import functools
import math
import os
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, models, tree
from jaxfair.data import bound_rows
from jaxfair.privacy import exact, grid
from jaxfair.training._erm import SolveConfig, solve
from jaxfair.types import Examples, Fit, Key, Model, Params, PerExampleLoss

# ||grad of the loss by the logits||: softmax(z) - onehot(y) has norm <= sqrt 2.
LOGIT_LIPSCHITZ: dict[PerExampleLoss, float] = {models.cross_entropy: math.sqrt(2)}


@dataclasses.dataclass(frozen=True)
class OutputPerturbationConfig:
  """Settings of output perturbation.

  The objective is mean loss + weight_decay / 2 ||theta||^2, over rows that are
  projected into a ball.

  Attributes:
    epsilon: epsilon of the release.
    delta: delta of the release.
    weight_decay: lambda; the noise is proportional to 1 / (n lambda).
    row_norm: radius of the ball that rows are projected into.
    logit_lipschitz: bound on the norm of the loss's gradient with respect to the logits;
      known for cross-entropy, needed for any other loss.
    tolerance: gradient norm at which the solver stops; the remaining error is added to the
      sensitivity.
  """

  epsilon: float = 1.0
  delta: float = 1e-5
  weight_decay: float = 1.0
  row_norm: float = 1.0
  logit_lipschitz: float | None = None
  tolerance: float = 1e-9

  def check(self, model: Model, loss: PerExampleLoss, examples: Examples) -> None:
    """Raises, before any work, for inputs that the guarantee does not cover."""
    checks.positive("epsilon", self.epsilon)
    checks.number("delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True)
    checks.positive(
      "weight_decay",
      self.weight_decay,
      remedy="without it one person can move the optimum without bound",
    )
    checks.positive("row_norm", self.row_norm)
    checks.people(examples)
    known = self._steepness(loss)
    checks.require(
      known is not None,
      "logit_lipschitz is needed for this loss: a bound on the norm of its gradient with "
      "respect to the logits",
    )
    checks.positive("logit_lipschitz", known)
    size = math.prod(examples.x.shape[1:])
    shapes, classes = _shapes(model, examples)
    checks.require(
      model == models.logistic(classes) and tree.size(shapes) == (size + 1) * classes,
      "output perturbation needs models.logistic: its bounds hold for a model "
      "that is linear in its parameters",
    )

  def _steepness(self, loss: PerExampleLoss) -> float | None:
    return LOGIT_LIPSCHITZ.get(loss) or self.logit_lipschitz

  def sensitivity(self, loss: PerExampleLoss, num_examples: int) -> float:
    """How far replacing one person moves what is released, in L2.

    2 G / (n lambda), G = L sqrt(row_norm^2 + 1): the loss's gradient by the
    parameters is (gradient by the logits) times (x, 1). Two optima found to a
    gradient norm tau are each within tau / lambda of the true ones, and
    rounding to float32 moves each by 2^-24 of its norm, at most G / lambda.
    What rounding to the grid adds is in the noise: `privacy.grid.sigma_for`.
    """
    steepness = self._steepness(loss)
    assert steepness is not None
    gradient = steepness * math.sqrt(self.row_norm**2 + 1)
    exact = 2 * gradient / (num_examples * self.weight_decay)
    unsolved = 2 * self.tolerance / self.weight_decay
    rounding = 2 * 2.0**-24 * gradient / self.weight_decay
    return exact + unsolved + rounding


class NonPrivateOptimum(NamedTuple):
  """The parameters before noise; not for release.

  Attributes:
    params: the optimum itself.
    sigma: standard deviation of the noise; public.
    sensitivity: what it was scaled from; public.
    gradient_norm: where the solver stopped.
    num_broken: rows with non-finite features or an impossible label.
  """

  params: Params
  sigma: float
  sensitivity: float
  gradient_norm: Any
  num_broken: int


def output_perturbation(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: OutputPerturbationConfig = OutputPerturbationConfig(),
  *,
  key: Key | None = None,
  source: exact.BitSource = os.urandom,
) -> Fit:
  """Releases a regularized linear classifier with calibrated noise.

  theta = argmin (mean loss + lambda/2 ||theta||^2) + N(0, sigma^2 I)

  Args:
    model: `models.logistic`.
    loss: convex in the logits; `models.cross_entropy`.
    examples: the private data. Rows are projected into the ball of radius
      `row_norm`, so that the bound holds whatever they are.
    config: settings.
    key: for the noise, in studies. None takes every bit from `source`, as a release needs.
    source: source of random bits; the operating system by default.

  Returns:
    `Fit(params, NonPrivateOptimum)`. More draws of the noise for a study:
    `noise.gaussian(trace.params, sigma=trace.sigma, key=...)`, vmapped. Each
    draw that is released costs the whole epsilon again.

  Privacy:
    (epsilon, delta) for one person *replaced*; n is public. The optimum is rounded to a grid of
    sigma / 2^40 and gets exact discrete Gaussian noise in whole steps (`privacy.grid`), so its low
    bits reveal nothing. Sigma is that of the analytic Gaussian mechanism for the sensitivity plus
    the grid's step, at a delta reduced by the distance between the discrete and the continuous
    distribution (`accounting.grid_sigma`).

  Reference:
    Chaudhuri, Monteleoni and Sarwate 2011; sensitivity as corrected here for
    `lambda/2`, for the bias, and for what the solver leaves.
  """
  if key is not None:
    checks.one_key("key", key)
  checks.untraced(
    "output_perturbation",
    (examples, key),
    reason="it solves in float64, and draws exact noise on the host",
  )
  config.check(model, loss, examples)
  size = examples.size
  sensitivity = config.sensitivity(loss, size)
  count = tree.size(_shapes(model, examples)[0])
  multiplier = accounting.grid_sigma(
    epsilon=config.epsilon, delta=config.delta, distance=grid.distance(count)
  )
  sigma = grid.sigma_for(noise_multiplier=multiplier, sensitivity=sensitivity, count=count)
  people, broken = _mended(model, examples)
  flat = bound_rows(people.x.reshape(size, -1), config.row_norm)
  people = people._replace(x=flat.reshape(examples.x.shape))
  settings = SolveConfig(weight_decay=config.weight_decay, tolerance=config.tolerance)
  key_start = jax.random.key(0)  # the optimum does not depend on the start
  if key is not None:
    key_start, key_noise = jax.random.split(key)
    source = exact.seeded(_number(key_noise))
  optimum = solve(model, loss, people, settings, key=key_start)
  return Fit(
    perturbed(optimum.params, sigma=sigma, source=source),
    NonPrivateOptimum(
      optimum.params, sigma, sensitivity, optimum.trace.gradient_norm, int(broken.sum())
    ),
  )


def perturbed(params: Params, *, sigma: float, source: exact.BitSource) -> Params:
  """Float32 parameters with noise on a grid, all leaves in one draw."""
  leaves, treedef = jax.tree.flatten(params)
  flat = np.concatenate([np.ravel(leaf) for leaf in leaves])
  noisy = grid.gaussian(flat, sigma=sigma, source=source).astype(np.float32)
  ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
  parts = [
    jnp.asarray(part.reshape(leaf.shape))
    for part, leaf in zip(np.split(noisy, ends), leaves, strict=True)
  ]
  return jax.tree.unflatten(treedef, parts)


def _number(key: jax.Array) -> int:
  """The words of a key as one integer."""
  words = np.ravel(jax.random.key_data(key)).tolist()
  return functools.reduce(lambda high, low: (high << 32) | low, words)


def _shapes(model: Model, examples: Examples) -> tuple[Params, int]:
  """Shapes of the parameters, and the number of classes."""
  one = jax.ShapeDtypeStruct(examples.x.shape[1:], jnp.float32)
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  batch = jax.ShapeDtypeStruct((1, *one.shape), jnp.float32)
  return params, jax.eval_shape(model.apply, params, batch).shape[-1]


def _mended(model: Model, examples: Examples) -> tuple[Examples, np.ndarray]:
  """Broken rows become zeros of class 0: to refuse them would tell of them."""
  classes = _shapes(model, examples)[1]
  x, y = np.asarray(examples.x), np.asarray(examples.y)
  broken = ~np.isfinite(x.reshape(len(x), -1)).all(axis=1)
  broken |= (y < 0) | (y >= classes)
  mask = broken.reshape(-1, *(1,) * (x.ndim - 1))
  x = np.where(mask, np.float32(0), x)
  return examples._replace(x=x, y=np.where(broken, 0, y)), broken
