"""Small models that bend in every way, and people to bend them on."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import models
from jaxfair.types import Examples, Model

KEY = jax.random.key(0)


def people(n=24, d=4, num_classes=3, num_groups=2, seed=0):
  rng = np.random.default_rng(seed)
  x = rng.normal(size=(n, d)).astype(np.float32)
  y = rng.integers(0, num_classes, n).astype(np.int32)
  group = rng.integers(0, num_groups, n).astype(np.int32)
  group[:num_groups] = np.arange(num_groups)
  x[group == 1] *= 1.5
  return Examples(x, y, group)


def moved(model, examples, scale=0.6, seed=0):
  """Parameters away from any special point, biases too."""
  one = jax.ShapeDtypeStruct(examples.x.shape[1:], jnp.float32)
  shapes = jax.eval_shape(model.init, KEY, one)
  rng = np.random.default_rng(seed)
  return jax.tree.map(
    lambda leaf: jnp.asarray(scale * rng.normal(size=leaf.shape), jnp.float32), shapes
  )


def _shared() -> Model:
  """One matrix used twice, a gain, and a sequence of two positions."""

  def init(key, x_one):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
      "twice": 0.5 * jax.random.normal(k1, (2, 2)),
      "gain": jnp.ones(2),
      "steps": jax.random.normal(k2, (2, 2)),
      "out": jax.random.normal(k3, (2, 3)),
    }

  def apply(params, x):
    h = jnp.tanh(x.reshape(x.shape[0], 2, 2) @ params["steps"])
    h = h.sum(1) * params["gain"]
    h = jnp.tanh(h @ params["twice"])
    return jnp.tanh(h @ params["twice"]) @ params["out"]

  return Model(init, apply)


ZOO = {
  "softmax": models.logistic(3),
  "relu": models.mlp((4, 3), 3),
  "tanh": models.mlp(4, 3, "tanh"),
  "gelu": models.mlp((4, 3), 3, "gelu"),
  "shared": _shared(),
}
