"""Attacks that leave an example alone once it is broken.

Most pairs of epsilon and example break in the first steps. Those that survive
are gathered into ever smaller batches, of a few sizes only, so that a handful
of compiled programs serves.
"""

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import tree
from jaxfair.robustness.attacks import Attack, Best, State, judge_of
from jaxfair.types import Examples, Model, Params, PerExampleLoss

_SMALLEST = 64  # rows; smaller batches cost as much


class _Rows(NamedTuple):
  """Pairs of epsilon and example, each with its state."""

  x: Any
  y: Any
  epsilon: Any


def attack_survivors(
  model: Model,
  loss: PerExampleLoss,
  how: Attack,
  params: Params,
  examples: Examples,
  epsilons: np.ndarray,
  key: jax.Array,
) -> Best:
  """As `attacking.attack`, for one batch: [E, n, ...] on the host.

  A push that breaks an example within one epsilon is also one within every
  larger epsilon, so success never falls along the epsilons.
  """
  count, size = len(epsilons), examples.size
  everybody = np.tile(np.arange(size), count)
  rows = _Rows(
    jnp.asarray(examples.x)[everybody],
    jnp.asarray(examples.y)[everybody],
    jnp.asarray(np.repeat(epsilons, size), jnp.float32),
  )
  keys = jax.random.split(key, count * size)
  state = _begin(model, loss, how, params, rows, keys)
  found = jax.tree.map(np.array, state.best)
  active = np.arange(count * size)
  for _ in range(how.steps):
    state = _advance(model, loss, how, params, state, rows)
    wrong = np.asarray(state.best.wrong)[: len(active)]
    left = int(np.sum(~wrong))
    if left <= len(wrong) // 2 and len(wrong) > _SMALLEST:
      _record(found, active, state.best)
      kept = np.flatnonzero(~wrong)
      active = active[kept]
      if not left:
        break
      # Filled up with the last survivor to a size that was compiled for.
      filled = np.pad(kept, (0, _bucket(left) - left), mode="edge")
      state, rows = tree.take((state, rows), filled)
  if len(active):
    _record(found, active, _end(model, loss, how, params, state, rows))
  shaped = jax.tree.map(
    lambda leaf: leaf.reshape(count, size, *leaf.shape[1:]), found
  )
  return _carried(shaped, epsilons)


def _record(found: Best, active: np.ndarray, best: Best) -> None:
  for kept, new in zip(found, best, strict=True):
    kept[active] = np.asarray(new)[: len(active)]


def _bucket(rows: int) -> int:
  return max(_SMALLEST, 1 << (rows - 1).bit_length())


def _carried(found: Best, epsilons: np.ndarray) -> Best:
  """Successes of smaller epsilons, for the larger ones that failed."""
  order = np.argsort(epsilons, kind="stable")
  for smaller, larger in itertools.pairwise(order):
    taken = found.wrong[smaller] & ~found.wrong[larger]
    for leaf in found:
      leaf[larger][taken] = leaf[smaller][taken]
  return found


def _each(function: Any, *trees: Any) -> Any:
  """The function of batches of one, over rows, with a batch axis of one."""
  batched = jax.tree.map(lambda leaf: leaf[:, None], trees)
  out = jax.vmap(function)(*batched)
  return jax.tree.map(lambda leaf: leaf[:, 0], out)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _begin(
  model: Model, loss: PerExampleLoss, how: Attack, params: Params, rows: _Rows,
  keys: jax.Array,
) -> State:  # fmt: skip
  return _each(
    lambda own, key: how.begin(
      judge_of(model, loss, params, own.y), own.x, own.epsilon[0], key[0]
    ),
    rows,
    keys,
  )


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _advance(
  model: Model, loss: PerExampleLoss, how: Attack, params: Params,
  state: State, rows: _Rows,
) -> State:  # fmt: skip
  return _each(
    lambda state, own: how.advance(
      judge_of(model, loss, params, own.y), state, own.x, own.epsilon[0]
    ),
    state,
    rows,
  )


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _end(
  model: Model, loss: PerExampleLoss, how: Attack, params: Params,
  state: State, rows: _Rows,
) -> Best:  # fmt: skip
  return _each(
    lambda state, own: how.end(judge_of(model, loss, params, own.y), state),
    state,
    rows,
  )
