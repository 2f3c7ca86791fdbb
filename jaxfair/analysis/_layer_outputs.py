"""The logits of one person as a function of perturbations of every layer's output.

Clipping finds in the traced program where each parameter is combined with data
(`privacy._taps`). Curvature uses the same sites: a perturbation of a layer's output
moves the logits, and the effect of the layer's weights follows from its input.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair.privacy import _tapped_run, _taps
from jaxfair.types import Array, Features, Model, Params, PyTree


class Layers(NamedTuple):
  """A model, read.

  Attributes:
    model: the model.
    reading: its sites, and the leaves that meet data in unknown ways.
    treedef: of its parameters.
    shapes: of its leaves.
  """

  model: Model
  reading: _taps.Reading
  treedef: Any
  shapes: list[jax.ShapeDtypeStruct]

  @property
  def whole(self) -> list[int]:
    """Leaves that are pushed themselves."""
    return sorted(self.reading.whole)

  def zeros(self) -> PyTree:
    """No push anywhere: one array per site, one per whole leaf."""
    return (
      [jnp.zeros(s.output.shape, s.output.dtype) for s in self.reading.sites],
      [jnp.zeros(self.shapes[leaf].shape, self.shapes[leaf].dtype) for leaf in self.whole],
    )

  def logits(self, params: Params, pushes: PyTree, x_one: Array) -> PyTree:
    """[C] logits of one example under pushes, and every site's input."""
    site_pushes, leaf_pushes = pushes
    values = jax.tree.leaves(params)
    for leaf, push in zip(self.whole, leaf_pushes, strict=True):
      values[leaf] = values[leaf] + push
    return _tapped_run.evaluate(self.reading, values, site_pushes, x_one)


def read_layers(model: Model, params: Params, x: Features) -> Layers:
  """Reads a model's sites; only shapes are used."""
  leaves, treedef = jax.tree.flatten(params)
  shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in leaves]
  one = jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
  reading = _taps.read(
    lambda values, x_one: _logits_of_one(model, treedef, values, x_one), shapes, one, plain=True
  )
  return Layers(model, reading, treedef, shapes)


def _logits_of_one(
  model: Model, treedef: jax.tree_util.PyTreeDef, values: PyTree, x_one: Array
) -> jax.Array:
  return model.apply(jax.tree.unflatten(treedef, values), x_one[None])[0]
