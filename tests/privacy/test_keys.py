"""Keys of releases: all their bits from the operating system, every time."""

import jax
import numpy as np

from jaxfair import privacy


def test_all_bits_of_a_key_come_from_the_operating_system():
  """A bit that is fixed or copied halves the work of whoever tries all keys."""
  words = np.stack([jax.random.key_data(privacy.os_key()) for _ in range(64)])
  bits = np.unpackbits(words.view(np.uint8), axis=1)
  assert bits.shape == (64, 64)
  # Two columns agree in all rows with probability 2^-64 each.
  columns = {column.tobytes() for column in bits.T}
  assert len(columns) == 64
  assert not columns & {bytes(64), bytes([1] * 64)}
