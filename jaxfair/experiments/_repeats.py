"""One experiment on many random splits of a data set."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, data, tree
from jaxfair.data import _scaling
from jaxfair.experiments._study import Context, Parts
from jaxfair.training._ensembles import default_chunk, map_members
from jaxfair.types import Examples, PyTree

Measure = Callable[[Parts, jax.Array], Any]


def repeat(
  measure: Measure,
  dataset: data.Dataset,
  *,
  seeds: int,
  key: jax.Array,
  split_key: jax.Array,
  fractions: Sequence[float] = (0.75, 0.25),
  scale: _scaling.Scale = "standard",
  chunk: int | None = None,
) -> PyTree:
  """Measures something on fresh splits, once per seed: split, train, evaluate.

  Each seed has its own split, a scaler fitted on its own training part, and
  its own key. Only row numbers and scalers are kept per seed; the features
  are looked up and scaled inside the program, a few seeds at a time.

  Args:
    measure: `(parts, key) -> pytree of numbers`; traced once.
    dataset: what is split.
    seeds: number of repetitions.
    key: what `measure` gets is derived from it.
    split_key: of the splits. Experiments that are to be compared seed by seed
      use the same one.
    fractions: sizes of the parts; the first is the training part.
    scale: see `data.fit_scaler`.
    chunk: seeds side by side.

  Returns:
    What `measure` returns, with a leading axis of seeds.
  """
  checks.integer("seeds", seeds, low=1)
  splits: list[tuple[np.ndarray, ...]] = []
  scalers: list[_scaling.Scaler] = []
  x = np.asarray(dataset.examples.x)
  for seed in range(seeds):
    rows = data.split_rows(
      dataset.size, fractions, key=jax.random.fold_in(split_key, seed), unit=dataset.unit
    )
    splits.append(rows)
    scalers.append(data.fit_scaler(x[rows[0]], scale))
  # Parts kept together by person differ a little in size between seeds.
  sizes = [min(map(len, part)) for part in zip(*splits, strict=True)]
  stacked = [
    np.stack([part[:size] for part in parts]).astype(np.int32)
    for size, parts in zip(sizes, zip(*splits, strict=True), strict=True)
  ]
  keys = jax.random.split(key, seeds)

  def one(own: PyTree, everybody: Examples) -> PyTree:
    key, rows, scaler = own
    parts = []
    for part in rows:
      people = everybody.take(part)
      parts.append(people._replace(x=scaler.apply(people.x)))
    return measure(tuple(parts), key)

  people = jax.tree.map(jnp.asarray, dataset.examples)
  per_member = (keys, stacked, tree.stack(scalers))
  return map_members(one, per_member, people, chunk=chunk or default_chunk())


def splits(
  people: data.Dataset, sizes: Sequence[float], count: int, context: Context
) -> Iterator[tuple[Parts, jax.Array]]:
  """Yields random splits one after the other, each with its own key.

  For experiments whose repetitions are large: see `repeat` for small ones.

  Args:
    people: who is split.
    sizes: of the parts; the scaler is fitted on the first.
    count: number of splits.
    context: cells of a run share the splits, but not the keys.
  """
  for split in range(count):
    key = jax.random.fold_in(context.shared_key, split)
    parts = data.prepare(people, sizes, key=key).parts
    own = jax.random.fold_in(context.key, split)
    yield tuple(jax.tree.map(jnp.asarray, part) for part in parts), own
