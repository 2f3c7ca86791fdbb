"""The profile of a network for each group: the factors that pruning acts on."""

import functools
from typing import NamedTuple, Required, TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import analysis, checks, tree
from jaxfair.analysis import _boundary, _by_group, _group_gradients
from jaxfair.analysis._by_group import ByGroup
from jaxfair.models import zero_one
from jaxfair.training._driver import choose_loop
from jaxfair.types import Examples, Features, Groups, Key, Labels, Model, Params, PerExampleLoss

CHUNK = 256  # people in memory at once where the loops are the host's
STEPS = 20  # of Lanczos: the top value of a network's Hessian stands apart


class NonPrivateProfile(NamedTuple):
  """A network, group by group. Not for release.

  Attributes:
    loss: mean loss, J(theta; D_a).
    accuracy: share of right predictions.
    distance: mean distance to the decision boundary, as the largest
      probability minus the second largest; 0 on the boundary.
    gradient_norm: ||g_a||, of the group's mean gradient; NaN where it was
      not asked for.
    top_eigenvalue: the largest of the group's Hessian, signed; NaN where
      curvature was not asked for.
  """

  loss: ByGroup
  accuracy: ByGroup
  distance: ByGroup
  gradient_norm: ByGroup
  top_eigenvalue: ByGroup


def group_profile(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  *,
  num_groups: int,
  key: Key | None = None,
  steps: int = STEPS,
  max_curved: int | None = None,
  gradients: bool = True,
) -> NonPrivateProfile:
  """Loss, accuracy, distance, gradient norm and curvature of every group.

  Args:
    model: any model without operations across examples.
    loss: `(logits, y) -> [n]` losses, twice differentiable.
    params: the parameters at which everything is measured.
    examples: the people.
    num_groups: static number of groups G.
    key: for the starting vectors of Lanczos; None leaves curvature out.
    steps: Hessian-vector products per group.
    max_curved: curvature is computed on the first `max_curved` people; on all by default.
    gradients: False leaves out gradient norms, which are most of the work without curvature.

  Returns:
    One statistic per group and for everybody. Convolutions on CPU are looked
    at in chunks on the host, everything else in one program that may itself be
    traced.
  """
  check(examples, num_groups, key, max_curved)
  chunk = chunk_for(model, params, examples)
  found = _outputs(model, loss, params, examples, num_groups, chunk)
  nothing = jax.tree.map(lambda v: jnp.full_like(v, jnp.nan), found[0])
  norms = curved = nothing
  if gradients:
    norms = _norms(model, loss, params, examples, num_groups, chunk)
  if key is not None:
    curved = analysis.top_eigenvalue(
      model,
      loss,
      params,
      examples.take(slice(max_curved)),
      num_groups=num_groups,
      key=key,
      steps=steps,
      chunk=chunk,
    ).values
  return NonPrivateProfile(*found, norms, curved)


class ProfileOptions(TypedDict, total=False):
  """Keyword arguments of `group_profile`."""

  num_groups: Required[int]
  key: Key | None
  steps: int
  max_curved: int | None
  gradients: bool


def group_profiles(
  model: Model,
  loss: PerExampleLoss,
  stacked: Params,
  examples: Examples,
  **options: Unpack[ProfileOptions],
) -> NonPrivateProfile:
  """`group_profile` at many networks of one shape.

  Returns:
    The profiles with a leading axis on every array.
  """

  def one(params: Params) -> NonPrivateProfile:
    return group_profile(model, loss, params, examples, **options)

  check(examples, options["num_groups"], options.get("key"), options.get("max_curved"))
  if chunk_for(model, tree.take(stacked, 0), examples) is None:
    return jax.vmap(one)(stacked)
  count = len(jax.tree.leaves(stacked)[0])
  return tree.stack([one(tree.take(stacked, i)) for i in range(count)])


def chunk_for(model: Model, params: Params, examples: Examples) -> int | None:
  """How many people at a time on the host; None for one program."""
  traced = not checks.concrete((params, examples))
  loop = choose_loop("auto", model, examples.x, traced=traced)
  return CHUNK if loop == "step" else None


def check(
  examples: Examples, num_groups: int, key: Key | None, max_curved: int | None = None
) -> None:
  """Raises if the profile of these examples cannot be computed."""
  checks.integer("num_groups", num_groups, low=1)
  checks.same_length(**examples._asdict())
  checks.ids("examples.group", examples.group, num_groups)
  if max_curved is not None:
    checks.integer("max_curved", max_curved, low=2)
  if key is None:
    return
  checks.one_key("key", key)
  told = "" if max_curved is None else f" of the first max_curved={max_curved}"
  check_curved(examples.group[:max_curved], num_groups, "leave key out", told=told)


def check_curved(group: Groups, num_groups: int, remedy: str, *, told: str = "") -> None:
  """Raises if curvature is asked for and a group has fewer than two people."""
  if not checks.concrete(group):
    return
  counts = np.bincount(np.asarray(group), minlength=num_groups)
  few = int(np.argmin(counts))
  checks.require(
    bool(counts[few] >= 2),
    f"group {few} has {counts[few]} people{told}; curvature needs at least 2 "
    f"of every group, or {remedy}",
  )


def _norms(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  num_groups: int,
  chunk: int | None,
) -> ByGroup:
  found = _group_gradients.group_gradients(
    model, loss, params, examples, num_groups=num_groups, chunk=chunk
  )
  return ByGroup(jax.vmap(tree.norm)(found.group), tree.norm(found.population))


def _outputs(
  model: Model,
  loss: PerExampleLoss,
  params: Params,
  examples: Examples,
  num_groups: int,
  chunk: int | None,
) -> tuple[ByGroup, ByGroup, ByGroup]:
  if chunk is None:
    logits = _apply(model, params, jnp.asarray(examples.x))
  else:
    parts = [
      _apply(model, params, examples.x[first : first + chunk])
      for first in range(0, examples.size, chunk)
    ]
    logits = jnp.concatenate(parts)
  return _of_logits(loss, logits, examples.y, examples.group, num_groups)


@functools.partial(jax.jit, static_argnames=("model",))
def _apply(model: Model, params: Params, x: Features) -> jax.Array:
  return model.apply(params, x)


@functools.partial(jax.jit, static_argnames=("loss", "num_groups"))
def _of_logits(
  loss: PerExampleLoss, logits: jax.Array, y: Labels, group: Groups, num_groups: int
) -> tuple[ByGroup, ByGroup, ByGroup]:
  margin = _boundary.top_two_margin(jax.nn.softmax(logits, axis=-1))
  values = (loss(logits, y), 1.0 - zero_one(logits, y), margin)
  loss_, accuracy, distance = (_by_group.mean_by_group(v, group, num_groups) for v in values)
  return loss_, accuracy, distance
