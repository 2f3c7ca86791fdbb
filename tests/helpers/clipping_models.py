"""Models whose parameters meet data in every way that clipping knows of."""

import functools

import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp

from jaxfair import models
from jaxfair.types import Model

IMAGE = (10, 10, 2)


class Tied(nn.Module):
  """An embedding used twice; a layer used at many positions and at one."""

  @nn.compact
  def __call__(self, x):
    ids = (jnp.abs(x.reshape(x.shape[0], -1)[:, :9]) * 20).astype(int) % 17
    table = nn.Embed(17, 6)
    h = table(ids) + self.param("place", nn.initializers.normal(), (9, 6))
    often = nn.Dense(6)
    h = jnp.tanh(often(jnp.tanh(often(h))))
    return table.attend(h).mean(1)[:, :3] + often(h.mean(1))[:, :3]


class Convolutions(nn.Module):
  """Few and many positions: both forms of a convolution's gradient."""

  @nn.compact
  def __call__(self, x):
    x = nn.relu(nn.Conv(4, (3, 3))(x))
    x = nn.GroupNorm(2)(x)
    x = nn.relu(nn.Conv(24, (3, 3), strides=(4, 4))(x))
    x = nn.LayerNorm()(x)
    x = nn.Conv(24, (3, 3), padding="VALID", kernel_dilation=1)(x)
    x = nn.relu(x).mean((1, 2))
    return nn.Dense(3)(x)


class Odd(nn.Module):
  """A gate without a fast rule, so built whole, behind a convolution in groups."""

  @nn.compact
  def __call__(self, x):
    x = nn.Conv(4, (3, 3))(x)
    x = nn.Conv(4, (3, 3), feature_group_count=4)(x)
    gate = self.param("gate", nn.initializers.ones, (4,))
    x = jnp.maximum(x, 0) - jnp.exp(gate) * x.mean((1, 2), keepdims=True)
    x = x * self.param("gain", nn.initializers.ones, ())
    x = 2.0 - x
    return nn.DenseGeneral(3, axis=(1, 2, 3))(x)


def _attention(x):
  x = x.reshape(x.shape[0], 10, -1)
  x = hk.Linear(8)(x)
  x = hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling())(x, x, x)
  x = hk.LayerNorm(-1, create_scale=True, create_offset=True)(x)
  return hk.Linear(3)(x.mean(1))


def _by_hand() -> Model:
  """Weights used on the left, transposed, subtracted, and one never used."""

  def init(key, x_one):
    k1, k2 = jax.random.split(key)
    return {
      "left": jax.random.normal(k1, (5, x_one.size)) * 0.1,
      "right": jax.random.normal(k2, (3, 5)),
      "minus": jnp.ones(5),
      "unused": jnp.ones(4),
    }

  def apply(params, x):
    flat = x.reshape(x.shape[0], -1)
    h = (params["left"] @ flat.T).T - params["minus"]
    return jnp.tanh(h) @ params["right"].T

  return Model(init, apply)


@functools.cache
def zoo() -> dict[str, Model]:
  attention = hk.without_apply_rng(hk.transform(_attention))
  return {
    "logistic": models.logistic(3),
    "mlp": models.mlp((7, 5), 3, "tanh"),
    "convolutions": models.from_flax(Convolutions()),
    # 5 x 5, 3 x 3, then 2 x 2: the last one is a matrix product.
    "small maps": models.convnet(3, [models.Conv(4, stride=2)] * 3),
    "tied": models.from_flax(Tied()),
    "odd": models.from_flax(Odd()),
    "attention": models.from_haiku(attention),
    "by hand": _by_hand(),
  }
