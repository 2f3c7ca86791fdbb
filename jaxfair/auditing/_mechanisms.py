"""Audit any mechanism: run it many times on two neighbors, and compare."""

import functools
from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.auditing._attacks import Attack, discriminant
from jaxfair.auditing._bounds import EpsilonBound, Method, check_bound, epsilon_lower_bound
from jaxfair.types import Key, PyTree

Mechanism = Callable[[Any, jax.Array], Any]


# Of the runs, a quarter teaches the attack, a quarter chooses its threshold,
# and half are counted.
TAUGHT = 1 / 4
SELECTION = 1 / 3  # of those that are left


def audit_mechanism(
  mechanism: Mechanism,
  first: PyTree,
  second: PyTree,
  *,
  num_runs: int,
  delta: float,
  key: Key,
  attack: Attack = discriminant,
  confidence: float = 0.95,
  method: Method = "threshold",
  chunk: int = 256,
) -> EpsilonBound:
  """Bounds a mechanism's epsilon from below by running it on two neighbors.

  Args:
    mechanism: `(input, key) -> pytree of numbers`, traceable by JAX: all that
      the mechanism releases, or less.
    first: one input.
    second: its neighbor. The bound is about this pair, so choose the worst.
    num_runs: runs of each; the bound grows with their logarithm at most.
    delta: delta of the claim that is audited.
    key: for all runs; every run has its own.
    attack: learns from [n, d] outputs of each neighbor how to score an
      output; `discriminant` by default.
    confidence: confidence level of the bound.
    method: see `epsilon_lower_bound`.
    chunk: runs side by side in memory.

  Returns:
    The bound. If it exceeds a claimed epsilon, it refutes the claim at the given
    confidence; otherwise it proves nothing.
  """
  check_bound(delta, confidence, method)
  without, present = attack_scores(
    mechanism, first, second, num_runs=num_runs, key=key, attack=attack, chunk=chunk
  )
  found = epsilon_lower_bound(
    without, present, delta=delta, confidence=confidence, method=method, selection=SELECTION
  )
  return found._replace(num_runs=num_runs)


def attack_scores(
  mechanism: Mechanism,
  first: PyTree,
  second: PyTree,
  *,
  num_runs: int,
  key: Key,
  attack: Attack = discriminant,
  chunk: int = 256,
) -> tuple[np.ndarray, np.ndarray]:
  """Runs a mechanism, teaches an attack on a quarter, scores the other runs.

  For several bounds from the same runs; arguments as in `audit_mechanism`.

  Returns:
    The scores of each neighbor, for `epsilon_lower_bound`.
  """
  checks.require(
    callable(mechanism) and isinstance(mechanism, Hashable),
    "mechanism must be a function (input, key) -> output, or a hashable object "
    "that can be called like one",
  )
  checks.one_key("key", key)
  checks.integer("num_runs", num_runs, low=32, remedy="use thousands")
  checks.integer("chunk", chunk, low=1)
  chunk = min(chunk, num_runs)
  outputs = []
  for data, own in zip((first, second), jax.random.split(key), strict=True):
    keys = jax.random.split(own, num_runs)
    rows = _run(mechanism, data, keys, chunk=chunk)
    outputs.append(np.asarray(rows, dtype=np.float64))
  widths = [output.shape[1] for output in outputs]
  checks.require(
    widths[0] == widths[1],
    f"the mechanism releases {widths[0]} numbers for one neighbor and "
    f"{widths[1]} for the other; the number itself distinguishes them",
  )
  taught = int(TAUGHT * num_runs)
  score = attack(outputs[0][:taught], outputs[1][:taught])
  return score(outputs[0][taught:]), score(outputs[1][taught:])


@functools.partial(jax.jit, static_argnames=("mechanism", "chunk"))
def _run(mechanism: Mechanism, data: PyTree, keys: jax.Array, *, chunk: int) -> jax.Array:
  """[runs, d] outputs as float32 rows, a chunk of runs in memory at a time."""

  def one(key: Key) -> jax.Array:
    leaves = jax.tree.leaves(mechanism(data, key))
    flat = [jnp.ravel(leaf).astype(jnp.float32) for leaf in leaves]
    return jnp.concatenate(flat)

  # Full chunks only: a remainder would be compiled as a program of its own.
  count = keys.shape[0]
  chunks = -(-count // chunk)
  filled = jnp.minimum(jnp.arange(chunks * chunk), count - 1)
  rows = jax.lax.map(jax.vmap(one), keys[filled].reshape(chunks, chunk))
  return rows.reshape(-1, rows.shape[-1])[:count]
