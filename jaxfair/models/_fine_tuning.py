"""Training a part of a network: the rest is fixed and public, and gets no noise.

A private trainer clips and adds noise to the gradients of the parameters that `init` returns. The
models here return those that are trained, and close over the others.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxfair import checks
from jaxfair.types import Array, Key, Model, Params


def frozen(model: Model, params: Params, *, trainable: Sequence[str]) -> Model:
  """The model with all parameters fixed except those named.

  Args:
    model: any model.
    params: all of its parameters; the trained ones start here. They must not depend on the
      private data: weights learned on public data, or drawn by `model.init`.
    trainable: names of parameters or of layers, such as "head" or "features/block_14".

  Returns:
    A model whose parameters are a dict from names to the trained arrays.
  """
  leaves, structure = _named(params)
  chosen = _chosen("trainable", trainable, leaves)

  def init(key: Key, x_one: Array) -> Params:
    del key, x_one
    return {name: leaves[name] for name in chosen}

  def apply(trained: Params, x: Array) -> jax.Array:
    return model.apply(structure({**leaves, **trained}), x)

  return Model(init, apply)


def low_rank(
  model: Model,
  params: Params,
  *,
  layers: Sequence[str],
  rank: int = 4,
  trainable: Sequence[str] = (),
) -> Model:
  """The model with low-rank changes of some matrices as its parameters (LoRA).

  w' = w + a b,  a [d_in, rank] drawn once, b [rank, d_out] zero at the start

  Args:
    model: any model.
    params: all of its parameters; see `frozen`.
    layers: names of matrices, or of layers with matrices.
    rank: rank of each change.
    trainable: names of parameters that are also trained in full, such as "head".

  Returns:
    A model whose parameters are a dict from names to `{"a": ..., "b": ...}` or arrays. At its
    start it equals the given model.

  Reference:
    Hu et al. 2022, LoRA; under DP-SGD: Yu et al. 2022.
  """
  checks.integer("rank", rank, low=1)
  leaves, structure = _named(params)
  full = _chosen("trainable", trainable, leaves) if trainable else []
  chosen = [name for name in _chosen("layers", layers, leaves) if leaves[name].ndim == 2]
  chosen = [name for name in chosen if name not in full]
  checks.require(bool(chosen), f"layers={list(layers)} has no matrix that is not trained in full")

  def init(key: Key, x_one: Array) -> Params:
    del x_one
    started: dict[str, Any] = {name: leaves[name] for name in full}
    for number, name in enumerate(chosen):
      inputs, outputs = leaves[name].shape
      drawn = jax.random.normal(jax.random.fold_in(key, number), (inputs, rank))
      started[name] = {"a": drawn / jnp.sqrt(inputs), "b": jnp.zeros((rank, outputs))}
    return started

  def apply(trained: Params, x: Array) -> jax.Array:
    changed = {name: leaves[name] + trained[name]["a"] @ trained[name]["b"] for name in chosen}
    return model.apply(structure({**leaves, **trained, **changed}), x)

  return Model(init, apply)


def _named(params: Params) -> tuple[dict[str, jax.Array], Callable[[dict[str, Any]], Params]]:
  """The leaves by name, and what puts them together again."""
  paths, structure = jax.tree_util.tree_flatten_with_path(params)
  names = [jax.tree_util.keystr(path, simple=True, separator="/") for path, _ in paths]
  leaves = {name: jnp.asarray(leaf) for name, (_, leaf) in zip(names, paths, strict=True)}
  return leaves, lambda values: jax.tree.unflatten(structure, [values[name] for name in names])


def _chosen(argument: str, wanted: Sequence[str], leaves: dict[str, jax.Array]) -> list[str]:
  checks.require(
    not isinstance(wanted, str) and len(wanted) > 0,
    f"{argument}={wanted!r} must be a list of names, such as ['head']",
  )
  for prefix in wanted:
    checks.require(
      any(_under(name, prefix) for name in leaves),
      f"{argument}={prefix!r} names no parameter; there are {', '.join(list(leaves)[:6])}, ...",
    )
  return [name for name in leaves if any(_under(name, prefix) for prefix in wanted)]


def _under(name: str, prefix: str) -> bool:
  return name == prefix or name.startswith(prefix.rstrip("/") + "/")
