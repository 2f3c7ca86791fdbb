"""The models that can be reasoned about: softmax regression, ReLU networks."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.types import Params


class Network(NamedTuple):
  """Affine layers with ReLU between them; one layer is a linear model.

  With two classes the last layer gives one number, the margin of class 1 over
  class 0; with more, a logit per class.

  Attributes:
    layers: (weights [in, out], bias [out]) of each layer.
  """

  layers: tuple[tuple[Any, Any], ...]

  @property
  def is_linear(self) -> bool:
    """Whether there is no hidden layer."""
    return len(self.layers) == 1

  @property
  def is_binary(self) -> bool:
    """Whether the output is one margin."""
    return int(np.shape(self.layers[-1][1])[0]) == 1


def as_network(params: Params) -> Network:
  """Reads the parameters of `models.logistic` or a ReLU `models.mlp`.

  Args:
    params: `{"w", "b"}`, or `{"layer_0": {"w", "b"}, ...}`.

  Returns:
    The network.
  """
  listed: list[Any]
  if isinstance(params, dict) and set(params) == {"w", "b"}:
    listed = [params]
  elif isinstance(params, dict) and "layer_0" in params:
    listed = [params[f"layer_{i}"] for i in range(len(params))]
  else:
    raise checks.ArgumentError(
      "params are not those of models.logistic or models.mlp; personalized "
      "disclosure reads the layers of these two"
    )
  layers = [(jnp.asarray(p["w"]), jnp.asarray(p["b"])) for p in listed]
  weights, bias = layers[-1]
  if bias.shape[0] == 2:
    layers[-1] = (weights[:, 1:] - weights[:, :1], bias[1:] - bias[:1])
  return Network(tuple(layers))


def after_first(network: Network, pre_activation: jax.Array) -> jax.Array:
  """The outputs, from the first layer's pre-activations."""
  value = pre_activation
  for weights, bias in network.layers[1:]:
    value = jax.nn.relu(value) @ weights + bias
  return value


def labels(outputs: jax.Array) -> jax.Array:
  """The class of margins or logits; ties go to the lower class."""
  if outputs.shape[-1] == 1:
    return (outputs[..., 0] > 0).astype(jnp.int32)
  return jnp.argmax(outputs, axis=-1).astype(jnp.int32)
