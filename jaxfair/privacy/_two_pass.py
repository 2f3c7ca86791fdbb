"""Sums of clipped gradients in two passes, for networks whose activations fill the memory.

One pass (`_clipping`) holds the input and the signal of every layer until all norms are known. Here
each layer's share of the norms is computed inside the backward pass, where its input and signal are
available anyway, and a second run of the same program adds up the gradients. Nothing is kept that
plain training does not keep, so rematerialization still saves memory.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import _jaxpr
from jaxfair.privacy import _factor_norms, _factors, _site_factors, _tapped_run
from jaxfair.privacy._one_pass import Sums, Weigh
from jaxfair.privacy._sites import SHORT, Site
from jaxfair.privacy._tapped_run import Meeting
from jaxfair.privacy._taps import Reading
from jaxfair.types import Index, PyTree


def two_pass_sums(
  reading: Reading, leaves: list[jax.Array], examples: PyTree, weigh: Weigh
) -> Sums:
  """Clips each example's gradient and adds them up, in two rounds of one loop.

  Each round is one forward and one backward pass over the batch. At a site with input x and signal
  g, the backward pass hands on g as it is, adds the bounds on the norm of the gradient x' g to the
  example's, and gives the parameter the gradient x' (s g), s the example's clip factor. The first
  round's norms decide the factors of the second.

  Args:
    reading: of the loss of one example; no leaf is tapped whole.
    leaves: the parameters.
    examples: the batch, leaves [n, ...]; n > 0.
    weigh: from norms to clip factors.

  Privacy:
    What an example adds to the sum is s x' g over the sites, with x and g from the second round,
    and s bounds it by the norms of the first. Both rounds are one compiled loop body on the same
    numbers, and neither x nor g depends on s: they have the same bits in both. Two programs would
    not do: other fusions round differently, and nothing bounds what a network makes of that.
    The norm is still computed in another order than the sum. With u = 2^-24 and T products behind
    an entry of the gradient, each of the two is off by gamma_T = T u / (1 - T u) times the sum of
    the products' sizes at most, in any order. For S the squared norm of these sums, the squared
    norm of what is released exceeds that of what is computed by (4 gamma_T (1 + gamma_T) +
    4 gamma_T^2) S at most, which `_bounds` adds to what the norm itself rounds away.
    An example that is left out has the factor 0 and another example's data in the second round: no
    infinite number of its own meets the zero.

  Assumptions:
    The same instructions on the same numbers give the same bits, and convolutions are sums of
    products (as they are on CPUs and TPUs; not if a GPU picks a Winograd algorithm).
  """
  count = jax.tree.leaves(examples)[0].shape[0]
  num_leaves = len(leaves)
  body = _Body(reading, leaves)

  def one_round(index: Index, sums: tuple[Sums, jax.Array]) -> tuple[Sums, jax.Array]:
    before, weights = sums
    everybody = jnp.arange(count)
    rows = jnp.where(before.bad, jnp.argmin(before.bad), everybody)
    own = jax.tree.map(lambda v: v[rows], examples)
    totals, losses, squared, largest = body.differentiate(weights, own)
    decided = weigh(squared, largest)
    weights, norms, bad, losses = (
      jnp.where(index == 0, new, old)
      for new, old in zip(
        (*decided, losses), (weights, before.norms, before.bad, before.losses), strict=True
      )
    )
    return Sums(totals, norms, bad, losses), weights

  zeros = jnp.zeros(count)
  start = Sums([jnp.zeros_like(v) for v in leaves], zeros, jnp.zeros(count, bool), zeros)
  found, _ = jax.lax.fori_loop(0, 2, one_round, (start, jnp.zeros((num_leaves, count))))
  anybody = ~jnp.all(found.bad)
  return found._replace(totals=[jnp.where(anybody, total, 0.0) for total in found.totals])


class _Body(NamedTuple):
  """One round: forward, backward, norms."""

  reading: Reading
  leaves: list[jax.Array]

  def differentiate(self, weights: jax.Array, examples: PyTree) -> PyTree:
    """Weighted sums, losses, and [leaves, n] squared norms with upper bounds."""
    sites, (count, alone) = self.reading.sites, (weights.shape[1], self._alone())
    axes = [int(bool(site.loops)) for site in sites]
    shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in self.leaves]

    def zeros(shape: tuple[int, ...], site: Site, dtype: Any) -> jax.Array:
      first, rest = site.loops[:1], site.loops[1:]
      return jnp.zeros((*first, count, *rest, *shape), dtype)

    bounds = {i: zeros((2,), site, jnp.float32) for i, site in enumerate(sites)}
    signals = {
      i: zeros(site.output.shape, site, site.output.dtype)
      for i, site in enumerate(sites)
      if i not in alone
    }

    def one(
      values: PyTree, weight: jax.Array, bounds: PyTree, signals: PyTree, example: PyTree
    ) -> PyTree:
      def at_site(meeting: Meeting) -> tuple[Any, Any]:
        index = meeting.at
        output = _weighted(meeting, weight[meeting.site.view.leaf], self._later(), index in alone)
        return output, meeting.data if index in by_captured else None

      extra = {i: (bounds[i], signals.get(i)) for i in bounds}
      return _tapped_run.run(self.reading, values, example, at_site, extra=extra)

    by_site = dict(enumerate(axes))
    by_shared = {i: axis for i, axis in by_site.items() if i not in alone}
    by_captured = {i: axis for i, axis in by_shared.items() if sites[i].needs_data}
    batched = jax.vmap(one, in_axes=(None, 1, by_site, by_shared, 0), out_axes=(0, by_captured))

    def total(values: PyTree, bounds: PyTree, signals: PyTree) -> tuple[jax.Array, Any]:
      losses, captured = batched(values, weights, bounds, signals, examples)
      return jnp.sum(losses), (losses, captured)

    (totals, bounds, signals), (losses, captured) = jax.grad(total, (0, 1, 2), has_aux=True)(
      self.leaves, bounds, signals
    )
    squared = [jnp.zeros(count) for _ in self.leaves]
    largest = [jnp.zeros(count) for _ in self.leaves]
    for leaf, own in self._by_leaf().items():
      if own[0] in alone:
        (index,) = own
        rounds = jnp.moveaxis(bounds[index], axes[index], 0).reshape(count, -1, 2)
        both = jnp.sum(rounds, axis=1)
        squared[leaf], largest[leaf] = both[:, 0], both[:, 1]
      else:
        factors = [(sites[i], captured.get(i, signals[i]), signals[i]) for i in own]
        squared[leaf], largest[leaf] = _bounds(factors, shapes[leaf], self._later())
    return totals, losses, jnp.stack(squared), jnp.stack(largest)

  def _by_leaf(self) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for index, site in enumerate(self.reading.sites):
      found.setdefault(site.view.leaf, []).append(index)
    return found

  def _alone(self) -> frozenset[int]:
    """Sites with the whole gradient of their leaf, or of a slice of it, in each round."""
    return frozenset(
      own[0]
      for own in self._by_leaf().values()
      if len(own) == 1 and not self.reading.sites[own[0]].shares
    )

  def _later(self) -> int:
    """Roundings of the sums over rounds and leaves."""
    return len(self.leaves) + max((math.prod(s.loops) for s in self.reading.sites), default=0)


def _weighted(meeting: Meeting, weight: jax.Array, later: int, alone: bool) -> PyTree:
  """The site's output; its backward pass weighs the parameter's gradient and bounds its norm."""
  site = meeting.site
  data = jax.lax.stop_gradient(meeting.data)
  if data.dtype in SHORT:
    data = jax.lax.optimization_barrier(data)
  fixed = meeting.parameter._replace(value=jax.lax.stop_gradient(meeting.parameter.value))
  through_data = meeting._replace(parameter=fixed).result()
  through_parameter = _float32_result(meeting, data)

  # The second argument is there for its cotangent. Bounds are zero; adding them makes the output
  # differ by example, so that its cotangent is that of one example and not of their sum.
  @jax.custom_vjp
  def meet(one: Any, other: Any, data: Any, bounds: Any, signal: Any, weight: Any) -> Any:
    del other, data, signal, weight
    return one + bounds[0].astype(one.dtype)

  def forward(one: Any, other: Any, data: Any, bounds: Any, signal: Any, weight: Any) -> Any:
    return meet(one, other, data, bounds, signal, weight), (data, weight)

  def backward(kept: PyTree, cotangent: PyTree) -> PyTree:
    data, weight = kept
    if cotangent.dtype in SHORT:
      cotangent = jax.lax.optimization_barrier(cotangent)
    wide = cotangent.astype(jnp.float32)
    # Where the weight is 0 the signal may be anything, NaN too.
    weighted = jnp.where(weight == 0, 0.0, wide * weight)
    if not alone:
      return cotangent, weighted, None, None, cotangent, None
    data = data if site.needs_data else cotangent
    base = site.view.base
    round_ = dataclasses.replace(site, loops=(), view=site.view._replace(outer=None))
    squared, largest = _bounds([(round_, data[None], cotangent[None])], base, later)
    return cotangent, weighted, None, jnp.stack([squared[0], largest[0]]), None, None

  meet.defvjp(forward, backward)
  bounds, signal = meeting.extra
  kept = data if site.needs_data else ()
  return meet(through_data, through_parameter, kept, bounds, signal, weight)


def _float32_result(meeting: Meeting, data: PyTree) -> PyTree:
  """The site's operation on float32 numbers: only its gradient by the parameter is used."""
  equation, site = meeting.equation, meeting.site
  params = dict(equation.params)
  if "precision" in params:
    params["precision"] = (_factors.PRECISION, _factors.PRECISION)
    params["preferred_element_type"] = jnp.dtype(jnp.float32)
  exact = meeting.parameter.value if meeting.parameter.exact is None else meeting.parameter.exact

  def apply(data: PyTree, exact: PyTree) -> PyTree:
    wide = data if site.kind == "rows" else data.astype(jnp.float32)
    operands = [wide, exact] if site.position else [exact, wide]
    return _jaxpr.bind(equation.replace(params=params), operands)[0]

  # Of short data the short form is kept for the backward pass, not the float32 one.
  return (jax.checkpoint(apply) if data.dtype in SHORT else apply)(data, exact)


def _bounds(
  factors: list[tuple[Site, jax.Array, jax.Array]], leaf: _factors.Leaf, later: int
) -> tuple[jax.Array, jax.Array]:
  """[n] squared norms of one leaf's gradients, and upper bounds on those of what is released.

  Args:
    factors: of the leaf's sites: site, data, signal.
    leaf: shape and type of the leaf.
    later: roundings of non-negative sums that are still to come.
  """
  parts = [_site_factors.part(*one, leaf) for one in factors]
  kept = _factors.gather(parts, leaf)
  count = factors[0][1].shape[int(bool(factors[0][0].loops))]
  squared = _factor_norms.squared_norms(kept, count)
  products = [p for p in parts if isinstance(p, _factors.Product)]
  if len(products) == len(parts) and (len(parts) == 1 or kept is parts):
    terms = sum(p.right.shape[1] for p in products)
    return squared, squared + _factor_norms.hidden_by_rounding(
      parts, squared, later=later + 2 * terms + 8
    )
  terms = sum(_terms(site, p) for (site, _, _), p in zip(factors, parts, strict=True))
  sizes = _factors.gather([_site_factors.part(*_absolute(*one), leaf) for one in factors], leaf)
  spread = _factor_norms.squared_norms(sizes, count)
  hidden = _factor_norms.hidden_by_rounding(sizes, spread, later=later + 4 * (terms + 4))
  return squared, squared + hidden


def _absolute(site: Site, data: jax.Array, signal: jax.Array) -> tuple[Site, jax.Array, jax.Array]:
  kind = "shift" if site.kind == "negative_shift" else site.kind
  sizes = data if site.kind == "rows" else jnp.abs(data)
  return dataclasses.replace(site, kind=kind), sizes, jnp.abs(signal)


def _terms(site: Site, p: _factors.Part) -> int:
  """How many products are summed for an entry of the gradient, at most."""
  if isinstance(p, _factors.Product):
    return int(p.right.shape[1])
  rounds = math.prod(n for i, n in enumerate(site.loops) if i not in site.view.sliced_by)
  entries = math.prod(site.view.base.shape)
  if site.kind == "conv":
    entries = site.operand[site.params["dimension_numbers"][1][0]]  # output channels
  return rounds * math.ceil(math.prod(site.output.shape) / max(1, entries))
