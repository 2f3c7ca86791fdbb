"""Softmax regression and multi-layer perceptrons, in plain jax.numpy."""

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.models import _initial
from jaxfair.types import Array, Key, Model, Params


def logistic(num_classes: int) -> Model:
  """Softmax regression on the flattened features, started at zero.

  logits = x w + b

  The loss is convex in `{"w": [d, C], "b": [C]}`, so the start decides nothing
  but the number of steps; zero gives every class the same probability.

  Args:
    num_classes: number of logits, C.

  Returns:
    A model; the same argument gives the same object.
  """
  checks.integer("num_classes", num_classes, low=1)
  return _logistic(int(num_classes))


def mlp(hidden: int | Sequence[int], num_classes: int, activation: str = "relu") -> Model:
  """A multi-layer perceptron on the flattened features.

  h_0 = x,  h_j = activation(h_{j-1} w_j + b_j),  logits = h w + b

  Weights start normal with variance 2 / fan_in before a ReLU (He et al. 2015)
  and 1 / fan_in elsewhere, biases at zero. Parameters are
  `{"layer_0": {"w", "b"}, ..., "layer_k": {"w", "b"}}`.

  Args:
    hidden: widths of the hidden layers; one number means one layer, and an
      empty sequence a softmax regression that starts at random.
    num_classes: number of logits, C.
    activation: "relu", "tanh", "gelu", or "tempered_sigmoid": 1.58 / (1 + exp(-3 x)) - 0.71, whose
      bounded values keep gradients short, which suits private training (Papernot et al. 2021).

  Returns:
    A model; the same arguments give the same object.
  """
  widths = (hidden,) if isinstance(hidden, int | np.integer) else tuple(hidden)
  for width in widths:
    checks.integer("hidden", width, low=1)
  checks.integer("num_classes", num_classes, low=1)
  checks.one_of("activation", activation, ACTIVATIONS)
  return _mlp(tuple(map(int, widths)), int(num_classes), activation)


class _Activation(NamedTuple):
  function: Callable[[Any], Any]
  gain: float  # variance of the weights before it, times fan_in


def _tempered_sigmoid(x: Array) -> jax.Array:
  return 1.58 * jax.nn.sigmoid(3.0 * x) - 0.71


ACTIVATIONS = {
  "relu": _Activation(jax.nn.relu, 2.0),
  "tanh": _Activation(jnp.tanh, 1.0),
  "gelu": _Activation(functools.partial(jax.nn.gelu, approximate=False), 1.0),
  "tempered_sigmoid": _Activation(_tempered_sigmoid, 1.0),
}


@functools.cache
def _logistic(num_classes: int) -> Model:
  def init(key: Key, x_one: Array) -> Params:
    checks.key("key", key)
    return {"w": jnp.zeros((_num_features(x_one), num_classes)), "b": jnp.zeros(num_classes)}

  def apply(params: Params, x: Array) -> jax.Array:
    return _affine(params, _rows(x, params["w"]))

  return Model(init, apply)


@functools.cache
def _mlp(hidden: tuple[int, ...], num_classes: int, activation: str) -> Model:
  act = ACTIVATIONS[activation]
  names = [f"layer_{index}" for index in range(len(hidden) + 1)]

  def init(key: Key, x_one: Array) -> Params:
    checks.key("key", key)
    widths = [_num_features(x_one), *hidden, num_classes]
    shapes = tuple(pairwise(widths))
    gains = (act.gain,) * len(hidden) + (1.0,)
    weights = _initial.scaled_normals(key, shapes, gains)
    return {
      name: {"w": w, "b": jnp.zeros(w.shape[1])} for name, w in zip(names, weights, strict=True)
    }

  def apply(params: Params, x: Array) -> jax.Array:
    h = _rows(x, params[names[0]]["w"])
    for name in names[:-1]:
      h = act.function(_affine(params[name], h))
    return _affine(params[names[-1]], h)

  return Model(init, apply)


def _affine(layer: Params, x: Array) -> jax.Array:
  return x @ layer["w"] + layer["b"]


def _num_features(x_one: Array) -> int:
  size = int(np.prod(np.shape(x_one)))
  checks.require(size > 0, "x_one has no features; pass one example")
  return size


def _rows(x: Array, w: Array) -> Array:
  """[n, d] features of a batch, checked against the first layer's weights."""
  shape = np.shape(x)
  num_features = int(np.prod(shape[1:]))
  if not shape or num_features != w.shape[0]:
    raise checks.ArgumentError(
      f"x has shape {shape}, but the parameters take {w.shape[0]} features an "
      "example; pass a batch [n, ...] of examples like the one given to init"
    )
  return jnp.reshape(x, (shape[0], num_features))
