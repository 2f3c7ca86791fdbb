"""Options of a private step: views of one person, chunks of a batch, averaged parameters."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxfair import checks, tree
from jaxfair.types import Array, Key, Keys, Labels, Model, Params, PerExampleLoss, PyTree

# (features of one person, key) -> features of the same shape
Augmentation: TypeAlias = Callable[[jax.Array, jax.Array], jax.Array]


@dataclasses.dataclass(frozen=True)
class FlipAndShift:
  """Mirrors an image left to right at random and shifts it by a few pixels.

  Attributes:
    pixels: how far, at most, along each axis; what moves in from outside is the nearest edge.
    flip: whether images are mirrored, each with probability 1/2.
  """

  pixels: int = 4
  flip: bool = True

  def __post_init__(self) -> None:
    checks.integer("pixels", self.pixels, low=0)

  def __call__(self, image: jax.Array, key: jax.Array) -> jax.Array:
    """Another view of one image [height, width, channels]."""
    checks.require(
      image.ndim == 3, f"an image must have shape [height, width, channels], not {image.shape}"
    )
    key_flip, key_shift = jax.random.split(key)
    if self.flip:
      image = jnp.where(jax.random.bernoulli(key_flip), image[:, ::-1], image)
    around = ((self.pixels, self.pixels), (self.pixels, self.pixels), (0, 0))
    start = jax.random.randint(key_shift, (2,), 0, 2 * self.pixels + 1)
    padded = jnp.pad(image, around, mode="edge")
    return jax.lax.dynamic_slice(padded, (start[0], start[1], 0), image.shape)


def views_of(x: jax.Array, augment: Augmentation, views: int, *, keys: Keys) -> jax.Array:
  """[n, views, ...] augmented features, from [n] keys, each of which is split among the views."""

  def of_one(one: jax.Array, key: Key) -> jax.Array:
    return jax.vmap(lambda own: augment(one, own))(jax.random.split(key, views))

  return jax.vmap(of_one)(x, keys)


def mean_over_views(model: Model, loss: PerExampleLoss, views: int) -> tuple[Model, PerExampleLoss]:
  """A model of [n, views, ...] features, and the mean of a person's losses over the views.

  l_i(theta) = 1/K sum_k loss(model(x_ik), y_i)

  Its gradient is the mean of one person's gradients, taken before any clipping.
  """

  def apply(params: Params, x: Array) -> jax.Array:
    outputs = model.apply(params, x.reshape(-1, *x.shape[2:]))
    return outputs.reshape(x.shape[0], -1)

  def mean(outputs: jax.Array, y: Labels) -> jax.Array:
    each = outputs.reshape(outputs.shape[0], views, -1)
    return jnp.mean(jax.vmap(loss, in_axes=(1, None), out_axes=1)(each, y), axis=1)

  return Model(model.init, apply), mean


def sum_in_chunks(
  function: Callable[[Any], tuple[Any, Any]], rows: PyTree, chunk_size: int
) -> tuple[Any, Any]:
  """`function(some rows) -> (sum over them, something of each)`, a chunk at a time.

  Args:
    function: of a tree of arrays with a leading axis of `chunk_size`. Rows that are added to fill
      the last chunk are zeros (False in a mask).
    rows: the tree, with a leading axis of n.
    chunk_size: number of rows that are processed together.

  Returns:
    The sum over all rows, and what belongs to each row, [n, ...].
  """
  size = jax.tree.leaves(rows)[0].shape[0]
  chunks = -(-size // chunk_size)

  def dealt(leaf: jax.Array) -> jax.Array:
    filled = jnp.pad(leaf, [(0, chunks * chunk_size - size)] + [(0, 0)] * (leaf.ndim - 1))
    return filled.reshape(chunks, chunk_size, *leaf.shape[1:])

  dealt_rows = jax.tree.map(dealt, rows)
  first = jax.eval_shape(function, tree.take(dealt_rows, 0))[0]
  zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), first)

  def add(total: PyTree, some: PyTree) -> tuple[Any, Any]:
    more, each = function(some)
    return tree.add(total, more), each

  total, each = jax.lax.scan(add, zero, dealt_rows)
  return total, jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2)[:size], each)


@functools.partial(
  jax.tree_util.register_dataclass, data_fields=["params", "count"], meta_fields=[]
)
@dataclasses.dataclass(frozen=True)
class Average:
  """The weighted mean of the parameters after each step so far, recent ones weighing more.

  mean_t = sum_s decay^(t-s) params_s / sum_s decay^(t-s)

  Attributes:
    params: the mean; the start before the first step.
    count: t.
  """

  params: Params
  count: jax.Array

  @classmethod
  def begin(cls, params: Params) -> "Average":
    """Before the first step."""
    return cls(params, jnp.zeros((), jnp.int32))

  def with_step(self, params: Params, decay: PyTree) -> "Average":
    """After one more step."""
    count = self.count + 1
    share = (1 - decay) / (1 - jnp.float32(decay) ** count)
    moved = tree.scale(share, tree.subtract(params, self.params))
    return Average(tree.add(self.params, moved), count)
