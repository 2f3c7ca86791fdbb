"""EfficientNet-Lite in plain JAX, with batch normalization folded into the convolutions.

Folded, a normalization is a factor and a shift per channel that training on ImageNet
left behind; no example meets another.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.types import Features, Params

BATCH_NORM_EPSILON = 1e-3
# (repeats, kernel, stride, expansion, channels) of the seven stages of Lite0.
_STAGES = (
  (1, 3, 1, 1, 16),
  (2, 3, 2, 6, 24),
  (2, 5, 2, 6, 40),
  (3, 3, 2, 6, 80),
  (3, 5, 1, 6, 112),
  (4, 5, 2, 6, 192),
  (1, 3, 1, 6, 320),
)
_STEM = 32


class Block(NamedTuple):
  """One inverted bottleneck: expand, depthwise convolution, project."""

  kernel: int
  stride: int
  expansion: int
  inputs: int
  outputs: int


def blocks(width: float, depth: float) -> tuple[Block, ...]:
  """The blocks of the variant with this many times the channels and layers of Lite0."""
  found: list[Block] = []
  inputs = _STEM
  for stage, (repeats, kernel, stride, expansion, channels) in enumerate(_STAGES):
    if 0 < stage < len(_STAGES) - 1:
      repeats = math.ceil(depth * repeats)
    outputs = _rounded(width * channels)
    for repeat in range(repeats):
      found.append(Block(kernel, stride if repeat == 0 else 1, expansion, inputs, outputs))
      inputs = outputs
  return tuple(found)


def fold(tensors: Mapping[str, np.ndarray], plan: Sequence[Block]) -> Params:
  """The published tensors as parameters, normalizations folded in.

  relu6(scale (w * x - mean) / sqrt(var + e) + shift) = relu6((f w) * x + (shift - f mean))

  with f = scale / sqrt(var + e).
  """

  def folded(conv: str, norm: str) -> dict[str, np.ndarray]:
    weight = tensors[f"{conv}.weight"].astype(np.float64)
    scale, shift, mean, variance = (
      tensors[f"{norm}.{part}"].astype(np.float64)
      for part in ("weight", "bias", "running_mean", "running_var")
    )
    factor = scale / np.sqrt(variance + BATCH_NORM_EPSILON)
    # [out, in, h, w] -> [h, w, in, out]
    kernel = (weight * factor[:, None, None, None]).transpose(2, 3, 1, 0)
    return {"kernel": kernel.astype(np.float32), "bias": (shift - factor * mean).astype(np.float32)}

  def pointwise(conv: str, norm: str) -> dict[str, np.ndarray]:
    made = folded(conv, norm)
    return {**made, "kernel": made["kernel"][0, 0]}

  params: dict[str, Any] = {"stem": folded("_conv_stem", "_bn0")}
  for number, block in enumerate(plan):
    name = f"_blocks.{number}"
    layers = {
      "depthwise": folded(f"{name}._depthwise_conv", f"{name}._bn1"),
      "project": pointwise(f"{name}._project_conv", f"{name}._bn2"),
    }
    if block.expansion != 1:
      layers["expand"] = pointwise(f"{name}._expand_conv", f"{name}._bn0")
    params[f"block_{number:02}"] = layers
  params["top"] = pointwise("_conv_head", "_bn1")
  params["logits"] = {"kernel": tensors["_fc.weight"].T.copy(), "bias": tensors["_fc.bias"]}
  return params


def maps(params: Params, x: jax.Array, plan: Sequence[Block]) -> list[jax.Array]:
  """The outputs of each of the blocks in `plan` on normalized images [n, h, w, 3]."""
  x = jax.nn.relu6(_convolve(x, params["stem"], stride=2))
  found = []
  for number, block in enumerate(plan):
    layers = params[f"block_{number:02}"]
    y = x
    if block.expansion != 1:
      y = jax.nn.relu6(_affine(y, layers["expand"]))
    y = jax.nn.relu6(_depthwise(y, layers["depthwise"], stride=block.stride))
    y = _affine(y, layers["project"])
    x = x + y if block.stride == 1 and block.inputs == block.outputs else y
    found.append(x)
  return found


def logits(params: Params, last: jax.Array) -> jax.Array:
  """ImageNet's 1,000 classes from the maps of the last block."""
  top = jax.nn.relu6(_affine(last, params["top"]))
  return _affine(jnp.mean(top, axis=(1, 2)), params["logits"])


def normalize(x: Features, side: int) -> jax.Array:
  """Images [n, h, w, 1 or 3] in [0, 1] as the network was trained: [n, side, side, 3]."""
  shape = np.shape(x)
  checks.require(
    len(shape) == 4 and shape[3] in (1, 3),
    f"x has shape {shape}; pass images [n, h, w, c] with c = 1 for gray ones or 3",
  )
  x = jax.image.resize(jnp.asarray(x, jnp.float32), (shape[0], side, side, shape[3]), "linear")
  return jnp.broadcast_to((x * 255 - 127) / 128, (*x.shape[:3], 3))


def _affine(x: jax.Array, layer: Params) -> jax.Array:
  return x @ layer["kernel"] + layer["bias"]


def _convolve(x: jax.Array, layer: Params, *, stride: int) -> jax.Array:
  numbers = ("NHWC", "HWIO", "NHWC")
  sides = (stride, stride)
  y = jax.lax.conv_general_dilated(x, layer["kernel"], sides, "SAME", dimension_numbers=numbers)
  return y + layer["bias"]


def _depthwise(x: jax.Array, layer: Params, *, stride: int) -> jax.Array:
  """A convolution of each channel by itself, as a sum of shifted images.

  XLA's grouped convolution takes six times as long for the whole network on a CPU.
  """
  kernel = layer["kernel"][:, :, 0]
  size = kernel.shape[0]
  pads = jax.lax.padtype_to_pads(x.shape[1:3], (size, size), (stride, stride), "SAME")
  padded = jnp.pad(x, ((0, 0), *pads, (0, 0)))
  height, width = (stride * (-(-side // stride) - 1) + 1 for side in x.shape[1:3])
  y = layer["bias"]
  for i, j in itertools.product(range(size), repeat=2):
    y = y + padded[:, i : i + height : stride, j : j + width : stride] * kernel[i, j]
  return y


def _rounded(channels: float) -> int:
  """The next multiple of eight that loses at most a tenth."""
  nearest = max(8, int(channels + 4) // 8 * 8)
  return nearest + 8 if nearest < 0.9 * channels else nearest
