"""Examples: what `take` gives, and of which kind."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair.types import Examples

PEOPLE = Examples(np.arange(8.0).reshape(4, 2), np.arange(4), np.arange(4) % 2)


def test_numpy_stays_numpy():
  for rows in ([2, 0], np.array([2, 0]), np.array([True, False, True, False])):
    some = PEOPLE.take(rows)
    assert all(type(leaf) is np.ndarray for leaf in some)
    assert some.size == 2
  assert PEOPLE.take([2, 0]).x.tolist() == [[4.0, 5.0], [0.0, 1.0]]


def test_traced_rows_of_numpy_people():
  some = jax.jit(lambda rows: PEOPLE.take(rows))(jnp.array([3, 3]))
  assert some.y.tolist() == [3, 3]
  assert some.group.tolist() == [1, 1]
