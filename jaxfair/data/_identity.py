"""Identifies a data set by its records, however it is processed afterwards.

An identity is as private as the people are: anyone who knows all of them but one could find that
one by trial. Keep it under a secret (as the data-set ledgers of `accounting` do), and never put it
on a page or in a file for others.
"""

import gzip
import hashlib
import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from jaxfair import checks
from jaxfair.data._files import DataError, PathLike
from jaxfair.types import Examples

_MODULUS = 2**256


def csv_identity(path: PathLike) -> bytes:
  """The identity of a CSV file: its lines, in any order.

  Which column is the label or the group, what is dropped and how the people
  are split changes nothing, nor do line endings, empty lines or compression.
  An edited cell, a new row or another order of columns gives another identity.
  """
  try:
    with open(path, "rb") as file:
      packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else open(path, "rb") as file:
      if file.read(3) != b"\xef\xbb\xbf":
        file.seek(0)
      # A piece of the file at a time: an end of line other than \n is found within the piece.
      lines = itertools.chain.from_iterable(map(bytes.splitlines, file))
      return _identity("csv", (line for line in lines if line.strip()))
  except (OSError, EOFError) as error:
    raise DataError(f"cannot read {path} ({error})") from None


def records_identity(examples: Examples, *, feature_names: Sequence[str] = ()) -> bytes:
  """The identity of arrays: their rows, in any order.

  Pass everybody, before splitting: a part of the people has an identity of its
  own, and so have scaled features.
  """
  arrays = [np.asarray(leaf) for leaf in examples]
  checks.same_length(x=arrays[0], y=arrays[1], group=arrays[2])
  kinds = [f"{array.shape[1:]} {array.dtype}" for array in arrays]
  rows = (b"".join(a[i].tobytes() for a in arrays) for i in range(len(arrays[0])))
  return _identity(f"records {kinds} {list(feature_names)}", rows)


def named_identity(name: str) -> bytes:
  """The identity of a named set: its name, whichever labels and groups are chosen."""
  return _identity(f"named {name}", ())


def _identity(kind: str, rows: Iterable[bytes]) -> bytes:
  """The identity of a multiset of rows: their number, and the sum of their hashes."""
  count, total = 0, 0
  for row in rows:
    count += 1
    total += int.from_bytes(hashlib.sha256(row).digest(), "big")
  text = f"{kind} {count} {total % _MODULUS:064x}"
  return hashlib.sha256(text.encode()).digest()
