"""Layers of random programs: the ways in which parameters may meet data.

Each maker draws sizes and returns a `Layer`: parameters, and a function from
activations [batch, length, width] to others. Numbers are of the type that a
bare Python float has in the current mode, so that the same program can be run
in float64 as its own reference.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Layer(NamedTuple):
  """Parameters, `(params, h) -> h`, and the shape [length, width] behind it."""

  params: dict[str, np.ndarray]
  apply: Callable[[Any, Any], Any]
  shape: tuple[int, int]


SHORT = (jnp.bfloat16, jnp.float16)


def wide(h: Any) -> Any:
  """Activations in float32, or in float64 under `jax.enable_x64`."""
  return h.astype(jnp.result_type(float))


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
  scale = 1.0 / np.sqrt(max(1, shape[0] if shape else 1))
  return np.asarray(rng.normal(size=shape) * scale, np.float32)


def _pick(rng: np.random.Generator, *options: Any) -> Any:
  return options[int(rng.integers(len(options)))]


def _width(rng: np.random.Generator) -> int:
  return int(rng.integers(1, 5))


def dense(rng: np.random.Generator, length: int, width: int) -> Layer:
  out = _width(rng)
  form = _pick(rng, "right", "transposed", "left", "reshaped", "einsum", "all")
  shape = {"transposed": (out, width), "left": (out, width), "all": (length, width, 1)}
  w = _normal(rng, *shape.get(form, (width, out)))
  if form == "reshaped":
    w = w.reshape(-1)

  def apply(p: Any, h: Any) -> Any:
    match form:
      case "right":
        return h @ p["w"]
      case "transposed":
        return h @ p["w"].T
      case "left":
        return jnp.swapaxes(p["w"] @ jnp.swapaxes(wide(h), 1, 2), 1, 2)
      case "reshaped":
        return h @ p["w"].reshape(width, out)
      case "einsum":
        return jnp.einsum("bld,de->ble", h, p["w"])
    return jnp.tensordot(h, p["w"], axes=[(1, 2), (0, 1)])[:, None]

  return Layer({"w": w}, apply, (1, 1) if form == "all" else (length, out))


def any_dot(rng: np.random.Generator, length: int, width: int) -> Layer:
  """dot_general with drawn contracting and batch axes, on either side."""
  sizes = {1: length, 2: width}
  roles = {axis: _pick(rng, "contract", "batch", "free") for axis in sizes}
  own = [axis for axis, role in roles.items() if role != "free"]
  out = _width(rng)
  axes = [*own, 0]  # of the parameter; 0 stands for its own free axis
  order = list(rng.permutation(len(axes)))
  axes = [axes[i] for i in order]
  w = _normal(rng, *(sizes.get(axis, out) for axis in axes))
  contract = [axis for axis in own if roles[axis] == "contract"]
  rng.shuffle(contract)
  batch = [axis for axis in own if roles[axis] == "batch"]
  on_data = (tuple(contract), tuple(batch))
  on_param = tuple(tuple(axes.index(axis) for axis in part) for part in on_data)
  parameter_first = bool(rng.integers(2))

  def apply(p: Any, h: Any) -> Any:
    h = wide(h)
    pairs = zip(on_data, on_param, strict=True)
    if parameter_first:
      numbers = tuple((b, a) for a, b in pairs)
      found = lax.dot_general(p["w"], h, numbers)
      people = len(batch) + 1
    else:
      found = lax.dot_general(h, p["w"], tuple(pairs))
      people = len(batch)
    found = jnp.moveaxis(found, people, 0)
    return found.reshape(h.shape[0], 1, -1)[:, :, :6]

  left = {a: s for a, s in sizes.items() if roles[a] != "contract"}
  return Layer({"w": w}, apply, (1, min(6, int(np.prod([*left.values(), out])))))


def convolution(rng: np.random.Generator, length: int, width: int) -> Layer:
  """One spatial axis; stride, dilations, groups and padding are drawn."""
  kernel, out = int(rng.integers(1, 4)), int(rng.integers(1, 4))
  groups = _pick(rng, 1, 1, width)
  out *= groups
  stride, dilation, holes = (_pick(rng, 1, 1, 2) for _ in range(3))
  reach = (kernel - 1) * dilation + 1
  spread = (length - 1) * holes + 1
  low, high = int(rng.integers(-1, 3)), int(rng.integers(-1, 3))
  while spread + low + high < reach:
    high += 1
  layout = _pick(rng, ("NWC", "WIO", "NWC"), ("NWC", "OIW", "NCW"))
  shape = (kernel, width // groups, out)
  if layout[1] == "OIW":
    shape = shape[::-1]
  after = (spread + low + high - reach) // stride + 1

  def apply(p: Any, h: Any) -> Any:
    found = lax.conv_general_dilated(
      wide(h),
      p["k"],
      (stride,),
      [(low, high)],
      lhs_dilation=(holes,),
      rhs_dilation=(dilation,),
      dimension_numbers=layout,
      feature_group_count=groups,
    )
    return found if layout[2] == "NWC" else jnp.swapaxes(found, 1, 2)

  return Layer({"k": _normal(rng, *shape)}, apply, (after, out))


def convolution_2d(rng: np.random.Generator, length: int, width: int) -> Layer:
  """The activations are an image of one channel; or they are the kernel."""
  kernel = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
  role = _pick(rng, "kernel", "kernel", "transpose", "batch groups", "image")
  strides = (_pick(rng, 1, 2), _pick(rng, 1, 2))
  pads = [(int(rng.integers(0, 3)), int(rng.integers(0, 3))) for _ in range(2)]
  shape = (*kernel, 1, 2)
  if role == "image":
    shape = (1, length + 1, width + 1, 1)

  def one(p: Any, h: Any) -> Any:
    match role:
      case "kernel":
        found = lax.conv_general_dilated(
          h[None, :, :, None],
          p["k"],
          strides,
          [(low + 1, high + 1) for low, high in pads],
          dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
      case "transpose":
        found = lax.conv_transpose(
          h[None, :, :, None], p["k"], strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
      case "batch groups":
        found = lax.conv_general_dilated(
          jnp.stack([h, h * h])[:, :, :, None],
          p["k"],
          strides,
          "SAME",
          dimension_numbers=("NHWC", "HWIO", "NHWC"),
          batch_group_count=2,
        )
      case "image":
        found = lax.conv_general_dilated(
          p["k"], h[:, :, None, None], strides, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
    return found.mean((0, 1))

  def apply(p: Any, h: Any) -> Any:
    return jax.vmap(functools.partial(one, p))(wide(h))

  found = jax.eval_shape(
    one,
    {"k": jax.ShapeDtypeStruct(shape, jnp.float32)},
    jax.ShapeDtypeStruct((length, width), jnp.float32),
  )
  return Layer({"k": _normal(rng, *shape)}, apply, found.shape)


def shift_or_scale(rng: np.random.Generator, length: int, width: int) -> Layer:
  shape = _pick(rng, (), (width,), (1, width), (length, 1), (length, width))
  kind = _pick(rng, "add", "subtract", "from", "multiply", "divide", "maximum")
  gain = np.float32(1) + _normal(rng, *shape)
  if kind == "divide":
    gain = np.float32(1.5) + np.abs(gain)

  def apply(p: Any, h: Any) -> Any:
    match kind:
      case "add":
        return h + p["g"]
      case "subtract":
        return h - p["g"]
      case "from":
        return p["g"] - h
      case "multiply":
        return p["g"] * h
      case "divide":
        return h / p["g"]
    return jnp.maximum(h, p["g"])

  return Layer({"g": gain}, apply, (length, width))


def shared(rng: np.random.Generator, length: int, width: int) -> Layer:
  """A matrix used twice or three times, transposed, or as a bias as well."""
  form = _pick(rng, "twice", "there and back", "with bias", "scaled")

  def apply(p: Any, h: Any) -> Any:
    once = jnp.tanh(h @ p["w"])
    match form:
      case "twice":
        return once @ p["w"]
      case "there and back":
        return once @ p["w"].T + h @ p["w"]
      case "with bias":
        return once @ p["w"] + p["w"][0]
    return once @ (2 * p["w"]) - h @ p["w"]

  return Layer({"w": _normal(rng, width, width)}, apply, (length, width))


def sliced(rng: np.random.Generator, length: int, width: int) -> Layer:
  """A part of a larger parameter, taken in one of several ways."""
  out = _width(rng)
  form = _pick(rng, "slice", "stack", "flip", "concatenate", "where")

  def apply(p: Any, h: Any) -> Any:
    w = p["w"]
    match form:
      case "slice":
        return h @ w[0, 1 : 1 + width, :out]
      case "stack":
        return jnp.tanh(h @ w[0, :width]) @ w[1, : out + 1, :out]
      case "flip":
        return h @ w[1, width:0:-1, :out]
      case "concatenate":
        both = jnp.concatenate([w[0, :width, :out], w[1, :width, :out]], 1)
        return (h @ both)[..., :out]
    return h @ jnp.where(w[0] > 0, w[0], w[1])[:width, :out]

  params = {"w": _normal(rng, 2, width + out + 1, out + 1)}
  return Layer(params, apply, (length, out))


def empty(rng: np.random.Generator, length: int, width: int) -> Layer:
  """Parameters without numbers in them, beside one with some."""

  def apply(p: Any, h: Any) -> Any:
    nothing = jnp.tanh(h @ p["none"]) @ p["none"].T
    return h * p["g"] + nothing + jnp.sum(p["zero"])

  params = {
    "none": np.zeros((width, 0), np.float32),
    "zero": np.zeros(0, np.float32),
    "g": _normal(rng, width),
  }
  return Layer(params, apply, (length, width))


def mixed_precision(rng: np.random.Generator, length: int, width: int) -> Layer:
  """Short numbers at the parameter, at the data, in the result, or in all."""
  out, short = _width(rng), _pick(rng, *SHORT)
  form = _pick(rng, "all", "data", "result", "parameter", "bias", "conv")
  numbers = (((2,), (0,)), ((), ()))
  shape = (1, width, out) if form == "conv" else (width, out)

  def apply(p: Any, h: Any) -> Any:
    w = p["w"]
    match form:
      case "all":
        return h.astype(short) @ w.astype(short)
      case "data":
        return lax.dot_general(h.astype(short), w, numbers, preferred_element_type=w.dtype)
      case "result":
        return lax.dot_general(wide(h), w, numbers, preferred_element_type=short)
      case "parameter":
        return h @ w.astype(short)
      case "bias":
        return (h.astype(short)[..., :1] + w[0].astype(short)) * short(3)
    return lax.conv_general_dilated(
      wide(h).astype(short), w.astype(short), (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
    )

  return Layer({"w": _normal(rng, *shape)}, apply, (length, out))


def complex_numbers(rng: np.random.Generator, length: int, width: int) -> Layer:
  def apply(p: Any, h: Any) -> Any:
    turned = (h + 0.5j * jnp.cos(h)) @ p["w"]
    return jnp.real(turned) * jnp.imag(turned)

  out = _width(rng)
  return Layer({"w": _normal(rng, width, out)}, apply, (length, out))
