"""Splits people into parts: training and test, or one part per teacher."""

from collections.abc import Sequence

import jax
import numpy as np

from jaxfair import checks
from jaxfair.types import Examples, Key

MIN_PART = 10  # fewer examples than this hardly train a teacher


def split(
  examples: Examples, fractions: Sequence[float], *, key: Key, unit: np.ndarray | None = None
) -> tuple[Examples, ...]:
  """Splits people at random into disjoint parts.

  Args:
    examples: the people.
    fractions: the size of each part: a fraction of everyone (a float), or a
      number of examples (an int). What is left over is in no part.
    key: used once.
    unit: [n] ids; rows with one id stay together in one part, whose size then
      is as near to the wanted one as whole units allow.

  Returns:
    One `Examples` per fraction, in shuffled order.
  """
  size = checks.same_length(**examples._asdict())
  rows = split_rows(size, fractions, key=key, unit=unit)
  return tuple(examples.take(part) for part in rows)


def split_rows(
  size: int, fractions: Sequence[float], *, key: Key, unit: np.ndarray | None = None
) -> tuple[np.ndarray, ...]:
  """The row numbers of each part of `split`."""
  checks.key("key", key)
  ends = _ends(size, fractions)
  if unit is None:
    parts = np.split(shuffled(key, size)[: ends[-1]], ends[:-1])
  else:
    key_units, key_rows = jax.random.split(key)
    order = shuffled(key_rows, size)
    part_of = _parts_by_unit(np.asarray(unit), size, ends, key_units)[order]
    parts = [order[part_of == p] for p in range(len(ends))]
  empty = [p for p, part in enumerate(parts) if len(part) == 0]
  if empty:
    whom = "examples" if unit is None else "people (units)"
    many = size if unit is None else len(np.unique(unit))
    raise checks.ArgumentError(
      f"fractions={tuple(fractions)} leaves part {empty[0]} empty with {many} "
      f"{whom}; ask for fewer or larger parts"
    )
  return tuple(parts)


def partition(
  examples: Examples, num_parts: int, *, key: Key, allow_tiny_parts: bool = False
) -> Examples:
  """Assigns people at random to disjoint parts of equal size, one part per teacher.

  Args:
    examples: the people; those left over by the division are dropped at
      random.
    num_parts: number of parts, k.
    key: used once.
    allow_tiny_parts: allow parts of fewer than 10 examples.

  Returns:
    Examples with leaves [k, n // k, ...].

  Privacy:
    The assignment depends on the key and on n only, never on x, y or the
    group, so that replacing one person, or changing their label or group,
    changes one part. A split stratified by the group would move people
    between parts when one membership changes, and so change two teachers;
    that breaks SF-PATE's guarantee. The number of people is public.
  """
  checks.key("key", key)
  checks.integer("num_parts", num_parts, low=1)
  size = checks.same_length(**examples._asdict())
  each = size // num_parts
  checks.require(
    each >= 1,
    f"num_parts={num_parts} is more than the {size} examples; use at most "
    f"{max(1, size // MIN_PART)}",
  )
  checks.require(
    each >= MIN_PART or allow_tiny_parts,
    f"num_parts={num_parts} leaves {each} examples per part; use at most "
    f"{max(1, size // MIN_PART)}, or pass allow_tiny_parts=True",
  )
  rows = shuffled(key, size)[: num_parts * each]
  return examples.take(rows.reshape(num_parts, each))


def _ends(size: int, fractions: Sequence[float]) -> np.ndarray:
  """[parts] where each part ends in the shuffled order."""
  checks.require(len(fractions) > 0, "fractions is empty; name at least one part")
  whole, share, ends = 0, 0.0, []
  for wanted in fractions:
    if isinstance(wanted, int | np.integer):
      checks.integer("fractions", wanted, low=1)
      whole += int(wanted)
    else:
      checks.number("fractions", wanted, low=0.0, high=1.0, open_low=True)
      share += float(wanted)
    ends.append(whole + round(share * size))
  asked = whole / max(size, 1) + share
  checks.require(
    asked <= 1 + 1e-9 and ends[-1] <= size,
    f"fractions={tuple(fractions)} asks for {asked:.6g} of the {size} "
    "examples; the parts may add up to at most 1",
  )
  return np.array(ends)


def _parts_by_unit(unit: np.ndarray, size: int, ends: np.ndarray, key: jax.Array) -> np.ndarray:
  """[n] the part of each row; len(ends) for rows in no part.

  Units are laid one after the other in random order; a unit belongs to the
  part in which the middle of its rows lies.
  """
  checks.same_length(unit=unit, examples=np.empty(size))
  _, ids, counts = np.unique(unit, return_inverse=True, return_counts=True)
  order = shuffled(key, len(counts))
  after = np.cumsum(counts[order])
  middle = np.empty(len(counts))
  middle[order] = after - counts[order] / 2
  return np.searchsorted(ends, middle, side="right")[ids]


def shuffled(key: Key, size: int) -> np.ndarray:
  """[n] the numbers 0 .. n - 1 in random order, from a JAX key, on the host.

  A shuffle in JAX compiles again for every n; this one does not, and the bits
  of Philox are the same on every platform and in every version.
  """
  seed = np.asarray(jax.random.key_data(key)).ravel().tolist()
  bits = np.random.Philox(np.random.SeedSequence(seed)).random_raw(size)
  return np.argsort(bits, kind="stable")
