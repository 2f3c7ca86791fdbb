"""Whether clipped sums are taken in one pass or in two."""

import math
from collections.abc import Sequence

from jaxfair.privacy._taps import Reading, Slot

# Bytes of inputs and signals that one pass may hold: in all, in rematerialized parts, and in
# rematerialized rounds of loops. Plain training holds most of the first anyway; rematerialization
# is asked for to save memory, and saves most of it in loops.
MOST_BYTES = 2**30
MOST_REMAT_BYTES = 2**26
MOST_REMAT_LOOP_BYTES = 2**24


def takes_two(method: str, reading: Reading, num_examples: int) -> bool:
  """Whether two passes are taken.

  A leaf that is tapped whole has one gradient per example in memory in any case, and an empty batch
  has no example to stand in for others: both take one pass.

  Args:
    method: "auto", "ghost" or "two_pass".
    reading: of the loss.
    num_examples: in the batch.
  """
  if method == "ghost" or reading.whole or not num_examples:
    return False
  slots = (*reading.taps, *reading.sources)
  remat = [slot for slot in slots if slot.remat]
  in_loops = [slot for slot in remat if slot.loops]
  return (
    method == "two_pass"
    or held_bytes(slots, num_examples) > MOST_BYTES
    or held_bytes(remat, num_examples) > MOST_REMAT_BYTES
    or held_bytes(in_loops, num_examples) > MOST_REMAT_LOOP_BYTES
  )


def held_bytes(slots: Sequence[Slot], num_examples: int) -> int:
  """Bytes of inputs and signals of all examples."""
  sizes = (math.prod(slot.shape) * slot.one.dtype.itemsize for slot in slots)
  return num_examples * sum(sizes)
