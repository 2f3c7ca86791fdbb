"""Programs with the layers that networks are made of, each with a fast clipping rule.

Every maker returns parameters and `apply(params, x) -> [n, classes]` for x of [n, 6, 4].
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LENGTH, WIDTH = 6, 4


def _normal(*shape: int, seed: int = 0) -> np.ndarray:
  scale = 1 / np.sqrt(shape[-2] if len(shape) > 1 else 1)
  return np.float32(np.random.default_rng([seed, *shape]).normal(size=shape) * scale)


def block(p: Any, h: Any) -> Any:
  """A residual layer with a scale, a shift and two matrices."""
  normed = h * lax.rsqrt(jnp.mean(h**2, axis=-1, keepdims=True) + 1e-3) * p["scale"]
  return h + jnp.sin(normed @ p["w"] + p["b"]) @ p["v"]


def stacked(layers: int) -> dict[str, np.ndarray]:
  return {
    "scale": 1 + _normal(layers, WIDTH),
    "w": _normal(layers, WIDTH, 5),
    "b": _normal(layers, 5),
    "v": _normal(layers, 5, WIDTH, seed=1),
  }


def layers_in_a_scan(wrap: Callable[..., Any] = lambda f: f, **options: Any) -> Any:
  def apply(p: Any, x: Any) -> Any:
    h, _ = lax.scan(lambda h, one: (wrap(block)(one, h), None), x, p, **options)
    return h.sum(1)

  return stacked(3), apply


def recurrence(wrap: Callable[..., Any] = lambda f: f) -> Any:
  """A gated cell: the same matrices in each round, two of them on one input."""
  p = {
    "in": _normal(WIDTH, 5),
    "gate": _normal(WIDTH, 5, seed=1),
    "own": _normal(5, 5),
    "b": _normal(5),
  }

  def apply(p: Any, x: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
      gate = jax.nn.sigmoid(row @ p["gate"] + p["b"])
      h = gate * jnp.sin(row @ p["in"] + h @ p["own"]) + (1 - gate) * h
      return h, h

    last, every = lax.scan(wrap(step), jnp.zeros((x.shape[0], 5)), jnp.swapaxes(x, 0, 1))
    return last + every.sum(0)[:, :5]

  return p, apply


def layers_over_time() -> Any:
  """A stack of recurrences: slices of a leaf in one loop, shared in the other."""
  p = {"in": _normal(2, WIDTH, WIDTH), "own": _normal(2, WIDTH, WIDTH, seed=1)}

  def apply(p: Any, x: Any) -> Any:
    def layer(rows: Any, one: Any) -> Any:
      def step(h: Any, row: Any) -> Any:
        h = jnp.sin(row @ one["in"] + h @ one["own"])
        return h, h

      return lax.scan(step, rows[0], rows)[1], None

    return lax.scan(layer, jnp.swapaxes(x, 0, 1), p)[0].sum(0)

  return p, apply


def scan_of_scans() -> Any:
  p = {"w": _normal(2, 3, WIDTH, WIDTH), "b": _normal(2, 3, WIDTH)}

  def apply(p: Any, x: Any) -> Any:
    def inner(h: Any, one: Any) -> Any:
      return jnp.sin(h @ one["w"].T + one["b"]), None

    h, _ = lax.scan(lambda h, some: lax.scan(inner, h, some), x, p)
    return h.sum(1)

  return p, apply


def used_twice() -> Any:
  """A stacked matrix inside of a loop and outside of it."""
  p = {"w": _normal(3, WIDTH, WIDTH)}

  def apply(p: Any, x: Any) -> Any:
    h, _ = lax.scan(lambda h, w: (jnp.sin(h @ w), None), x, p["w"])
    return (h @ p["w"].reshape(-1, WIDTH).T).sum(1)

  return p, apply


def repeated_slices() -> Any:
  """One bias that is repeated before a loop takes slices of it: no rule, but a gradient."""
  p = {"w": _normal(WIDTH, WIDTH), "b": _normal(WIDTH)}

  def apply(p: Any, x: Any) -> Any:
    many = jnp.broadcast_to(p["b"], (3, WIDTH))
    h, _ = lax.scan(lambda h, b: (jnp.sin(h + b), None), x @ p["w"], many)
    return h.sum(1)

  return p, apply


def constant_in_the_carry() -> Any:
  """A scale that depends on the round alone: vmap would not repeat it for the examples."""
  p = {"b": _normal(3, WIDTH), "w": _normal(WIDTH, WIDTH)}

  def apply(p: Any, x: Any) -> Any:
    def step(carry: Any, b: Any) -> Any:
      h, size = carry
      return (jnp.sin(h + size * b), 0.5 * size), None

    (h, _), _ = lax.scan(step, (x @ p["w"], jnp.ones(WIDTH)), p["b"])
    return h.sum(1)

  return p, apply


def convolution(groups: int, out: int, copies: int = 1, **options: Any) -> Any:
  """On images of 3 x 2 pixels, with the channels and powers of them."""
  fan = copies * WIDTH // groups
  p = {"k": _normal(2, 3, fan, out), "b": _normal(out)}

  def apply(p: Any, x: Any) -> Any:
    images = x.reshape(x.shape[0], 3, 2, WIDTH)
    images = jnp.concatenate([images ** (i + 1) / (i + 1) for i in range(copies)], axis=-1)
    settings = {"window_strides": (1, 1), "padding": [(1, 1), (1, 2)]} | options
    h = lax.conv_general_dilated(
      images,
      p["k"],
      dimension_numbers=("NHWC", "HWIO", "NHWC"),
      feature_group_count=groups,
      **settings,
    )
    return jnp.sin(h + p["b"]).sum((1, 2))

  return p, apply


def depthwise_in_a_scan() -> Any:
  """A loop of rematerialized layers, each with a depthwise convolution."""
  p = {"k": _normal(2, 3, 1, WIDTH), "w": _normal(2, WIDTH, WIDTH)}

  @jax.checkpoint
  def layer(one: Any, h: Any) -> Any:
    seen = lax.conv_general_dilated(
      h, one["k"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=WIDTH
    )
    return h + jnp.sin(seen @ one["w"])

  def apply(p: Any, x: Any) -> Any:
    return lax.scan(lambda h, one: (layer(one, h), None), x, p)[0].sum(1)

  return p, apply


def heads(parameter_first: bool) -> Any:
  """A matrix for each head."""
  p = {"w": _normal(2, 2, 3), "b": _normal(2, 3)}

  def apply(p: Any, x: Any) -> Any:
    split = x.reshape(*x.shape[:2], 2, 2)
    if parameter_first:
      h = jnp.einsum("hde,blhd->bhle", p["w"], split).swapaxes(1, 2)
    else:
      h = jnp.einsum("blhd,hde->blhe", split, p["w"])
    return jnp.sin(h + p["b"]).sum((1, 2))

  return p, apply


PROGRAMS: dict[str, Callable[[], Any]] = {
  "layers in a scan": layers_in_a_scan,
  "layers in a scan, backwards": lambda: layers_in_a_scan(reverse=True, unroll=2),
  "rematerialized layers in a scan": lambda: layers_in_a_scan(jax.checkpoint),
  "rematerialized recurrence": lambda: recurrence(jax.checkpoint),
  "layers over time": layers_over_time,
  "scan of scans": scan_of_scans,
  "used twice": used_twice,
  "a constant in the carry": constant_in_the_carry,
  "depthwise": lambda: convolution(WIDTH, WIDTH),
  "depthwise, two outputs": lambda: convolution(WIDTH, 2 * WIDTH, window_strides=(2, 1)),
  "groups": lambda: convolution(2, 6),
  "many channels": lambda: convolution(1, 3, copies=8, window_strides=(1, 2)),
  "transposed": lambda: convolution(1, 3, lhs_dilation=(2, 2)),
  "transposed groups": lambda: convolution(2, 4, lhs_dilation=(1, 2), rhs_dilation=(1, 2)),
  "dilated depthwise": lambda: convolution(WIDTH, WIDTH, rhs_dilation=(2, 1)),
  "depthwise in a scan": depthwise_in_a_scan,
  "heads": lambda: heads(parameter_first=False),
  "heads, weights first": lambda: heads(parameter_first=True),
}
# Right, but not fast: a warning names the parameter.
SLOW: dict[str, Callable[[], Any]] = {"repeated slices": repeated_slices}
