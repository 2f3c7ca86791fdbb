"""Convex training to optimality: Newton's method to a stated gradient norm."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import checks, tree
from jaxfair.training._fit import check_examples
from jaxfair.types import Array, Examples, Fit, Key, Model, Number, Params, PerExampleLoss, PyTree

Objective = Callable[[Params], jax.Array]
NEWTON_LIMIT = 2_000  # parameters; a dense Hessian beyond that is too slow


@dataclasses.dataclass(frozen=True)
class SolveConfig:
  """Settings of `solve`.

  The objective is mean loss + weight_decay / 2 ||theta||^2.

  Attributes:
    weight_decay: on all parameters, biases too; above 0 the optimum is unique.
    tolerance: norm of the objective's gradient at which the solver stops.
    max_steps: it stops there, unconverged, at the latest.
    method: "newton", "lbfgs", or "auto": Newton up to 2,000 parameters.
  """

  weight_decay: float = 1e-3
  tolerance: float = 1e-8
  max_steps: int = 500
  method: Literal["auto", "newton", "lbfgs"] = "auto"


class SolveTrace(NamedTuple):
  """How a solve ended. Not private: computed from the training data.

  Attributes:
    gradient_norm: at the returned parameters.
    steps: number of steps taken.
    converged: whether `gradient_norm` is within the tolerance.
  """

  gradient_norm: jax.Array
  steps: jax.Array
  converged: jax.Array


class SolveError(checks.JaxfairError):
  """The solver stopped before the gradient was small enough."""


def solve(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: SolveConfig = SolveConfig(),
  *,
  key: Key,
) -> Fit:
  """Minimizes a convex objective over all examples, in float64.

  Args:
    model: whose loss is convex in its parameters, e.g. `models.logistic`.
    loss: `(logits, y) -> [n]` losses, twice differentiable for Newton.
    examples: the training part; every step uses all of them.
    config: settings.
    key: starting point.

  Returns:
    `Fit(params, SolveTrace)`, parameters float32.

  Raises:
    SolveError: if the tolerance was not reached; the message says what to do.
  """
  checks.non_negative("weight_decay", config.weight_decay)
  checks.positive("tolerance", config.tolerance)
  checks.integer("max_steps", config.max_steps, low=1)
  checks.one_of("method", config.method, ("auto", "newton", "lbfgs"))
  checks.one_key("key", key)
  checks.untraced(
    "solve",
    (examples, config, key),
    reason="it computes in float64, and raises if it does not converge",
  )
  check_examples(model, examples)
  start = model.init(key, jnp.asarray(examples.x[0]))
  method = config.method
  if method == "auto":
    method = "newton" if tree.size(start) <= NEWTON_LIMIT else "lbfgs"
  with jax.enable_x64(True):
    params, trace = _solved(
      model,
      loss,
      _as_float64(examples),
      _as_float64(start),
      config.weight_decay,
      config.tolerance,
      method=method,
      max_steps=config.max_steps,
    )
    params, trace = jax.device_get((params, trace))
  if not trace.converged:
    raise SolveError(
      f"{method} stopped after {int(trace.steps)} steps at gradient norm "
      f"{float(trace.gradient_norm):.2g}, above tolerance="
      f"{config.tolerance:g}; raise weight_decay, max_steps or tolerance, or "
      "check that the loss is convex"
    )
  params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), params)
  return Fit(params, trace)


@functools.partial(jax.jit, static_argnames=("model", "loss", "method", "max_steps"))
def _solved(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  start: Params,
  weight_decay: Number,
  tolerance: Number,
  *,
  method: str,
  max_steps: int,
) -> tuple[Params, SolveTrace]:
  def objective(params: Params) -> jax.Array:
    losses = loss(model.apply(params, examples.x), examples.y)
    return jnp.mean(losses) + 0.5 * weight_decay * tree.squared_norm(params)

  return (_newton if method == "newton" else _lbfgs)(objective, start, tolerance, max_steps)


def _newton(
  objective: Objective, start: Params, tolerance: Number, max_steps: int
) -> tuple[Params, SolveTrace]:
  """Newton steps, halved until the gradient norm falls.

  Along a Newton direction the squared gradient norm has slope -2 ||g||^2, so a
  short enough step always makes it smaller; unlike the objective it still
  tells steps apart near the optimum.
  """
  flat, unravel = jax.flatten_util.ravel_pytree(start)
  gradient = jax.grad(lambda v: objective(unravel(v)))
  hessian = jax.jacfwd(gradient)
  shares = 0.5 ** jnp.arange(12.0)

  def step(carry: PyTree) -> PyTree:
    point, slope, count = carry
    curvature = hessian(point)
    # A whisper of damping keeps flat directions (softmax has one) solvable.
    damping = 1e-12 * (1 + jnp.trace(curvature))
    curvature += damping * jnp.eye(point.size)
    direction = -jax.scipy.linalg.solve(curvature, slope, assume_a="pos")
    points = point + shares[:, None] * direction
    slopes = jax.lax.map(gradient, points)
    norms = jnp.where(jnp.isfinite(slopes).all(1), jnp.linalg.norm(slopes, axis=1), jnp.inf)
    best = jnp.argmin(norms)
    better = norms[best] < jnp.linalg.norm(slope)
    point = jnp.where(better, points[best], point)
    slope = jnp.where(better, slopes[best], slope)
    return point, slope, jnp.where(better, count + 1, max_steps)

  def unfinished(carry: PyTree) -> jax.Array:
    _, slope, count = carry
    return (jnp.linalg.norm(slope) > tolerance) & (count < max_steps)

  point, slope, count = jax.lax.while_loop(unfinished, step, (flat, gradient(flat), jnp.asarray(0)))
  norm = jnp.linalg.norm(slope)
  return unravel(point), SolveTrace(norm, count, norm <= tolerance)


def _lbfgs(
  objective: Objective, start: Params, tolerance: Number, max_steps: int
) -> tuple[Params, SolveTrace]:
  optimizer = optax.lbfgs(memory_size=20)
  value_and_grad = optax.value_and_grad_from_state(objective)

  def step(carry: PyTree) -> PyTree:
    params, state, _, count = carry
    value, slope = value_and_grad(params, state=state)
    updates, state = optimizer.update(
      slope, state, params, value=value, grad=slope, value_fn=objective
    )
    params = optax.apply_updates(params, updates)
    return params, state, tree.norm(jax.grad(objective)(params)), count + 1

  def unfinished(carry: PyTree) -> jax.Array:
    _, _, norm, count = carry
    return (norm > tolerance) & (count < max_steps)

  norm = tree.norm(jax.grad(objective)(start))
  params, _, norm, count = jax.lax.while_loop(
    unfinished, step, (start, optimizer.init(start), norm, jnp.asarray(0))
  )
  return params, SolveTrace(norm, count, norm <= tolerance)


def _as_float64(values: PyTree) -> PyTree:
  def convert(leaf: Array) -> jax.Array:
    array = np.asarray(leaf)
    is_float = array.dtype.kind == "f"
    return jnp.asarray(array.astype(np.float64) if is_float else array)

  return jax.tree.map(convert, values)
