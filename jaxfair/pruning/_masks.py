"""Masks that remove weights by magnitude.

A mask is a tree of the parameters' structure that holds True where a number
is kept. A pruned network is plain parameters with zeros: whatever takes
parameters takes it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, tree
from jaxfair.types import Array, ArrayLike, Params, PyTree

Masks = Any  # a pytree of boolean arrays
Scope = Literal["global", "layer"]
Unit = Literal["weight", "filter"]
Norm = Literal["l1", "l2"]
Prunable = Callable[[tuple[Any, ...], Any], bool]  # (path, leaf) -> bool

SCOPES = ("global", "layer")
UNITS = ("weight", "filter")
NORMS = ("l1", "l2")
_NO_RATE = "0 removes nothing, and 1 would remove all"


def magnitude_masks(
  params: Params,
  rate: float,
  *,
  scope: Scope = "global",
  unit: Unit = "weight",
  norm: Norm = "l2",
  prunable: Prunable | None = None,
) -> Masks:
  """Masks that remove the smallest weights, or the smallest filters.

  Of n candidates exactly floor(rate n) are removed, with ties broken by position. Biases
  and the scales of normalizations are not candidates. Removing a filter also removes its bias,
  so that it does not output a constant.

  Args:
    params: the trained parameters.
    rate: share P of the candidates to remove, in [0, 1).
    scope: "global" ranks all layers together, "layer" each by itself.
    unit: "weight", or "filter": all weights into one output channel of a
      convolution.
    norm: of a filter, "l1" or "l2"; ranked globally, it is per weight (a mean,
      a root mean square), or the layers with few inputs would go first.
      The largest filter of a layer always stays.
    prunable: `(path, leaf) -> bool` chooses the arrays; by default all with
      two or more axes for weights, and with four for filters.

  Returns:
    Masks; True is kept.

  Reference:
    Thesis chapter 5, section 5.2, step 2.
  """
  return tree.take(
    masks_at_rates(params, (rate,), scope=scope, unit=unit, norm=norm, prunable=prunable), 0
  )


def masks_at_rates(
  params: Params,
  rates: Sequence[float],
  *,
  scope: Scope = "global",
  unit: Unit = "weight",
  norm: Norm = "l2",
  prunable: Prunable | None = None,
) -> Masks:
  """`magnitude_masks` at many rates, with one ranking of the weights.

  Returns:
    Masks with a leading axis R; a higher rate keeps a part of what a lower
    one keeps.
  """
  shares = check_rates(rates)
  checks.one_of("scope", scope, SCOPES)
  checks.one_of("unit", unit, UNITS)
  checks.one_of("norm", norm, NORMS)
  paths, treedef = jax.tree_util.tree_flatten_with_path(params)
  # Known weights are sorted on the host, where no program need be compiled.
  xp = np if checks.concrete(params) else jnp
  leaves = [xp.asarray(leaf) for _, leaf in paths]
  axes = 4 if unit == "filter" else 2
  chosen = [
    index
    for index, (path, leaf) in enumerate(paths)
    if (prunable(path, leaf) if prunable else np.ndim(leaf) >= axes)
  ]
  what = "convolution kernels" if unit == "filter" else "weight matrices"
  checks.require(
    bool(chosen),
    f"params has no {what} to prune by {unit}; use unit='weight', or "
    "pass prunable=(path, leaf) -> bool",
  )
  scores = [_scores(xp, leaves[i], unit, norm, scope) for i in chosen]
  ranked = (_ranks_together if scope == "global" else _ranks)(xp, scores)
  kept = {
    index: _keep(xp, leaves[index], ranks, _removed(shares, count), unit)
    for index, (ranks, count) in zip(chosen, ranked, strict=True)
  }
  if unit == "filter":
    kept |= _biases(paths, leaves, kept)
  whole = [
    kept[i] if i in kept else xp.ones((len(shares), *leaf.shape), bool)
    for i, leaf in enumerate(leaves)
  ]
  return jax.tree.unflatten(treedef, whole)


def apply_masks(params: Params, masks: Masks) -> Params:
  """Sets parameters to zero where the masks are False.

  Args:
    params: plain parameters.
    masks: of the same structure and shapes.
  """
  check_masks(params, masks)
  return jax.tree.map(lambda leaf, keep: jnp.where(keep, leaf, jnp.zeros_like(leaf)), params, masks)


def check_masks(params: Params, masks: Masks) -> None:
  """Raises if the masks do not fit the parameters."""
  check_like(params, masks, "masks", "make them with magnitude_masks from these")
  for path, mask in jax.tree_util.tree_flatten_with_path(masks)[0]:
    checks.require(
      jnp.result_type(mask) == jnp.bool_,
      f"masks{jax.tree_util.keystr(path)} holds {jnp.result_type(mask)}; use True for what is kept",
    )


def check_like(
  params: Params, other: PyTree, name: str, remedy: str, *, leading: tuple[int, ...] = ()
) -> None:
  """Raises if a tree differs from the parameters in structure or shapes.

  `leading` are axes before the parameters' own.
  """
  own: Any = jax.tree.structure(params)
  found: Any = jax.tree.structure(other)
  checks.require(own == found, f"{name} has the structure {found}, the parameters {own}; {remedy}")
  pairs = zip(jax.tree_util.tree_flatten_with_path(params)[0], jax.tree.leaves(other), strict=True)
  for (path, leaf), value in pairs:
    asked = (*leading, *np.shape(leaf))
    checks.require(
      np.shape(value) == asked,
      f"{name}{jax.tree_util.keystr(path)} has shape {np.shape(value)} in "
      f"place of {asked}; {remedy}",
    )


def check_rates(rates: ArrayLike) -> np.ndarray:
  """[R] rates as float64; refuses those outside of [0, 1)."""
  checks.require(
    checks.concrete(rates),
    "rates must not be traced: the number of weights to remove is computed on the host",
  )
  checks.number("rate", rates, low=0.0, high=1.0, open_high=True, remedy=_NO_RATE)
  shares = np.asarray(rates, np.float64)
  checks.require(
    shares.ndim == 1 and shares.size > 0, "rates must be a list of at least one number"
  )
  return shares


def _removed(shares: np.ndarray, count: int) -> np.ndarray:
  """[R] how many of the candidates go; never all of them."""
  # 0.29 * 100 is 28.999... in binary: what is meant is 29.
  return np.floor(shares * count + 1e-9).astype(np.int32)


def _scores(xp: Any, kernel: Array, unit: str, norm: str, scope: str) -> Array:
  """The scores that rank candidates: one number per weight or per filter."""
  size = xp.abs(kernel)
  if unit == "weight":
    return size
  flat = size.reshape(-1, kernel.shape[-1])
  if norm == "l1":
    found = xp.mean(flat, axis=0)
  else:
    found = xp.sqrt(xp.mean(xp.square(flat), axis=0))
  if scope == "layer":
    return found
  # A layer without filters would cut the network in two.
  largest = xp.arange(found.size) == xp.argmax(found)
  return xp.where(largest, xp.inf, found)


def _ranks(xp: Any, scores: list[Any]) -> list[tuple[Any, int]]:
  """Each array's ranks from the smallest, and how many they are among."""
  return [(_rank(xp, s.reshape(-1)).reshape(s.shape), s.size) for s in scores]


def _ranks_together(xp: Any, scores: list[Any]) -> list[tuple[Any, int]]:
  sizes = [score.size for score in scores]
  ranks = _rank(xp, xp.concatenate([score.reshape(-1) for score in scores]))
  parts = xp.split(ranks, np.cumsum(sizes)[:-1])
  return [
    (part.reshape(score.shape), sum(sizes)) for part, score in zip(parts, scores, strict=True)
  ]


def _rank(xp: Any, values: Array) -> Array:
  """Positions in ascending order, one each whatever the ties.

  What is infinite comes after everything that could be removed.
  """
  ranks = xp.argsort(xp.argsort(values, stable=True), stable=True)
  return xp.where(xp.isinf(values), values.size, ranks)


def _keep(xp: Any, kernel: Array, ranks: Array, removed: np.ndarray, unit: str) -> Array:
  """[R, ...] masks of one kernel."""
  kept = ranks >= removed.reshape(-1, *(1,) * ranks.ndim)
  if unit == "weight":
    return kept
  shape = (len(removed), *(1,) * (kernel.ndim - 1), kernel.shape[-1])
  return xp.broadcast_to(kept.reshape(shape), (len(removed), *kernel.shape))


def _biases(paths: list[Any], leaves: list[Any], kept: dict[int, Any]) -> dict[int, Any]:
  """[R, channels] masks of the biases next to the kernels."""
  found = {}
  for kernel, mask in kept.items():
    home, channels = paths[kernel][0][:-1], leaves[kernel].shape[-1]
    for index, (path, _) in enumerate(paths):
      if path[:-1] == home and leaves[index].shape == (channels,):
        found[index] = mask.reshape(mask.shape[0], -1, channels)[:, 0]
  return found
