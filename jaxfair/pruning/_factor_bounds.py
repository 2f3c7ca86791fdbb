"""Why a group's gradient and curvature are large: errors, and the boundary."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import analysis, checks, tree
from jaxfair.analysis import _by_group, _group_gradients
from jaxfair.analysis._by_group import ByGroup
from jaxfair.analysis._directional_derivatives import in_chunks
from jaxfair.analysis._lanczos import largest
from jaxfair.analysis._logit_gram import logit_gram, one_loss
from jaxfair.pruning._group_profile import STEPS, check
from jaxfair.types import Examples, Key, Model, Params, PerExampleLoss


class NonPrivateGradientBound(NamedTuple):
  """Proposition 5.2, a chain of three. Not for release.

  Attributes:
    gradient_norm: ||g_a||.
    mean_norm: mean ||grad l_i||, at least that.
    bound: mean ||r_i|| ||J_i||, at least that: errors times Jacobians.
    error: mean ||r_i||, r the slope by the logits; for cross-entropy it is
      softmax minus the one-hot label.
  """

  gradient_norm: ByGroup
  mean_norm: ByGroup
  bound: ByGroup
  error: ByGroup


def gradient_bound(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, *, num_groups: int
) -> NonPrivateGradientBound:
  """A group's gradient is small where its errors or its Jacobians are.

  ||g_a|| <= mean_i ||r_i|| ||J_i||,  r_i = d loss / d logits

  J is the Jacobian of the logits and its norm the largest singular value. The
  thesis writes both for the softmax outputs, by which the slope of the
  cross-entropy is not f - y; by the logits it is.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses.
    params: the parameters at which it is evaluated.
    examples: the people.
    num_groups: static number of groups G.

  Reference:
    Thesis chapter 5, Proposition 5.2.
  """
  found = _group_gradients.group_gradients(model, loss, params, examples, num_groups=num_groups)
  norms = ByGroup(jax.vmap(tree.norm)(found.group), tree.norm(found.population))
  return NonPrivateGradientBound(norms, *_gradient_chain(model, loss, params, examples, num_groups))


class NonPrivateEigenvalueBound(NamedTuple):
  """Theorem 5.2 for any loss and number of classes. Not for release.

  Attributes:
    top: lambda_max(H_a).
    boundary: mean lambda_max(J' A J), A the Hessian by the logits; of two
      classes f (1 - f) ||grad s||^2, s the difference of the logits.
    error: mean lambda_max(sum_c r_c d^2 logits_c); of two classes
      |f - y| lambda_max(+-d^2 s), with the sign of f - y.
  """

  top: ByGroup
  boundary: ByGroup
  error: ByGroup

  @property
  def bound(self) -> ByGroup:
    """At least `top`, but for what Lanczos has not found of `error`."""
    return tree.add(self.boundary, self.error)


def eigenvalue_bound(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  *,
  num_groups: int,
  key: Key,
  steps: int = STEPS,
) -> NonPrivateEigenvalueBound:
  """A group's top eigenvalue is large where people are near the boundary.

  lambda_max(H_a) <= mean_i lambda_max(J' A J) + lambda_max(sum_c r_c d^2 z_c)

  The thesis puts |f - y| lambda_max(d^2 s) for the second part, which fails
  for label 1, where f - y is negative: what counts there is the lowest
  eigenvalue of d^2 s. It also writes gradients of the probability; the
  derivatives it uses are those by the logit.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses, twice differentiable.
    params: the parameters at which it is evaluated.
    examples: the people; at least two of every group.
    num_groups: static number of groups G.
    key: for Lanczos.
    steps: products per group and per person; as many as parameters are exact.

  Reference:
    Thesis chapter 5, Theorem 5.2; Weyl's inequality, twice.
  """
  check(examples, num_groups, key)
  checks.integer("steps", steps, low=1)
  key_group, key_person = jax.random.split(key)
  top = analysis.top_eigenvalue(
    model, loss, params, examples, num_groups=num_groups, key=key_group, steps=steps
  ).values
  steps = min(steps, tree.size(params))
  boundary, error = _eigenvalue_parts(model, loss, params, examples, num_groups, steps, key_person)
  return NonPrivateEigenvalueBound(top, boundary, error)


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups"))
def _gradient_chain(
  model: Model, loss: PerExampleLoss, params: Params, examples: Examples, num_groups: int
) -> tuple[ByGroup, ByGroup, ByGroup]:
  people = jax.tree.map(jnp.asarray, examples)
  logits, gram = logit_gram(model, params, people.x)
  own = functools.partial(one_loss, loss)
  slopes = jax.vmap(jax.grad(own))(logits, people.y)
  squared = jnp.einsum("nc,ncd,nd->n", slopes, gram, slopes)
  error = jnp.linalg.norm(slopes, axis=-1)
  jacobian = jnp.sqrt(jnp.maximum(0.0, jnp.linalg.eigvalsh(gram)[:, -1]))
  values = (jnp.sqrt(jnp.maximum(0.0, squared)), error * jacobian, error)
  mean_norm, bound, mean_error = (
    _by_group.mean_by_group(v, people.group, num_groups) for v in values
  )
  return mean_norm, bound, mean_error


@functools.partial(jax.jit, static_argnames=("model", "loss", "num_groups", "steps"))
def _eigenvalue_parts(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  num_groups: int,
  steps: int,
  key: jax.Array,
) -> tuple[ByGroup, ByGroup]:
  people = jax.tree.map(jnp.asarray, examples)
  flat, unravel = jax.flatten_util.ravel_pytree(params)
  logits, gram = logit_gram(model, params, people.x)
  own = functools.partial(one_loss, loss)
  bending = jax.vmap(jax.hessian(own))(logits, people.y)
  # J' A J and K^(1/2) A K^(1/2) have the same eigenvalues but for zeros.
  values, vectors = jnp.linalg.eigh(gram)
  root = vectors * jnp.sqrt(jnp.maximum(0.0, values))[:, None]
  inner = jnp.einsum("nca,ncd,ndb->nab", root, bending, root)
  boundary = jnp.linalg.eigvalsh(inner)[:, -1]
  if flat.size > logits.shape[-1]:  # the other directions have eigenvalue 0
    boundary = jnp.maximum(boundary, 0.0)
  slopes = jax.vmap(jax.grad(own))(logits, people.y)
  start = jax.random.normal(key, flat.shape)

  def bent(x_one: jax.Array, slope: jax.Array) -> jax.Array:
    gradient = jax.grad(lambda v: slope @ model.apply(unravel(v), x_one[None])[0])
    return largest(lambda v: jax.jvp(gradient, (flat,), (v,))[1], start, steps)[0]

  held = max(1, 2**22 // (steps * flat.size))
  error = in_chunks(lambda rows: jax.vmap(bent)(*rows), (people.x, slopes), held)
  return (
    _by_group.mean_by_group(boundary, people.group, num_groups),
    _by_group.mean_by_group(error, people.group, num_groups),
  )
