"""Teachers shared out between the processes of `jax.distributed`."""

from typing import NamedTuple

import jax
import numpy as np

from jaxfair.types import Params, PyTree


class Share(NamedTuple):
  """The teachers that one process looks after.

  Attributes:
    rows: their numbers; the last teacher again where the shares must be
      filled up, so that all processes have equally many.
    total: teachers in all, k.
  """

  rows: np.ndarray
  total: int


class SharedTeachers(NamedTuple):
  """Teachers that are spread over the processes; no process holds all of them.

  Attributes:
    own: parameters of this process's teachers, with a leading axis.
    total: teachers in all, k.
  """

  own: Params
  total: int

  @property
  def first(self) -> int:
    """The number of this process's first teacher."""
    return jax.process_index() * int(np.shape(jax.tree.leaves(self.own)[0])[0])


def own_share(total: int, chunk: int) -> Share:
  """Whole chunks for every process.

  A teacher then has the same place in its chunk, and the same bits, whatever the number of
  processes.
  """
  processes, me = jax.process_count(), jax.process_index()
  size = -(-total // (chunk * processes)) * chunk
  rows = np.arange(me * size, (me + 1) * size)
  return Share(np.minimum(rows, total - 1), total)


def gather(own: PyTree, total: int) -> PyTree:
  """Every process's share of the votes, one after the other, in every process."""
  from jax.experimental import multihost_utils

  joined = multihost_utils.process_allgather(own, tiled=True)
  return jax.tree.map(lambda leaf: leaf[:total], joined)
