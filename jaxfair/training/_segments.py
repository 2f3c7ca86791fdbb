"""A training in segments: computed and saved, one after the other."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

from jaxfair import accounting
from jaxfair.training import _hosts
from jaxfair.training._checkpoints import Checkpoints
from jaxfair.training._dp_sgd import DpSgdProgram
from jaxfair.training._dp_sgd_config import DpSgdConfig
from jaxfair.training._dp_sgd_trace import NonPrivateDpTrace
from jaxfair.training._program import Begun, Given, advance, begin, loop_for
from jaxfair.training._streaming import as_shapes
from jaxfair.types import Array, Examples, Key, Params, PyTree, Source

SEGMENTS = 10  # a training with a folder is saved this often


@dataclasses.dataclass(frozen=True)
class Training:
  """A private training that is charged, run, and continued.

  Attributes:
    program: what is trained, and where.
    examples: the people, on the devices that work on them.
    config: settings with calibrated noise.
    initial: parameters to start from; drawn if None.
    progress: called with `(steps done, steps in all)` after every segment.
    source: where people are read from, if they are not in memory.
  """

  program: DpSgdProgram
  examples: Examples
  config: DpSgdConfig
  initial: Params | None
  progress: Callable[[int, int], None]
  source: Source | None

  @classmethod
  def of(cls, program: DpSgdProgram, people: Examples, *others: Any) -> "Training":
    """A training of people who are not where a step reads them yet."""
    mesh = program.on_mesh
    placed = jax.tree.map(jnp.asarray, people) if mesh is None else mesh.place_people(people)
    return cls(program, placed, *others)

  def charge(
    self, ledger: accounting.Ledger | None, book: accounting.DatasetLedger | None, run_id: str
  ) -> None:
    """Charges the whole training to a ledger and to its data set, once."""
    event, id = self.config.event(self.program.size_of(self.examples)), f"{run_id}: DP-SGD"
    if ledger is not None:
      ledger.charge(event, id=id)
    if book is not None:
      relation = accounting.Relation.ADD_OR_REMOVE_ONE
      book.charge(event, id=id, relation=relation)

  def private(self) -> PyTree:
    """What must be the same when a training is continued: the people and the start."""
    mesh = self.program.on_mesh
    if self.source is not None:
      # Reads everybody once, and only the first process compares it with the folder.
      own = self.source.fingerprint() if _hosts.is_first() else ""
      return np.frombuffer(own.encode(), np.uint8), self._near_initial()
    if mesh is None:
      return self.examples, self.initial
    assert self.config.shards is not None
    return mesh.digests(self.examples, self.config.shards), self._near_initial()

  def resume(self, store: Checkpoints) -> tuple[Params, NonPrivateDpTrace | None]:
    """What is left to do in a folder: nothing, if its parameters were written down.

    Anybody may have seen them. On other devices they would have other last bits, and the noise of
    the first ones.
    """
    if not _hosts.from_first(lambda: store.finished or store.written):
      return self.run(store.key, store)
    like = self.initial
    if like is None:
      x = self.examples.x
      one = jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
      like = jax.eval_shape(self.program.model.init, jax.random.key(0), one)
    return self._there(store.released(like)), None

  def run(self, key: Key, store: Checkpoints | None) -> tuple[Params, NonPrivateDpTrace]:
    """From the newest checkpoint to the end."""
    given = Given(self.examples, self.config, key, self.initial)
    steps, begun = self.config.steps, begin(self.program, self.program.place(given))
    loop = loop_for(self.program, given)
    length = steps if store is None else -(-steps // SEGMENTS)
    done, parts = 0, []
    if store is not None:
      done = _hosts.from_first(store.latest)
    if store is not None and done:
      state, trace = store.load(done, self._shapes(begun, done))
      begun, parts = (
        begun._replace(state=self._like(begun.state, state)),
        [jax.tree.map(np.asarray, trace)],
      )
    while done < steps:
      count = min(length, steps - done)
      begun, trace = advance(
        self.program, begun, count=count, start=done, loop=loop, source=self.source
      )
      parts.append(self._near(trace))
      done += count
      if store is not None:
        store.save(done, (begun.state, _joined(parts)))
      self.progress(done, steps)
    return self.program.params_of(begun.state), _joined(parts)

  def finish(self, store: Checkpoints, params: Params) -> None:
    """Writes what is released and erases what could undo its noise, in one process."""
    near = self._near(params)
    _hosts.from_first(lambda: store.finish(near))

  def _near(self, tree: PyTree) -> PyTree:
    """Whole arrays in the memory of this process."""
    mesh = self.program.on_mesh
    return tree if mesh is None else _hosts.local(tree, mesh.mesh)

  def _near_initial(self) -> PyTree:
    mesh, initial = self.program.on_mesh, self.initial
    if mesh is None or initial is None:
      return initial
    return self._near(mesh.place_params(initial))

  def _there(self, params: Params) -> Params:
    mesh = self.program.on_mesh
    return params if mesh is None else mesh.place_params(params)

  def _like(self, placed: PyTree, found: PyTree) -> PyTree:
    """A state that was read, on the devices where a state is."""
    if self.program.on_mesh is None:
      return found

    def there(to: jax.Array, leaf: Array) -> jax.Array:
      if isinstance(leaf, jax.Array):
        return leaf
      assert isinstance(to.sharding, NamedSharding)
      placed: jax.Array = _hosts.place(leaf, to.sharding)
      return placed

    return jax.tree.map(there, placed, found)

  def _shapes(self, begun: Begun, done: int) -> PyTree:
    """Shapes of a checkpoint after `done` steps."""
    mesh = self.program.on_mesh
    blocks = 1 if mesh is None else mesh.blocks
    begun = begun._replace(inputs=as_shapes(begun.inputs, blocks))
    after, trace = jax.eval_shape(lambda b: advance(self.program, b, count=done), begun)
    if mesh is None:
      here = SingleDeviceSharding(jax.devices()[0])
      return jax.tree.map(lambda leaf: _laid_out(leaf, here), (after.state, trace))
    everywhere = NamedSharding(mesh.mesh, PartitionSpec())
    kept = jax.tree.map(lambda leaf: _laid_out(leaf, leaf.sharding), begun.state)
    return kept, jax.tree.map(lambda leaf: _laid_out(leaf, everywhere), trace)


def _laid_out(leaf: Array, sharding: jax.sharding.Sharding) -> jax.ShapeDtypeStruct:
  return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)


def _joined(parts: list[NonPrivateDpTrace]) -> NonPrivateDpTrace:
  # On the host: every number of segments would be another program.
  return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *parts)
