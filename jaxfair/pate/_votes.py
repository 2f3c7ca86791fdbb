"""Votes: what every teacher says of every public query."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from jaxfair import checks, models, tree
from jaxfair.pate import _processes
from jaxfair.training import _ensembles
from jaxfair.types import Array, Features, Model, Params


def predict_votes(
  model: Model,
  stacked: Params,
  x: Features,
  *,
  batch_size: int = 1024,
  chunk: int | None = None,
  devices: Sequence[jax.Device] | None = None,
) -> Int[jax.Array, "teachers n"]:
  """The class that each teacher predicts for each query.

  Args:
    model: the teachers' model.
    stacked: their parameters, from `train_teachers`; of several processes each has its share.
    x: [n, ...] queries.
    batch_size: queries in memory at once, for each of `chunk` teachers.
    chunk: teachers side by side on a device; None chooses.
    devices: where to run; all local devices by default.

  Returns:
    [k, n] int32 class ids, in every process: under `jax.distributed` each
    asks its share of the teachers, and one collective gathers the votes.

  Privacy:
    Votes are functions of private data without noise: not for release.
  """
  shared = stacked if isinstance(stacked, _processes.SharedTeachers) else None
  stacked = stacked if shared is None else shared.own
  lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(stacked)}
  checks.require(
    len(lengths) == 1 and () not in lengths,
    "stacked needs one leading axis of teachers on every leaf; pass what train_teachers returns",
  )
  chunk = _ensembles.default_chunk() if chunk is None else chunk
  checks.integer("chunk", chunk, low=1)
  checks.integer("batch_size", batch_size, low=1)
  checks.finite("x", x)
  voter, held = _Voter(model, int(batch_size)), lengths.pop()[0]
  if jax.process_count() == 1:
    return _ensembles.map_members(voter, stacked, x, chunk=chunk, devices=devices)
  total = held if shared is None else shared.total
  chunk = min(chunk, total)
  rows, before = _processes.own_share(total, chunk).rows, 0
  if shared is not None:
    # In front of the others, so that each has the place in its chunk that it has in one process.
    before = shared.first % chunk
    rows = np.maximum(np.arange(-before, held), 0)
  members = tree.take(stacked, rows)
  votes = _ensembles.map_members(voter, members, x, chunk=chunk, devices=devices)
  return _processes.gather(votes[before:], total)


def vote_counts(
  predictions: Array, num_classes: int, *, num_teachers: int
) -> Int[jax.Array, "n classes"]:
  """How many teachers vote for each class.

  n_c = #{i : predictions[i] = c}

  Args:
    predictions: [k, n] class ids.
    num_classes: C.
    num_teachers: k; required, because a transposed array would otherwise be counted
      by teacher, and one person would move a whole row. (If there are as many queries as
      teachers, this cannot be detected.)

  Returns:
    [n, C] int32 counts; each row sums to k.

  Privacy:
    One teacher moves a row by one in two places: sqrt(2) in L2, 2 in L1, and
    its largest count by one. Not for release without noise.
  """
  checks.integer("num_classes", num_classes, low=1)
  checks.integer("num_teachers", num_teachers, low=1)
  checks.require(
    np.ndim(predictions) == 2 and len(predictions) == num_teachers,
    f"predictions has shape {np.shape(predictions)}; pass [k, n], one row for "
    f"each of the num_teachers={num_teachers} teachers",
  )
  checks.ids("predictions", predictions, num_classes)
  return _counts(jnp.asarray(predictions), int(num_classes))


@dataclasses.dataclass(frozen=True)
class _Voter:
  """One teacher's votes: static parts only."""

  model: Model
  batch_size: int

  def __call__(self, params: Params, x: Features) -> jax.Array:
    return models.predict(self.model, params, x, batch_size=self.batch_size)


@functools.partial(jax.jit, static_argnums=1)
def _counts(predictions: jax.Array, num_classes: int) -> jax.Array:
  chosen = predictions[:, :, None] == jnp.arange(num_classes)
  return jnp.sum(chosen, axis=0, dtype=jnp.int32)
