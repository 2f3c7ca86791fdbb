"""Traces of Hessians: of every person's loss, and of every group's mean loss.

  Tr(H_i) = <A_i, J_i J_i'>  +  sum_c r_c Tr(d^2 logits_c)
            Gauss-Newton        residual

A group's Hessian is that of its *mean* loss, so its trace is the mean over its
people. Sums instead, as Theorem 3.1 of the thesis is printed, would say that
larger groups suffer more because they are larger.
"""

import functools
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, tree
from jaxfair.analysis._by_group import ByGroup, mean_by_group, weights_by_group
from jaxfair.analysis._directional_derivatives import along, in_chunks
from jaxfair.analysis._hessian_residual import plan_residual, residual_traces
from jaxfair.analysis._hutchinson import hutchinson_traces
from jaxfair.analysis._logit_gram import SHIFT_INVARIANT, contraction, logit_gram, one_loss
from jaxfair.fairness._intervals import Interval
from jaxfair.types import Array, Examples, Key, Model, Params, PerExampleLoss

Method: TypeAlias = Literal["auto", "exact", "gauss_newton", "hutchinson", "all_parameters"]
METHODS = ("auto", "exact", "gauss_newton", "hutchinson", "all_parameters")
MOST_DIRECTIONS = 1_024  # more per person, and "auto" draws probes instead


class NonPrivateTraces(NamedTuple):
  """Hessian traces. Not for release: computed from people without noise.

  Attributes:
    traces: the trace of each group's mean loss, and of the population's.
    per_person: [n] the trace of each person's loss.
    standard_error: standard error of `traces`, over probes; 0 where they are exact.
    probes: number of random directions that were drawn; 0 if none.
  """

  traces: ByGroup
  per_person: jax.Array
  standard_error: ByGroup
  probes: int

  def interval(self, level: float = 0.95) -> ByGroup:
    """Student's t intervals of `traces` over the probes.

    Returns:
      A `fairness.Interval` for the groups, and one for the population. Where
      the traces are exact, the ends are the estimate.
    """
    from scipy import special  # host only, never part of a program

    checks.number(
      "level", level, low=0.0, high=1.0, open_low=True, open_high=True, remedy="0.95 is usual"
    )
    half = special.stdtrit(max(self.probes - 1, 1), (1 + level) / 2)

    def one(value: Array, error: Array) -> Interval:
      value, error = (np.asarray(v, np.float64) for v in (value, error))
      low, high = value - half * error, value + half * error
      return Interval(value, low, high, level, 0)

    pairs = zip(self.traces, self.standard_error, strict=True)
    return ByGroup(*(one(*pair) for pair in pairs))


def hessian_trace(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  *,
  num_groups: int,
  method: Method = "auto",
  key: Key | None = None,
  probes: int = 100,
) -> NonPrivateTraces:
  """Traces of the loss Hessian in the parameters: per person, per group and overall.

  Methods:
    exact: Gauss-Newton plus the residual. Softmax regression and ReLU networks
      have no residual, which is determined from the traced program; one
      hidden layer of any activation costs one more direction; deeper smooth
      networks one direction per hidden unit that has another nonlinear layer
      above it. See `plan_residual(...).directions`.
    gauss_newton: the first term alone; never negative for a convex loss.
    hutchinson: unbiased for any model, with a standard error; needs a key.
    all_parameters: one direction per parameter; exact, slow, no assumptions.
    auto: "exact" if it takes at most 1,024 directions per person, as it does
      for dense networks of common widths; else "hutchinson".

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses, twice differentiable.
    params: the parameters at which it is evaluated.
    examples: the people.
    num_groups: static number of groups G.
    method: see above.
    key: for the random directions; only "hutchinson" draws any.
    probes: number of random directions.

  Returns:
    The traces. Exact ones are differentiable by the parameters. Each call
    compiles once per shape.

  Reference:
    Thesis chapter 3, Theorems 3.1 and 3.4; softmax regression is Example 3.3,
    one hidden layer is (3.36) and (3.37), where the residual's sign and the
    weights' index are misprinted.
  """
  checks.one_of("method", method, METHODS)
  check_people(examples, num_groups)
  if method == "auto":
    plan = plan_residual(model, params, examples.x)
    enough = plan.directions <= MOST_DIRECTIONS
    method = "exact" if enough else "hutchinson"
    checks.require(
      enough or key is not None,
      f"the exact trace of this model takes {plan.directions} directions per "
      "person; pass key=jax.random.key(seed) to estimate it, or "
      "method='exact' to wait",
    )
  if method != "hutchinson":
    return _exact(model, loss, params, examples, num_groups, method)
  checks.require(
    key is not None, "method='hutchinson' draws directions; pass key=jax.random.key(seed)"
  )
  checks.one_key("key", key)
  checks.integer("probes", probes, low=2, remedy="100 is usual")
  return _estimated(model, loss, params, examples, num_groups, probes, key)


def trace_per_person(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, *, residual: bool = True
) -> jax.Array:
  """[n] exact traces, differentiable, to be used inside a program.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses, twice differentiable.
    params: the parameters at which it is evaluated.
    examples: the people.
    residual: False leaves the Gauss-Newton part.
  """
  logits, gram = logit_gram(model, params, examples.x, contrasts=loss in SHIFT_INVARIANT)
  own = functools.partial(one_loss, loss)
  bending = jax.vmap(jax.hessian(own))(logits, examples.y)
  total = contraction(bending, gram)
  if not residual:
    return total
  plan = plan_residual(model, params, examples.x)
  if plan.directions:
    slopes = jax.vmap(jax.grad(own))(logits, examples.y)
    total += residual_traces(plan, params, examples.x, slopes)
  return total


def check_people(examples: Examples, num_groups: int) -> None:
  """Raises if no group statistic can be computed from the examples."""
  size = checks.same_length(**examples._asdict())
  checks.one_per_person(**{"examples.group": examples.group})
  checks.require(size > 0, "examples is empty; pass at least one person")
  checks.integer("num_groups", num_groups, low=1)
  checks.ids("examples.group", examples.group, num_groups)


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups", "method"))
def _exact(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  num_groups: int,
  method: str,
) -> NonPrivateTraces:
  examples = jax.tree.map(jnp.asarray, examples)
  if method == "all_parameters":
    found = _all_parameters(model, loss, params, examples)
  else:
    found = trace_per_person(model, loss, params, examples, residual=method == "exact")
  traces = mean_by_group(found, examples.group, num_groups)
  return NonPrivateTraces(traces, found, tree.zeros_like(traces), 0)


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups", "probes"))
def _estimated(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  num_groups: int,
  probes: int,
  key: jax.Array,
) -> NonPrivateTraces:
  examples = jax.tree.map(jnp.asarray, examples)
  weights = weights_by_group(examples.group, num_groups)
  found, draws = hutchinson_traces(model, loss, params, examples, weights, probes=probes, key=key)
  mean = jnp.mean(draws, axis=0)
  error = jnp.std(draws, axis=0, ddof=1) / jnp.sqrt(float(probes))
  return NonPrivateTraces(
    ByGroup(mean[:-1], mean[-1]), found, ByGroup(error[:-1], error[-1]), probes
  )


def _all_parameters(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples
) -> jax.Array:
  flat, unravel = jax.flatten_util.ravel_pytree(params)

  def add(total: jax.Array, index: jax.Array) -> tuple[jax.Array, None]:
    direction = unravel(jnp.zeros_like(flat).at[index].set(1.0))
    found = in_chunks(
      lambda rows: along(model, loss, params, rows, direction).curvatures, examples, 16_384
    )
    return total + found, None

  start = jnp.zeros(examples.x.shape[0])
  return jax.lax.scan(add, start, jnp.arange(flat.size))[0]
