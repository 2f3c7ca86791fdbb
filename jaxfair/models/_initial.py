"""Initial weights of all layers from one normal draw.

Compiling a draw costs about a second for every shape on a CPU, and a deep
network has dozens of shapes; one flat draw, cut into layers, costs one.
"""

import functools
from math import prod, sqrt

import jax
import jax.numpy as jnp

from jaxfair.types import Key


def scaled_normals(
  key: Key, shapes: tuple[tuple[int, ...], ...], gains: tuple[float, ...]
) -> list[jax.Array]:
  """Independent weights, normal with mean 0 and variance gain / fan_in.

  Args:
    key: used once.
    shapes: of the weights; the last axis is the output, all others fan in.
    gains: 2 before a ReLU (He et al. 2015), 1 elsewhere.

  Returns:
    float32 arrays of these shapes.
  """
  flat = jax.random.normal(key, (sum(map(prod, shapes)),), jnp.float32)
  return _cut(flat, shapes, gains)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _cut(
  flat: jax.Array, shapes: tuple[tuple[int, ...], ...], gains: tuple[float, ...]
) -> list[jax.Array]:
  weights, start = [], 0
  for shape, gain in zip(shapes, gains, strict=True):
    part = flat[start : start + prod(shape)]
    weights.append(sqrt(gain / prod(shape[:-1])) * part.reshape(shape))
    start += prod(shape)
  return weights
