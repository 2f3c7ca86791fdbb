"""One training over the devices of a mesh.

Only the sum over people is divided: every device looks up and clips the people it holds, and one
collective adds the devices' sums. Whatever follows, noise first, is written once for the whole sum,
so there is one noise however many devices there are, and parameters may be laid out over the
devices in any way.
"""

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxfair import checks
from jaxfair.accounting import _truncation
from jaxfair.privacy._sampling import Batch
from jaxfair.privacy._sharded_sampling import ShardedSampler
from jaxfair.training import _hosts
from jaxfair.training._thin_products import by_columns
from jaxfair.types import Array, Examples, Index, Params, PyTree, Source


@dataclasses.dataclass(frozen=True)
class OnMesh:
  """Where a training runs; a static part of its program.

  Attributes:
    mesh: its devices share the people, along all axes.
    size: number of people, n.
    specs: how the leaves of the parameters are laid out; None: all of them on every device.
  """

  mesh: Mesh
  size: int
  specs: tuple[PartitionSpec, ...] | None = None

  @classmethod
  def checked(
    cls, mesh: Mesh, shards: int | None, examples: Examples | Source, initial: Params | None
  ) -> "OnMesh":
    """A mesh for these people.

    Raises:
      ArgumentError: if the devices cannot share the shards equally.
    """
    checks.require(isinstance(mesh, Mesh), f"mesh={checks.shown(mesh)} is not a jax.sharding.Mesh")
    checks.untraced("training over a mesh", examples, reason="it places people on devices")
    if shards is None:
      raise checks.ArgumentError(
        f"a mesh distributes people by shards, but the config has none; pass "
        f"DpSgdConfig(shards=64), or another multiple of the {mesh.size} devices"
      )
    checks.require(
      shards % mesh.size == 0,
      f"shards={shards} cannot be divided equally between the {mesh.size} devices of the mesh; "
      "use a "
      "mesh whose number of devices divides shards",
    )
    # Explicit axes would have every operation of a model say how its result is laid out.
    automatic = Mesh(
      mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names)
    )
    specs = None
    if initial is not None:
      specs = tuple(_spec(leaf, mesh) for leaf in jax.tree.leaves(initial))
    return cls(automatic, examples.size, specs)

  @property
  def blocks(self) -> int:
    """Number of devices, each of which holds one block of people."""
    return int(self.mesh.size)

  def draw(self, sampler: ShardedSampler, keys: jax.Array) -> Batch:
    """[steps, blocks * block_cap] rows of everybody: every device draws its own shards."""

    def own(keys: jax.Array) -> Batch:
      block = jax.lax.axis_index(self.mesh.axis_names)
      rows, mask = draw_blocks(sampler, self.blocks, block, keys)
      return Batch(_start(block, self.size, self.blocks) + rows, mask)

    return jax.shard_map(
      own,
      mesh=self.mesh,
      in_specs=PartitionSpec(),
      out_specs=PartitionSpec(None, self.mesh.axis_names),
      check_vma=False,
    )(keys)

  def sum(
    self,
    function: Callable[[Any, Batch, jax.Array, Any], Any],
    given: PyTree,
    batch: Batch,
    held: PyTree,
  ) -> PyTree:
    """The sum over devices of `function(given, batch, its rows of everybody, held)`.

    Args:
      function: sums over the people of one device's batch, whose rows are counted from the
        device's first one.
      given: what every device is given: parameters, keys.
      batch: from `draw`; every device is given its own part.
      held: what a device holds of everybody, along the leading axis.

    Returns:
      The sum, which all devices know, by one collective.
    """
    axes = self.mesh.axis_names

    def own(given: PyTree, batch: Batch, held: PyTree) -> PyTree:
      first = _start(jax.lax.axis_index(axes), self.size, self.blocks)
      near = batch._replace(rows=batch.rows - first)
      sums = by_columns(function)(given, near, batch.rows, held)
      # In one type, which makes one collective: counts are exact in float32 up to 2^24.
      total = jax.lax.psum(jax.tree.map(lambda leaf: leaf.astype(jnp.float32), sums), axes)
      return jax.tree.map(lambda leaf, own: leaf.astype(own.dtype), total, sums)

    everywhere, divided = PartitionSpec(), PartitionSpec(axes)
    # check_vma=False: with the check on, gradients of what counts as replicated are summed over
    # devices by differentiation itself, before they are clipped.
    return jax.shard_map(
      own,
      mesh=self.mesh,
      in_specs=(everywhere, divided, divided),
      out_specs=everywhere,
      check_vma=False,
    )(given, batch, held)

  def laid_out(self, params: Params) -> Params:
    """Parameters, or sums of their shape, as the caller's were laid out."""
    leaves, structure = jax.tree.flatten(params)
    specs = self.specs or (PartitionSpec(),) * len(leaves)
    placed = [
      jax.lax.with_sharding_constraint(leaf, NamedSharding(self.mesh, spec))
      for leaf, spec in zip(leaves, specs, strict=True)
    ]
    return jax.tree.unflatten(structure, placed)

  def place_params(self, params: Params) -> Params:
    """The caller's arrays on the devices of the mesh, in their own layout."""
    leaves, structure = jax.tree.flatten(params)
    specs = self.specs or (PartitionSpec(),) * len(leaves)
    placed = [
      _hosts.place(leaf, NamedSharding(self.mesh, spec))
      for leaf, spec in zip(leaves, specs, strict=True)
    ]
    return jax.tree.unflatten(structure, placed)

  def place_everywhere(self, tree: PyTree) -> PyTree:
    """Arrays that every device reads."""
    return _hosts.place(tree, NamedSharding(self.mesh, PartitionSpec()))

  def place_people(self, examples: Examples) -> Examples:
    """Each device's block of the people, along the leading axis.

    Arrays that are divided like that already are used as they are; of arrays on the host every
    device gets its part. Where n is not a multiple of the number of devices, blocks that are one
    person short end with a row of zeros that no sampler names.
    """
    return jax.tree.map(self._divided, examples)

  def digests(self, people: Examples, shards: int) -> np.ndarray:
    """[shards, 32] SHA-256 of each shard's people, whatever devices and processes hold them."""
    width, each = -(-self.size // self.blocks), shards // self.blocks
    found = np.zeros((shards, 32), np.uint8)
    hashes: dict[int, Any] = {}
    for leaf in people:
      for piece in leaf.addressable_shards:
        block = (piece.index[0].start or 0) // width
        rows, first = np.asarray(piece.data), _start(block, self.size, self.blocks)
        for shard in range(block * each, (block + 1) * each):
          start, end = (_start(shard + more, self.size, shards) - first for more in (0, 1))
          own = np.ascontiguousarray(rows[start:end])
          digest = hashes.setdefault(shard, hashlib.sha256())
          digest.update(f"{own.shape} {own.dtype}".encode())
          digest.update(own.tobytes())
    for shard, digest in hashes.items():
      found[shard] = np.frombuffer(digest.digest(), np.uint8)
    return found if jax.process_count() == 1 else _hosts.joined(found)

  def _divided(self, leaf: Any) -> jax.Array:
    sharding = NamedSharding(self.mesh, PartitionSpec(self.mesh.axis_names))
    if self.size % self.blocks == 0:
      return _hosts.place(leaf, sharding)
    width = -(-self.size // self.blocks)
    if leaf.shape[0] == width * self.blocks:
      placed: jax.Array = leaf  # before
      return placed
    near = np.asarray(leaf)

    def block(index: PyTree) -> np.ndarray:
      number = (index[0].start or 0) // width
      start, end = (_start(number + more, self.size, self.blocks) for more in (0, 1))
      short = width - (end - start)
      return np.pad(near[start:end], [(0, short)] + [(0, 0)] * (near.ndim - 1))

    shape = (width * self.blocks, *near.shape[1:])
    return jax.make_array_from_callback(shape, sharding, block)


def block_cap(sampler: ShardedSampler, blocks: int) -> int:
  """The length of a device's batch: a cap that costs no more than those of its shards."""
  cap = _truncation.joint_max_batch(
    dataset_size=sampler.num_examples,
    sampling_rate=sampler.rate,
    max_batch=sampler.max_batch,
    shards=sampler.shards,
    blocks=blocks,
  )
  return min(cap, -(-sampler.num_examples // blocks))


def draw_blocks(sampler: ShardedSampler, blocks: int, block: Index, keys: jax.Array) -> Batch:
  """[steps, block_cap] samples of the people of one block, by one key each."""
  cap = block_cap(sampler, blocks)
  return jax.vmap(lambda key: sampler.draw_block(block, blocks=blocks, cap=cap, key=key))(keys)


def _start(block: Any, size: int, blocks: int) -> Any:
  """The first row of a block, floor(block n / blocks), in numbers below n."""
  each, rest = divmod(size, blocks)
  return block * each + (block * rest) // blocks


def _spec(leaf: Array, mesh: Mesh) -> PartitionSpec:
  """How an array is laid out over the mesh, if it is."""
  sharding = getattr(leaf, "sharding", None)
  if not isinstance(sharding, NamedSharding) or sharding.mesh.shape != mesh.shape:
    return PartitionSpec()
  same = np.array_equal(sharding.mesh.devices, mesh.devices)
  return sharding.spec if same else PartitionSpec()
