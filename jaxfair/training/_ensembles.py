"""Many trainings as one program: over seeds, settings or parts, over devices.

Members are grouped into chunks of a fixed size: vmap inside a chunk, a sequential map over chunks,
and chunks spread over devices. The chunk size does not depend on the number of devices, so every
member runs through the same instructions, and gives the same bits, on one device or many.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxfair import checks, tree
from jaxfair.training import _driver
from jaxfair.training._fit import FitConfig, check_examples, fit
from jaxfair.training._regularizers import check_anchor
from jaxfair.types import Array, Examples, Fit, Keys, Model, Params, PerExampleLoss, PyTree, Trainer

AXIS = "members"
CACHE = 64 * 1024  # bytes that batches side by side may fill on a CPU


def fit_many(
  model: Model,
  loss: PerExampleLoss,
  examples: Examples,
  config: Any = FitConfig(),
  *,
  keys: Keys,
  trainer: Trainer = fit,
  stacked: bool | Examples = False,
  initial: Params | None = None,
  anchor: Params | None = None,
  chunk: int | None = None,
  devices: Sequence[jax.Device] | None = None,
) -> Fit:
  """Trains once for every key, in one compiled program.

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses.
    examples: shared by all members, or one set each if `stacked`.
    config: the trainer's config; shared, or with stacked numbers: a
      `learning_rate` of shape [k] gives every member its own.
    keys: [k] keys, one per member. Member i's result depends on `keys[i]` and
      its own settings and examples only.
    trainer: `fit`, `dp_sgd`, or any pure function of their form.
    stacked: whether `examples` has a leading axis of length k; an `Examples`
      of three booleans says so for x, y and group separately.
    initial: parameters to start from, with a leading axis of length k; drawn if None.
    anchor: center of `fit`'s proximity term, shared by all.
    chunk: number of members that run side by side on a device; None chooses.
    devices: where to run; all local devices by default.

  Returns:
    `Fit` with a leading axis of length k on every leaf.
  """
  checks.key("keys", keys)
  checks.require(keys.ndim == 1, "keys must be a vector, one key per member")
  flags = stacked if isinstance(stacked, Examples) else Examples(*3 * [stacked])
  own = Examples(*map(_if, flags, examples))
  ours = Examples(*map(_if, map(operator.not_, flags), examples))
  count = _num_members((keys, own, initial))
  one = _merged(first_member(own), ours)
  config.check(model, loss, one)
  shared, each = _split(config, count)
  if trainer is fit:  # whose rules reach beyond the first member
    check_anchor(config, anchor)
    if all(flags):
      check_examples(model, join_members(examples))
  member = _Member(trainer, model, loss)
  per_member = (keys, each, own, initial)
  common = (shared, ours, anchor)
  traced = not checks.concrete((per_member, common))
  if _driver.choose_loop(config.loop, model, one.x, traced=traced) == "step":
    fits = [member(tree.take(per_member, i), common) for i in range(count)]
    return tree.stack(fits)
  return map_members(
    member, per_member, common, chunk=chunk or chunk_for(config, one), devices=devices
  )


@dataclasses.dataclass(frozen=True)
class Untraced:
  """A trainer's parameters without its trace.

  What nobody reads is not computed: the norms in a trace can take a quarter
  of a small network's training.

  Attributes:
    trainer: `fit`, or any pure function of its form.
  """

  trainer: Trainer

  def __call__(self, *arguments: Any, **named: Any) -> Fit:
    """The fit, with None for a trace."""
    return Fit(self.trainer(*arguments, **named).params, None)


def map_members(
  function: Callable[[Any, Any], Any],
  per_member: PyTree,
  common: PyTree,
  *,
  chunk: int,
  devices: Sequence[jax.Device] | None = None,
) -> PyTree:
  """`function(one member, common)` for all members, chunked, over devices.

  Args:
    function: hashable and pure; compiled once per shape.
    per_member: pytree with a leading axis of length k.
    common: pytree that all members share.
    chunk: members side by side on one device.
    devices: all local devices by default.

  Returns:
    The results stacked. k need not divide anything: the last member is
    repeated to fill up, and the repetitions are dropped.
  """
  checks.integer("chunk", chunk, low=1)
  chosen = tuple(jax.local_devices() if devices is None else devices)
  count = _num_members(per_member)
  chunk = min(chunk, count)
  used = min(len(chosen), -(-count // chunk))
  rows = np.minimum(np.arange(-(-count // (chunk * used)) * chunk * used), count - 1)
  if used == 1 or not checks.concrete((per_member, common)):
    members = per_member
    if len(rows) > count:
      members = jax.tree.map(lambda leaf: jnp.asarray(leaf)[rows], per_member)
  else:
    mesh = _mesh_of(chosen[:used])
    members = jax.tree.map(lambda leaf: _dealt(leaf, rows, mesh), per_member)
    common = jax.tree.map(lambda leaf: _shared(leaf, mesh), common)
  return _mapped(function, members, common, count=count, chunk=chunk, devices=chosen[:used])


def _mesh_of(devices: Sequence[jax.Device]) -> Mesh:
  return Mesh(np.array(devices), (AXIS,))


def _shared(leaf: Array, mesh: Mesh) -> jax.Array:
  """An array for every device; one copy of it where devices share the memory of the host."""
  sharding = NamedSharding(mesh, PartitionSpec())
  near = _on_host(leaf)
  if near is None:
    return jax.device_put(leaf, sharding)
  pieces = [jax.device_put(near, device) for device in mesh.devices.flat]
  return jax.make_array_from_single_device_arrays(near.shape, sharding, pieces)


def _dealt(leaf: Array, rows: np.ndarray, mesh: Mesh) -> jax.Array:
  """Rows of an array, an equal part for every device."""
  sharding = NamedSharding(mesh, PartitionSpec(AXIS))
  near = _on_host(leaf)
  if near is None:
    return jax.device_put(jnp.asarray(leaf)[rows] if len(rows) > len(leaf) else leaf, sharding)
  parts = rows.reshape(mesh.size, -1)
  pieces = [
    # A slice, where nobody is repeated: no copy of what is on the host already.
    jax.device_put(near[own[0] : own[-1] + 1] if own[-1] - own[0] == len(own) - 1 else near[own], d)
    for own, d in zip(parts, mesh.devices.flat, strict=True)
  ]
  shape = (len(rows), *near.shape[1:])
  return jax.make_array_from_single_device_arrays(shape, sharding, pieces)


def _on_host(leaf: Array) -> np.ndarray | None:
  """The array in the memory of the host as a device would hold it, where that is its memory."""
  if jax.default_backend() != "cpu" or not getattr(leaf, "is_fully_addressable", True):
    return None
  dtype = jnp.result_type(leaf)
  if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
    return None
  return np.asarray(leaf, jax.dtypes.canonicalize_dtype(dtype))


@functools.partial(jax.jit, static_argnames=("function", "count", "chunk", "devices"))
def _mapped(
  function: Callable[[Any, Any], Any],
  members: PyTree,
  common: PyTree,
  *,
  count: int,
  chunk: int,
  devices: tuple[jax.Device, ...],
) -> PyTree:
  # One at a time needs no vmap, which would give every array an axis of
  # length 1, and the compiler more to do.
  work = function if chunk == 1 else jax.vmap(function, in_axes=(0, None))

  def run(members: PyTree, common: PyTree) -> PyTree:
    def chunked(leaf: jax.Array) -> jax.Array:
      return leaf if chunk == 1 else leaf.reshape(-1, chunk, *leaf.shape[1:])

    out = jax.lax.map(lambda some: work(some, common), jax.tree.map(chunked, members))
    return out if chunk == 1 else jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), out)

  if len(devices) > 1:
    # check_vma=False: with the check on, parameters made as constants inside
    # the mapped function count as replicated, and their gradients are silently
    # summed over devices. Members must not see each other.
    run = jax.shard_map(
      run,
      mesh=_mesh_of(devices),
      in_specs=(PartitionSpec(AXIS), PartitionSpec()),
      out_specs=PartitionSpec(AXIS),
      check_vma=False,
    )
  return jax.tree.map(lambda leaf: leaf[:count], run(members, common))


def default_chunk(batch_bytes: int = 0) -> int:
  """How many members side by side: few on CPU, where caches decide.

  There up to four, as long as their batches fit together into 64 KB. Small
  steps gain from company; large ones only push each other out of the cache.

  Args:
    batch_bytes: of the features that one member reads in a step, if known.
  """
  if jax.default_backend() != "cpu":
    return 64
  return max(1, min(4, CACHE // max(batch_bytes, 1)))


def chunk_for(config: Any, one: Examples) -> int:
  """The default chunk of trainings like this one, of one member's people."""
  size = getattr(config, "batch_size", None) or one.size
  features = int(np.prod(np.shape(one.x)[1:]))
  return default_chunk(size * features * one.x.dtype.itemsize)


@dataclasses.dataclass(frozen=True)
class _Member:
  """One member's training: static parts only."""

  trainer: Trainer
  model: Model
  loss: PerExampleLoss

  def __call__(self, own: PyTree, common: PyTree) -> Fit:
    key, numbers, own_examples, initial = own
    shared, all_examples, anchor = common
    config = _merged(numbers, shared)
    given: dict[str, Any] = {"initial": initial, "anchor": anchor}
    given = {name: v for name, v in given.items() if v is not None}
    examples = _merged(own_examples, all_examples)
    return self.trainer(self.model, self.loss, examples, config, key=key, **given)


def _num_members(per_member: PyTree) -> int:
  """The length of the leading axis, which all arrays must share.

  A look-up beyond the end of an array would not fail, but repeat its last row.
  """
  shapes = [np.shape(leaf) for leaf in jax.tree.leaves(per_member)]
  lengths = sorted({shape[0] if shape else 0 for shape in shapes})
  checks.require(
    len(lengths) == 1,
    "keys, stacked examples and initial parameters need one entry per member "
    f"along their first axis, but have {', '.join(map(str, lengths))}",
  )
  checks.require(lengths[0] > 0, "there is no member to run; pass at least one key")
  return lengths[0]


def first_member(stacked: PyTree) -> PyTree:
  """leaf[0] of every leaf, for checks."""
  return jax.tree.map(lambda leaf: _near(leaf)[0], stacked)


def join_members(stacked: PyTree) -> PyTree:
  """[k, n, ...] -> [k n, ...] for every leaf, for checks."""

  def joined(leaf: Array) -> Array:
    return _near(leaf).reshape(-1, *leaf.shape[2:])

  return jax.tree.map(joined, stacked)


def _near(leaf: Array) -> Array:
  """The array on the host, where that copies nothing.

  JAX would copy it, and compile a program for every shape.
  """
  near = jax.default_backend() == "cpu" and checks.concrete(leaf)
  if near and getattr(leaf, "is_fully_addressable", True):
    return np.asarray(leaf)
  return leaf


def _if(wanted: bool, value: Any) -> Any:
  return value if wanted else None


def _merged(first: PyTree, second: PyTree) -> PyTree:
  """A whole tree from two with None where the other one has a value."""
  return jax.tree.map(
    lambda mine, ours: ours if mine is None else mine,
    first,
    second,
    is_leaf=lambda value: value is None,
  )


def _split(config: Any, count: int) -> tuple[Any, Any]:
  """The config's shared numbers, and those that differ between members.

  Each is a whole config, with None where the other one holds the number.
  """
  for path, value in jax.tree_util.tree_leaves_with_path(config):
    if is_stacked(path, value) and jnp.shape(value) != (count,):
      name = jax.tree_util.keystr(path).strip(".")
      raise checks.ArgumentError(
        f"{name} has shape {jnp.shape(value)}; stack one value per key: ({count},)"
      )

  def ours(path: Any, value: PyTree) -> PyTree:
    return None if is_stacked(path, value) else value

  def own(path: Any, value: PyTree) -> PyTree:
    return jnp.asarray(value) if is_stacked(path, value) else None

  shared = jax.tree_util.tree_map_with_path(ours, config)
  return shared, jax.tree_util.tree_map_with_path(own, config)


def is_stacked(path: Any, value: PyTree) -> bool:
  """Whether a config's number, at this path in it, differs between members.

  The people of a penalty are everybody's.
  """
  held = any(getattr(part, "name", "") == "people" for part in path)
  return jnp.ndim(value) > 0 and not held
