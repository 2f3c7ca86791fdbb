"""Random programs: data of some type, one to four layers and a loss.

All is drawn from the program's number, with several sets of people and
parameters for each: compiling a program takes longer than running it.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from helpers import program_flow as flow
from helpers import program_layers as layers

LAYERS = {
  "dense": layers.dense,
  "any dot": layers.any_dot,
  "convolution": layers.convolution,
  "convolution 2d": layers.convolution_2d,
  "shift or scale": layers.shift_or_scale,
  "shared": layers.shared,
  "sliced": layers.sliced,
  "empty": layers.empty,
  "mixed precision": layers.mixed_precision,
  "complex": layers.complex_numbers,
  "remat": flow.rematerialized,
  "custom rule": flow.custom_rule,
  "scan": flow.scanned,
  "branch": flow.branched,
  "stop gradient": flow.stopped,
  "rows": flow.looked_up,
  "constant term": flow.constant_term,
}
# Not tanh: where it is flat, float32 has lost its derivative.
BENDS = (lambda h: h, jnp.sin, jax.nn.softplus, lambda h: h * jax.lax.rsqrt(1 + h * h))
HEIGHTS = (3, 127, 128, 255, 256, 257, 300, 65535, 65536, 65537)
IDS = ("uint8", "int8", "uint16", "int16", "int32", "uint32")


class Program(NamedTuple):
  """What `draw` made of a number."""

  features: tuple[str, ...]
  apply: Callable[[Any, Any], Any]
  options: dict[str, Any]
  cases: tuple["Case", ...]
  short: bool  # whether numbers shorter than float32 occur


class Case(NamedTuple):
  """People and parameters; the clip bound is a multiple of the median norm."""

  params: dict[str, Any]
  x: np.ndarray
  tightness: float


def draw(number: int, cases: int = 4) -> Program:
  """The program of that number; the same on every machine."""
  rng = np.random.default_rng([number, 20261117])
  count, length, width = (int(rng.integers(1, 5)) for _ in range(3))
  kind = str(rng.choice(["float32", "bfloat16", "float16", "ids"], p=[0.5, 0.1, 0.1, 0.3]))
  features, made = [], []
  if kind == "ids":
    first, people, kind = _ids(rng, count, length, width)
    made.append(first)
    features.append("table")
  else:
    features += ["broken"] if rng.random() < 0.25 else []
    people = functools.partial(_rows, (count, length, width), kind, "broken" in features)
  shape = (length, width)
  for _ in range(int(rng.integers(1, 4))):
    name = str(rng.choice(list(LAYERS)))
    made.append(LAYERS[name](rng, *shape))
    features.append(name)
    shape = made[-1].shape
  bends = [int(rng.integers(len(BENDS))) for _ in made]
  ending = int(rng.integers(3))

  def apply(params: Any, x: Any) -> Any:
    h = x
    for i, (layer, bend) in enumerate(zip(made, bends, strict=True)):
      h = layer.apply(params[f"layer {i}"], h)
      h = BENDS[bend](h)
    h = layers.wide(h)
    if ending == 0:
      return h.sum((1, 2))
    if ending == 1:
      return jax.nn.logsumexp(h, axis=(1, 2))
    return 0.5 * jnp.mean((h - 1) ** 2, axis=(1, 2))

  options: dict[str, Any] = {"per_layer": bool(rng.random() < 0.3)}
  if rng.random() < 0.3:
    options |= {"method": "vmap", "microbatch": int(rng.integers(1, 4))}
    features.append("micro-batches")
  if options["per_layer"]:
    features.append("per layer")
  features.append(f"{kind} data")
  params = {f"layer {i}": layer.params for i, layer in enumerate(made)}
  short = kind in ("bfloat16", "float16") or "mixed precision" in features
  return Program(
    tuple(features), apply, options, tuple(_case(rng, params, people) for _ in range(cases)), short
  )


def _case(rng: np.random.Generator, params: Any, people: Any) -> Case:
  """Parameters change places and sizes, but not signs."""

  def other(value: np.ndarray) -> np.ndarray:
    mixed = rng.permutation(value.ravel()).reshape(value.shape)
    return np.asarray(mixed * rng.uniform(0.5, 2.0), np.float32)

  tightness = float(rng.choice([0.1, 0.7, 3.0]))
  return Case(jax.tree.map(other, params), people(rng), tightness)


def _rows(shape: tuple[int, ...], kind: str, broken: bool, rng: np.random.Generator) -> np.ndarray:
  x = rng.normal(size=shape).astype(jnp.dtype(kind))
  if broken:
    with np.errstate(over="ignore"):
      x[0].flat[0] = rng.choice([np.nan, np.inf, -np.inf, 1e30])
  return x


def _ids(
  rng: np.random.Generator, count: int, length: int, width: int
) -> tuple[layers.Layer, Callable[[np.random.Generator], np.ndarray], str]:
  """A table looked up by ids of any type, at the edges of type and table."""
  height, kind = int(rng.choice(HEIGHTS)), str(rng.choice(IDS))
  mode = str(rng.choice(["clip", "fill", "promise_in_bounds", "index"]))
  info = np.iinfo(kind)
  edges = [0, 1, height - 1, height, 127, 255, 256, 65535, info.max]
  if mode == "promise_in_bounds":
    edges = [v for v in edges if v < height]
  elif info.min < 0:
    edges += [-1, -height, -height - 1, int(info.min)]
  edges = [v for v in edges if info.min <= v <= info.max]
  table = np.asarray(rng.normal(size=(height, width)), np.float32)
  numbers = jax.lax.GatherDimensionNumbers(
    offset_dims=(2,), collapsed_slice_dims=(0,), start_index_map=(0,)
  )

  def apply(p: Any, ids: Any) -> Any:
    if mode == "index":  # which JAX refuses for ids that cannot hold the height
      return p["table"][ids if info.max >= height else ids.astype(jnp.int32)]
    return jax.lax.gather(p["table"], ids[..., None], numbers, (1, width), mode=mode, fill_value=0)

  def people(rng: np.random.Generator) -> np.ndarray:
    return rng.choice(edges, size=(count, length)).astype(kind)

  return layers.Layer({"table": table}, apply, (length, width)), people, kind
