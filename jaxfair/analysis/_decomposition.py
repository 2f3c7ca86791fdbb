"""What one step of DP-SGD does to every group's loss, term by term.

The step is theta - eta (sum_{i in B} clip(g_i) + N(0, C^2 sigma^2 I)) / (q n),
B a Poisson sample of rate q. To second order, the expected change of group a's
mean loss is the sum of

  non-private  -eta <g_a, g> + eta^2/2 E[g_B' H_a g_B]
  clipping      eta (<g_a, g> - <g_a, gbar>) + eta^2/2 psi_a
  noise         eta^2/2 Tr(H_a) (C sigma / (q n))^2

with psi_a = E[gbar_B' H_a gbar_B] - E[g_B' H_a g_B]. The divisor is the
expected batch size, so the batches' mean is unbiased and their variance known:

  E[g_B' H g_B] = g' H g + (1 - q) / (q n^2) sum_i g_i' H g_i

Thesis chapter 3, Theorem 3.2, with the variance of the noise as it is really
added: the printed C^2 sigma^2 leaves out the division by the batch size.
"""

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxfair import checks, tree
from jaxfair.analysis._by_group import ByGroup, weights_by_group
from jaxfair.analysis._clipping_condition import clipping_margin
from jaxfair.analysis._curvature import check_people, hessian_trace
from jaxfair.analysis._directional_derivatives import along, in_chunks, per_example
from jaxfair.analysis._hessian import group_hessians
from jaxfair.analysis._norms import gradient_norms
from jaxfair.privacy._clip_factors import clip_factor
from jaxfair.types import Array, Examples, Key, Model, Number, Params, PerExampleLoss, PyTree

Method = Literal["auto", "exact", "probes"]
SMALL = 400  # parameters; up to here "auto" builds the groups' Hessians


class StepSettings(NamedTuple):
  """One step of DP-SGD: plain descent, without momentum or weight decay.

  Attributes:
    learning_rate: eta.
    l2_clip: C.
    noise_multiplier: sigma; the noise on the sum has deviation C sigma.
    sampling_rate: q; the expected batch is q n.
  """

  learning_rate: Number
  l2_clip: Number
  noise_multiplier: Number
  sampling_rate: Number

  def clipping_margin(
    self, gradient_norms: Array, shares: Array, *, batch_variance: Number = 0.0
  ) -> jax.Array:
    """Theorem 3.3: where a margin is not negative, clipping costs that group more than the other.

    Args:
      gradient_norms: [..., 2] norms of two groups' mean gradients, without clipping.
      shares: [..., 2] the groups' shares of all people.
      batch_variance: E|g_B - g|^2 + E|gbar_B - gbar|^2; 0 if a step uses everybody.

    Returns:
      [..., 2] margins; `_clipping_condition.clipping_margin` has the formula and the proof.
    """
    return clipping_margin(
      gradient_norms, shares, l2_clip=self.l2_clip, batch_variance=batch_variance
    )


class NonPrivateDecomposition(NamedTuple):
  """Expected changes of mean losses in one step. Not for release.

  Every field holds one number per group and one for the population.

  Attributes:
    loss: before the step.
    non_private: what the step does without clipping and noise.
    clipping_slope: eta (<g_a, g> - <g_a, gbar>).
    clipping_curvature: eta^2/2 psi_a.
    noise: R_a^noise.
    trace: Tr(H_a).
    standard_error: standard error of the sum of all terms, over probes; 0 if exact.
  """

  loss: ByGroup
  non_private: ByGroup
  clipping_slope: ByGroup
  clipping_curvature: ByGroup
  noise: ByGroup
  trace: ByGroup
  standard_error: ByGroup

  @property
  def clipping(self) -> ByGroup:
    """R_a^clip, the two parts together."""
    return tree.add(self.clipping_slope, self.clipping_curvature)

  @property
  def excess(self) -> ByGroup:
    """R_a^clip + R_a^noise: what privacy adds to the loss in this step."""
    return tree.add(self.clipping, self.noise)

  @property
  def total(self) -> ByGroup:
    """The expected change of the loss."""
    return tree.add(self.non_private, self.excess)


def decompose(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  settings: StepSettings,
  *,
  num_groups: int,
  method: Method = "auto",
  key: Key | None = None,
  probes: int = 64,
) -> NonPrivateDecomposition:
  """The terms of Theorem 3.2 for every group, at given parameters.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses, twice differentiable.
    params: the parameters where the step starts.
    examples: the private data.
    settings: settings of the step.
    num_groups: static number of groups G.
    method: how sum_i g_i' H_a g_i is computed. "exact" builds the Hessians;
      "probes" draws signs s and uses the curvature along sum_i s_i g_i, which
      is unbiased; "auto" is "exact" up to 400 parameters.
    key: for the probes, and for those of the trace if it is estimated.
    probes: number of random directions.

  Returns:
    The terms; their sum differs from the true change by a term of third order in the step.
  """
  checks.positive("learning_rate", settings.learning_rate)
  checks.positive("l2_clip", settings.l2_clip)
  checks.non_negative("noise_multiplier", settings.noise_multiplier)
  checks.number(
    "sampling_rate",
    settings.sampling_rate,
    low=0.0,
    high=1.0,
    open_low=True,
    remedy="it is expected batch size / number of examples",
  )
  checks.one_of("method", method, ("auto", "exact", "probes"))
  checks.integer("probes", probes, low=2)
  check_people(examples, num_groups)
  if method == "auto":
    method = "exact" if tree.size(params) <= SMALL else "probes"
  checks.require(
    method == "exact" or key is not None,
    "method='probes' draws signs; pass key=jax.random.key(seed)",
  )
  key_trace = None
  if key is not None:
    checks.one_key("key", key)
    key_trace, key = jax.random.split(key)
  traces = hessian_trace(model, loss, params, examples, num_groups=num_groups, key=key_trace)
  error = traces.standard_error
  return _decompose(
    model, loss, params, examples, settings, num_groups, method, probes, key, traces.traces, error
  )


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups", "method", "probes"))
def _decompose(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  settings: StepSettings,
  num_groups: int,
  method: str,
  probes: int,
  key: Key,
  trace: ByGroup,
  trace_error: ByGroup,
) -> NonPrivateDecomposition:
  examples = jax.tree.map(jnp.asarray, examples)
  n = examples.x.shape[0]
  rate, q = settings.learning_rate, settings.sampling_rate
  weights = weights_by_group(examples.group, num_groups)
  norms = gradient_norms(model, loss, params, examples)
  factors = clip_factor(jnp.square(norms), settings.l2_clip)

  def means(row: jax.Array) -> tuple[jax.Array, ...]:
    """For v = sum_i row_i g_i: [G + 1] losses, <g_a, v> and v' H_a v."""
    direction = jax.grad(lambda p: row @ per_example(model, loss, p, examples))(params)
    found = along(model, loss, params, examples, direction)
    return tuple(weights @ values for values in found)

  # Side by side: without clipping, and with it.
  rows = jnp.stack([jnp.ones(n), factors])
  losses, slopes, bends = jax.vmap(means)(rows / n)
  if method == "exact":
    spreads = _second_moments(model, loss, params, examples, factors, num_groups)
    error = jnp.zeros(num_groups + 1)
  else:

    def probe(index: jax.Array) -> jax.Array:
      own = jax.random.fold_in(key, index)
      signs = jax.random.rademacher(own, (n,), jnp.float32)
      # The same signs for both: their difference, psi, has little noise.
      return jax.vmap(means)(signs * rows)[2]

    draws = jax.lax.map(probe, jnp.arange(probes))  # [m, 2, G + 1]
    spreads = jnp.mean(draws, axis=0)
    error = jnp.std(draws[:, 1], axis=0, ddof=1) / jnp.sqrt(float(probes))
  variance = (1 - q) / (q * n * n)
  second = 0.5 * jnp.square(rate)
  quadratic, quadratic_clipped = bends + variance * spreads
  psi = quadratic_clipped - quadratic
  noise_variance = jnp.square(settings.l2_clip * settings.noise_multiplier / (q * n))

  def split(values: Array) -> ByGroup:
    return ByGroup(values[:-1], values[-1])

  noise = tree.scale(second * noise_variance, trace)
  of_trace = tree.scale(second * noise_variance, trace_error)
  of_spread = split(second * variance * error)
  return NonPrivateDecomposition(
    loss=split(losses[0]),
    non_private=split(-rate * slopes[0] + second * quadratic),
    clipping_slope=split(rate * (slopes[0] - slopes[1])),
    clipping_curvature=split(second * psi),
    noise=noise,
    trace=trace,
    standard_error=jax.tree.map(jnp.hypot, of_trace, of_spread),
  )


def _second_moments(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  factors: jax.Array,
  num_groups: int,
) -> jax.Array:
  """[2, G + 1] sums of g_i' H_a g_i, without and with clipping."""
  hessians = group_hessians(model, loss, params, examples, num_groups=num_groups)
  matrices = jnp.concatenate([hessians.group, hessians.population[None]])

  def forms(rows: PyTree) -> jax.Array:
    people, factor = rows
    gradients = jax.vmap(
      lambda one: ravel_pytree(
        jax.grad(lambda p: per_example(model, loss, p, jax.tree.map(lambda v: v[None], one))[0])(
          params
        )
      )[0]
    )(people)
    values = jnp.einsum("np,gpq,nq->ng", gradients, matrices, gradients)
    return jnp.stack([values, jnp.square(factor)[:, None] * values], axis=1)

  return jnp.sum(in_chunks(forms, (examples, factors)), axis=0)
