"""Layers of random programs, continued: control flow and custom rules."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from helpers.program_layers import Layer, _normal, _pick, _width, wide


def rematerialized(rng: np.random.Generator, length: int, width: int) -> Layer:
  out = _width(rng)
  wrap = _pick(rng, jax.checkpoint, jax.jit, lambda f: jax.checkpoint(jax.jit(f)))

  def apply(p: Any, h: Any) -> Any:
    return wrap(lambda w, b, h: jnp.tanh(h @ w + b))(p["w"], p["b"], h)

  params = {"w": _normal(rng, width, out), "b": _normal(rng, out)}
  return Layer(params, apply, (length, out))


@jax.custom_jvp
def _clipped_product(a: Any, w: Any) -> Any:
  return a @ w


@_clipped_product.defjvp
def _(primals: Any, tangents: Any) -> Any:
  (a, w), (da, dw) = primals, tangents
  return a @ w, 0.5 * (da @ w) + 2.0 * (a @ dw)


@jax.custom_vjp
def _reversed_product(a: Any, w: Any) -> Any:
  return a @ w


def _forward(a: Any, w: Any) -> Any:
  return a @ w, (a, w)


def _backward(kept: Any, g: Any) -> Any:
  a, w = kept
  own = jnp.tensordot(a, jnp.sin(g), axes=[(0, 1), (0, 1)])
  return -g @ w.T, own


_reversed_product.defvjp(_forward, _backward)


def custom_rule(rng: np.random.Generator, length: int, width: int) -> Layer:
  """Gradients that are not the function's own: those count."""
  out = _width(rng)
  rule = _pick(rng, _clipped_product, _reversed_product)

  def apply(p: Any, h: Any) -> Any:
    return jnp.sin(rule(wide(h), p["w"])) @ p["v"]

  params = {"w": _normal(rng, width, out), "v": _normal(rng, out, out)}
  return Layer(params, apply, (length, out))


def scanned(rng: np.random.Generator, length: int, width: int) -> Layer:
  """A recurrence over positions, or a stack of layers in a scan or loop."""
  form = _pick(rng, "positions", "layers", "loop")

  def apply(p: Any, h: Any) -> Any:
    h = wide(h)
    if form == "positions":

      def step(carry: Any, row: Any) -> Any:
        carry = jnp.tanh(carry @ p["w"][0] + row @ p["w"][1])
        return carry, carry

      _, rows = lax.scan(step, h[:, 0], jnp.swapaxes(h, 0, 1))
      return jnp.swapaxes(rows, 0, 1)
    if form == "layers":
      return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), h, p["w"])[0]
    return lax.fori_loop(0, 2, lambda i, c: jnp.sin(c @ p["w"][i]), h)

  return Layer({"w": _normal(rng, 2, width, width)}, apply, (length, width))


def branched(rng: np.random.Generator, length: int, width: int) -> Layer:
  """A branch on the data, and the number of rounds of a loop from it."""
  out = _width(rng)
  form = _pick(rng, "cond", "switch", "while", "where")

  def one(p: Any, h: Any) -> Any:
    score = lax.stop_gradient(h[0, 0])
    match form:
      case "cond":
        return lax.cond(score > 0, lambda: h @ p["w"], lambda: jnp.sin(h) @ p["w"] * 2)
      case "switch":
        index = jnp.clip(score, 0, 2).astype(int)
        ways = [lambda: h @ p["w"], lambda: -h @ p["w"], lambda: h[:, :1] * p["b"]]
        return lax.switch(index, ways)
      case "while":
        scale = lax.while_loop(lambda s: s < 1.0, lambda s: 2 * s, jnp.abs(score) + 0.1)
        return (h * scale) @ p["w"]
    return jnp.where(score > 0, h @ p["w"], p["b"] - jnp.zeros((length, out)))

  def apply(p: Any, h: Any) -> Any:
    return jax.vmap(lambda row: one(p, row))(wide(h))

  params = {"w": _normal(rng, width, out), "b": _normal(rng, out)}
  return Layer(params, apply, (length, out))


def stopped(rng: np.random.Generator, length: int, width: int) -> Layer:
  """A parameter without a gradient, once wholly and once in one of two uses."""
  out = _width(rng)
  partly = bool(rng.integers(2))

  def apply(p: Any, h: Any) -> Any:
    found = h @ lax.stop_gradient(p["w"])
    return found + jnp.tanh(h @ p["w"]) if partly else found

  return Layer({"w": _normal(rng, width, out)}, apply, (length, out))


def looked_up(rng: np.random.Generator, length: int, width: int) -> Layer:
  """Row numbers made of activations: negative ones, and ones outside."""
  height, out = _pick(rng, 3, 255, 256, 257), _width(rng)
  mode = _pick(rng, "clip", "fill", "wrap", "promise_in_bounds", "drop")
  kind = _pick(rng, jnp.int32, jnp.int16, jnp.uint8, jnp.int8)
  if jnp.iinfo(kind).max < height:  # JAX itself refuses those
    kind = jnp.int32

  def apply(p: Any, h: Any) -> Any:
    scores = lax.stop_gradient(wide(h))[..., 0]
    ids = jnp.clip(jnp.nan_to_num(scores * 100), -120, 120)
    ids = ids.astype(jnp.int32)
    if mode == "promise_in_bounds":
      ids = jnp.abs(ids) % min(height, 120)
    elif kind == jnp.uint8:
      ids = jnp.abs(ids)
    ids = ids.astype(kind)
    if mode == "wrap":
      return p["table"][ids] + h[..., :1]
    rows = p["table"].at[ids].get(mode=mode, fill_value=0)
    return jnp.sin(rows) * 2 + h[..., :1]

  return Layer({"table": _normal(rng, height, out)}, apply, (length, out))


def constant_term(rng: np.random.Generator, length: int, width: int) -> Layer:
  """A term of parameters alone, and a parameter that nothing uses."""

  def apply(p: Any, h: Any) -> Any:
    return h @ p["w"] + 0.1 * jnp.sum(jnp.cos(p["w"])) + jnp.sum(p["v"] ** 2)

  params = {"w": _normal(rng, width, width), "v": _normal(rng, 3), "unused": _normal(rng, 2, 2)}
  return Layer(params, apply, (length, width))
