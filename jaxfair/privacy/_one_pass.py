"""Sums of clipped gradients in one pass: from every layer's input and signal."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair.privacy import _factor_norms, _factors, _site_factors, _tapped_run
from jaxfair.privacy._taps import Reading
from jaxfair.types import PyTree

# (squared norms [leaves, n], upper bounds on them [leaves, n]) -> clip factors [leaves, n],
# norms [n], and which examples are left out [n]
Weigh = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]


class Sums(NamedTuple):
  """Sums of clipped gradients.

  Attributes:
    totals: one for each leaf.
    norms: [n] norms of the gradients.
    bad: [n] which examples were left out, because their gradient has no finite norm.
    losses: [n] losses.
  """

  totals: list[jax.Array]
  norms: jax.Array
  bad: jax.Array
  losses: jax.Array


def one_pass_sums(
  reading: Reading, leaves: list[jax.Array], examples: PyTree, weigh: Weigh
) -> Sums:
  """Clips each example's gradient and adds them up, with one backward pass.

  Args:
    reading: of the loss of one example.
    leaves: the parameters.
    examples: the batch, leaves [n, ...].
    weigh: from norms to clip factors.
  """
  whole = sorted(reading.whole)
  shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in leaves]
  losses, parts = _parts(reading, leaves, whole, examples)
  kept = [_factors.gather(p, s) for p, s in zip(parts, shapes, strict=True)]
  squared = squared_norms(kept, losses.shape[0])
  weights, norms, bad = weigh(squared, _factor_norms.largest_norms(kept, squared))
  kept = _cleaned(kept, bad)
  totals = [_factors.weighted_sum(p, w, s) for p, w, s in zip(kept, weights, shapes, strict=True)]
  return Sums(totals, norms, bad, losses)


def _cleaned(kept: list[list[_factors.Part]], bad: jax.Array) -> list[list[_factors.Part]]:
  """The parts, with zeros for the examples that are left out.

  Non-finite factors spoil a product even at weight 0. They are rare, so factors stay what they are
  unless an example is bad. A loop of at most one round, not a branch: vmap would take both.
  """
  exposed = {id(p.exposed): p for parts in kept for p in parts if p.exposed is not None}

  def clean(carry: PyTree) -> PyTree:
    _, arrays = carry
    return False, {
      key: _factors.zero_where(bad, array, exposed[key].stack) for key, array in arrays.items()
    }

  start: dict[int, Any] = {key: p.exposed for key, p in exposed.items()}
  _, found = jax.lax.while_loop(lambda carry: carry[0], clean, (jnp.any(bad), start))
  return [
    [p if p.exposed is None else p.with_exposed(found[id(p.exposed)]) for p in parts]
    for parts in kept
  ]


def squared_norms(kept: list[list[_factors.Part]], count: int) -> jax.Array:
  """[leaves, n] squared norms of the gradients."""
  return jnp.stack([_factor_norms.squared_norms(parts, count) for parts in kept])


def _parts(
  reading: Reading, leaves: list[jax.Array], whole: list[int], examples: PyTree
) -> tuple[jax.Array, list[list[_factors.Part]]]:
  """[n] losses, and each leaf's parts."""

  def tapped(zeros: PyTree, one: PyTree) -> tuple[jax.Array, Any]:
    taps, leaf_taps = zeros
    values = list(leaves)
    for leaf, tap in zip(whole, leaf_taps, strict=True):
      values[leaf] = values[leaf] + tap
    value, captured = _tapped_run.evaluate(reading, values, taps, one)
    return value, (value, captured)

  zeros = (
    [jnp.zeros(slot.shape, slot.one.dtype) for slot in reading.taps],
    [jnp.zeros_like(leaves[leaf]) for leaf in whole],
  )
  # Loops put their rounds first, and examples second.
  at_taps, at_sources = (
    [int(bool(slot.loops)) for slot in slots] for slots in (reading.taps, reading.sources)
  )
  gradient = jax.vmap(
    jax.grad(tapped, has_aux=True),
    in_axes=(None, 0),
    out_axes=((at_taps, [0] * len(whole)), (0, at_sources)),
  )
  (signals, whole_grads), (losses, captured) = gradient(zeros, examples)
  parts: list[list[_factors.Part]] = [[] for _ in leaves]
  for site in reading.sites:
    leaf, signal = site.view.leaf, signals[site.tap]
    data = captured[site.source] if site.source >= 0 else signal
    parts[leaf].append(_site_factors.part(site, data, signal, leaves[leaf]))
  for leaf, gradients in zip(whole, whole_grads, strict=True):
    parts[leaf].append(_factors.Whole(gradients))
  return losses, parts
