"""The part of the Hessian's trace that Gauss-Newton leaves out.

  H = J' A J + sum_c r_c d^2 logits_c,   r = d loss / d logits

Moving one weight of a layer y = a W moves one entry of y by the input that it
multiplies, so the layer's share is sum_j |a|^2 d^2 phi / d y_j^2 with
phi = <r, logits>: second derivatives by the layer's outputs, of which there
are far fewer than weights. Where the logits are piecewise linear in y the
share is zero; where their Hessian is diagonal, one direction gives the sum;
where it is diagonal after the next matrix, two do (`_through_matrix`).
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import tree
from jaxfair.analysis._directional_derivatives import in_chunks
from jaxfair.analysis._layer_outputs import Layers, read_layers
from jaxfair.analysis._linearity import Bend, bends, passes_through, same_places
from jaxfair.privacy import _sites
from jaxfair.types import Array, Features, Model, Params, PyTree

MEMORY = 2**22  # numbers held at once for one layer's directions


class Place(NamedTuple):
  """One layer's output.

  Attributes:
    bend: how the logits bend there.
    sites: whose pushes all act there.
    size: number of entries.
    through: the site of a matrix through which alone it acts, entry by entry, and behind which the
      logits bend entry by entry; None if there is none, or if it is not needed.
  """

  bend: Bend
  sites: tuple[int, ...]
  size: int
  through: int | None = None

  @property
  def directions(self) -> int:
    """How many second derivatives its share takes."""
    full = self.size if self.through is None else 2
    return {Bend.ZERO: 0, Bend.DIAGONAL: 1, Bend.FULL: full}[self.bend]


class Plan(NamedTuple):
  """How a model's residual trace is taken; read off its program.

  Attributes:
    layers: the model, read.
    places: outputs of layers, with how the logits bend there.
    leaves: leaves that take one direction per parameter: they meet data more
      than once, at several positions, or in a way that is not known.
  """

  layers: Layers
  places: tuple[Place, ...]
  leaves: tuple[int, ...]

  @property
  def directions(self) -> int:
    """Second directional derivatives per person; 0 if there is no residual.

    For models whose logits are piecewise linear in every layer's output, ReLU
    networks among them, the residual's trace is zero almost everywhere.
    """
    own = sum(place.directions for place in self.places)
    shapes = [self.layers.shapes[leaf] for leaf in self.leaves]
    return own + tree.size(shapes)


def plan_residual(model: Model, params: Params, x: Features) -> Plan:
  """Decides how the residual trace is taken; looks at shapes only."""
  layers = read_layers(model, params, x)
  sites = layers.reading.sites

  def with_inputs(pushes: PyTree, rest: PyTree) -> PyTree:
    values, x_one = rest
    _, leaf_pushes = layers.zeros()
    return layers.logits(values, (pushes, leaf_pushes), x_one)

  def logits(pushes: PyTree, rest: PyTree) -> PyTree:
    return with_inputs(pushes, rest)[0]

  one = jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
  rest = (jax.tree.unflatten(layers.treedef, layers.shapes), one)
  outputs = [site.output for site in sites]
  found = bends(logits, outputs, rest)
  first = same_places(logits, outputs, rest)

  used = [site.view.leaf for site in sites]
  by_parameter = set(layers.reading.whole)
  kept: dict[int, list[int]] = {}
  for index, site in enumerate(sites):
    alone = used.count(site.view.leaf) == 1
    zero = found[index] == Bend.ZERO
    if alone and (zero or _weighable(site, found[index])):
      kept.setdefault(first[index], []).append(index)
    else:
      by_parameter.add(site.view.leaf)

  def through(own: int) -> int | None:
    """The next matrix, if its outputs bend alone; a later one is out of the question."""
    later = [i for i in range(own + 1, len(sites)) if sites[i].kind == "dense"][:1]
    fitting = found[own] == Bend.FULL and all(
      found[i] == Bend.DIAGONAL
      and _positions(sites[i]) == 1
      and passes_through(with_inputs, outputs, rest, own, i)
      for i in later
    )
    return later[0] if later and fitting else None

  places = tuple(
    Place(found[own[0]], tuple(own), tree.size(sites[own[0]].output), through(own[0]))
    for own in kept.values()
  )
  return Plan(layers, places, tuple(sorted(by_parameter)))


def residual_traces(plan: Plan, params: Params, x: Features, slopes: jax.Array) -> jax.Array:
  """Each person's sum_c r_c Tr(d^2 logits_c).

  Args:
    plan: of the model, from `plan_residual`.
    params: the parameters at which it is evaluated.
    x: [n, ...] inputs.
    slopes: [n, C] r, the loss's gradient by the logits.

  Returns:
    [n] traces; 0 where the plan needs no direction. Differentiable.
  """
  total = jnp.zeros(x.shape[0])
  for place in plan.places:
    if place.directions:
      held = place.directions * max(tree.size(site.output) for site in plan.layers.reading.sites)
      total += in_chunks(
        lambda rows, place=place: jax.vmap(
          lambda one, slope: _at_place(plan.layers, place, params, one, slope)
        )(*rows),
        (x, slopes),
        max(1, MEMORY // held),
      )
  for leaf in plan.leaves:
    total += _by_parameter(plan.layers, leaf, params, x, slopes)
  return total


def _at_place(
  layers: Layers, place: Place, params: Params, x_one: Array, slope: jax.Array
) -> jax.Array:
  """sum_j u_j d^2 <slope, logits> / d y_j^2 at one layer's output y."""
  site_zeros, leaf_zeros = layers.zeros()
  target = place.sites[0]

  def value(push: jax.Array) -> tuple[jax.Array, Any]:
    pushes = [*site_zeros]
    pushes[target] = push
    logits, inputs = layers.logits(params, (pushes, leaf_zeros), x_one)
    return slope @ logits, inputs

  start = site_zeros[target]
  _, inputs = value(start)
  sites = layers.reading.sites
  weights = sum(_weights(sites[i], inputs[i]) for i in place.sites)
  weights = jnp.broadcast_to(weights, start.shape)

  def second(one: jax.Array, other: jax.Array) -> jax.Array:
    """The mixed second derivative along two directions."""
    return jax.jvp(lambda p: jax.jvp(lambda q: value(q)[0], (p,), (one,))[1], (start,), (other,))[1]

  if place.bend == Bend.DIAGONAL:
    return second(weights, jnp.ones_like(start))
  if place.through is not None:
    return _through_matrix(layers, place, params, x_one, slope, weights)
  basis = jnp.eye(start.size, dtype=start.dtype)
  basis = basis.reshape(start.size, *start.shape)
  return jnp.sum(jax.vmap(lambda e: second(weights * e, e))(basis))


def _through_matrix(
  layers: Layers, place: Place, params: Params, x_one: Array, slope: jax.Array, weights: jax.Array
) -> jax.Array:
  """The share of an output y that acts through z = W a(y) alone, a entry by entry.

  With psi the rest of the network, whose second derivatives d by z are diagonal,

    sum_j u_j d^2 psi / d y_j^2 = <d, W^2 (u a'^2)> + sum_j u_j d^2 <grad psi, z> / d y_j^2

  where W^2 has the squares of the entries of W.
  """
  site_zeros, leaf_zeros = layers.zeros()
  first, later = place.sites[0], place.through
  assert later is not None
  site = layers.reading.sites[later]
  matrix = site.view.apply(jax.tree.leaves(params)[site.view.leaf])

  def run(index: int, push: jax.Array) -> PyTree:
    pushes = [*site_zeros]
    pushes[index] = push
    return layers.logits(params, (pushes, leaf_zeros), x_one)

  def product(matrix: jax.Array, data: jax.Array) -> jax.Array:
    pair = (matrix, data) if site.position == 0 else (data, matrix)
    return jax.lax.dot_general_p.bind(*pair, **site.params)

  def inputs(push: jax.Array) -> jax.Array:
    data: jax.Array = run(first, push)[1][later]
    return data

  slopes_at = jax.grad(lambda push: slope @ run(later, push)[0])
  above = site_zeros[later]
  by_output, curvature = jax.jvp(slopes_at, (above,), (jnp.ones_like(above),))
  start = site_zeros[first]
  ones = jnp.ones_like(start)
  data, rise = jax.jvp(inputs, (start,), (ones,))
  spread = product(jnp.square(matrix), weights.reshape(data.shape) * jnp.square(rise))

  def linear(push: jax.Array) -> jax.Array:
    return jnp.sum(by_output * product(matrix, inputs(push)))

  bent = jax.jvp(lambda p: jax.jvp(linear, (p,), (weights,))[1], (start,), (ones,))[1]
  return jnp.sum(curvature * spread) + bent


def _weighable(site: _sites.Site, bend: Bend) -> bool:
  """Whether each parameter of the site acts on entries of its output alone.

  A matrix at several positions moves several entries at once, so it can only
  be weighed where these do not bend together.
  """
  if site.kind == "dense":
    return bend == Bend.DIAGONAL or _positions(site) == 1
  unrepeated = tuple(site.operand) == tuple(site.output.shape)
  return site.kind in ("shift", "negative_shift", "scale") and unrepeated


def _positions(site: _sites.Site) -> int:
  contracted, _ = site.params["dimension_numbers"]
  own = contracted[site.position]
  fan_out = [s for d, s in enumerate(site.operand) if d not in own]
  return tree.size(site.output) // max(1, math.prod(fan_out))


def _weights(site: _sites.Site, data: PyTree) -> jax.Array:
  """u_j: squares of what the parameters of output j are multiplied by."""
  if site.kind in ("shift", "negative_shift"):
    return jnp.ones(site.output.shape)
  if site.kind == "scale":
    return jnp.square(data)
  contracted, _ = site.params["dimension_numbers"]
  own, other = contracted if site.position == 0 else contracted[::-1]
  squared = jnp.sum(jnp.square(data), axis=tuple(other))
  free = (1,) * (len(site.operand) - len(own))
  if site.position == 0:  # the result's axes are (parameter's, data's)
    return squared.reshape(*free, *squared.shape)
  return squared.reshape(*squared.shape, *free)


def _by_parameter(
  layers: Layers, leaf: int, params: Params, x: Features, slopes: jax.Array
) -> jax.Array:
  """[n] shares of one leaf, one direction per parameter."""
  values = jax.tree.leaves(params)

  def share(index: jax.Array) -> jax.Array:
    direction = (jnp.zeros(values[leaf].size).at[index].set(1.0)).reshape(values[leaf].shape)

    def some(rows: PyTree) -> jax.Array:
      inputs, slope = rows

      def logits(v: jax.Array) -> jax.Array:
        replaced = [*values]
        replaced[leaf] = v
        tree_ = jax.tree.unflatten(layers.treedef, replaced)
        return layers.model.apply(tree_, inputs)

      bend = jax.jvp(
        lambda p: jax.jvp(logits, (p,), (direction,))[1], (values[leaf],), (direction,)
      )[1]
      return jnp.sum(slope * bend, axis=-1)

    return in_chunks(some, (x, slopes))

  def add(total: jax.Array, index: jax.Array) -> tuple[jax.Array, None]:
    return total + share(index), None

  start = jnp.zeros(x.shape[0])
  total, _ = jax.lax.scan(add, start, jnp.arange(values[leaf].size))
  return total
