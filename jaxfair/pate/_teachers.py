"""Teachers: one model for each disjoint part of the private people."""

import dataclasses
import pathlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, training, tree
from jaxfair.pate import _processes
from jaxfair.pate._saved import SavedTeachers
from jaxfair.training import _ensembles
from jaxfair.training._fit import check_examples
from jaxfair.training._program_fingerprint import programs
from jaxfair.types import Examples, Key, Labels, Model, Params, PerExampleLoss, Trainer

PROGRAMS = ("optimizer", "penalties")  # settings that are told by what they do
NAMED = 10  # teachers that a warning lists before it only counts them


class MissingClassWarning(UserWarning):
  """Teachers that never saw a class, and so can hardly vote for it."""


def train_teachers(
  model: Model,
  loss: PerExampleLoss,
  parts: Examples,
  config: Any = training.FitConfig(),
  *,
  key: Key,
  trainer: Trainer = training.fit,
  chunk: int | None = None,
  devices: Sequence[jax.Device] | None = None,
  checkpoint: str | pathlib.Path | None = None,
  save_every: int = 32,
  progress: Callable[[int, int], None] = lambda done, total: None,
) -> Params:
  """Trains one teacher on each part, all in one compiled program.

  Args:
    model: any model.
    loss: `(logits, y) -> [n]` losses.
    parts: disjoint people with leaves [k, n, ...], from `data.partition`.
    config: settings, shared or with stacked numbers of shape [k].
    key: teacher i trains with `fold_in(key, i)`.
    trainer: trainer of one teacher: `training.fit`, `training.lagrangian`, or any
      function of their form, with its config.
    chunk: teachers side by side on a device; None chooses. It bounds the
      memory; a teacher's last bits may depend on it, but on nothing else.
    devices: where to run; all local devices by default.
    checkpoint: folder that keeps finished teachers. The same call continues
      a run that was killed, to the same bits, and any other is refused; the
      folder is as private as the people are. Any number of processes continues it, on a disk that
      all of them share.
    save_every: teachers between two checkpoints, the most a kill can lose;
      rounded up to whole chunks.
    progress: called with `(teachers done, teachers in all)` after each checkpoint.

  Returns:
    Parameters with a leading axis of length k. Under `jax.distributed`, what `predict_votes` takes
    in their place: every process holds the parameters of its own teachers alone.

  Privacy:
    Teacher i depends on part i, the key and i alone: no bit of it moves with
    the other parts, the number of devices or, under `jax.distributed`, of
    processes (each trains its share of the chunks; all must be given the
    same arguments). So one person moves one vote. Teachers themselves are
    not private, and nor is the warning about missing classes.
  """
  checks.one_key("key", key)
  total = _check_parts(model, loss, parts, config)
  if chunk is None:
    chunk = _ensembles.chunk_for(config, _ensembles.first_member(parts))
  checks.integer("chunk", chunk, low=1)
  checks.integer("save_every", save_every, low=1)
  chunk = min(chunk, total)
  keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(total))
  run = _Run(model, loss, parts, config, trainer, keys, chunk, devices)
  alone = jax.process_count() == 1
  if alone and checkpoint is None:
    return run.train(None)
  if checkpoint is None:
    own = run.train(_processes.own_share(total, chunk).rows)
  else:
    # A segment is one process's, and is named by its teachers.
    size = -(-save_every // chunk) * chunk
    share = _processes.own_share(total, size)
    store = _store(pathlib.Path(checkpoint), run, size, key)
    own = _train_segments(run, store, share.rows, size, progress)
  if alone:
    return jax.tree.map(lambda leaf: leaf[:total], own)
  return _processes.SharedTeachers(own, total)


@dataclasses.dataclass(frozen=True)
class _Run:
  """One ensemble; any subset of its teachers can be trained."""

  model: Model
  loss: PerExampleLoss
  parts: Examples
  config: Any
  trainer: Trainer
  keys: jax.Array
  chunk: int
  devices: Sequence[jax.Device] | None

  def train(self, rows: np.ndarray | None) -> Params:
    """Parameters of these teachers, or of all."""
    keys, parts, config = self.keys, self.parts, self.config
    if rows is not None:
      keys, parts = keys[rows], tree.take(parts, rows)
      config = jax.tree_util.tree_map_with_path(
        lambda path, value: value[rows] if _ensembles.is_stacked(path, value) else value, config
      )
    return _ensembles.fit_many(
      self.model,
      self.loss,
      parts,
      config,
      keys=keys,
      stacked=True,
      trainer=_ensembles.Untraced(self.trainer),
      chunk=self.chunk,
      devices=self.devices,
    ).params

  def shapes(self) -> Any:
    """What one teacher's parameters look like."""
    return jax.eval_shape(self.model.init, self.keys[0], self.parts.x[0, 0])


def _train_segments(
  run: _Run, store: SavedTeachers, rows: np.ndarray, size: int, progress: Callable[[int, int], None]
) -> Params:
  """Trains some teachers at a time; those that were saved are read."""
  first, total = jax.process_index() * (len(rows) // size), len(np.unique(rows))
  segments = []
  for start in range(0, len(rows), size):
    number = first + start // size
    params = store.load(number, run.shapes())
    if params is None:
      params = run.train(rows[start : start + size])
      store.save(number, params)
    segments.append(jax.device_get(params))
    progress(min(start + size, total), total)
  return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *segments)


def _store(folder: pathlib.Path, run: _Run, size: int, key: jax.Array) -> SavedTeachers:
  """The folder, which must hold this ensemble or nothing."""
  described = {
    "teachers": len(run.keys),
    "chunk": run.chunk,
    "save_every": size,
    "params": str(run.shapes()),
    "trainer": _told(run.trainer),
    **{
      field.name: _told(getattr(run.config, field.name))
      for field in dataclasses.fields(run.config)
      if field.name not in PROGRAMS
    },
  }
  one = _ensembles.first_member(run.parts)
  traced = programs(run.model, run.loss, one, run.config)
  return SavedTeachers(folder, described, run.parts, key, programs=traced)


def _told(value: object) -> Any:
  """A setting as JSON."""
  if dataclasses.is_dataclass(value):
    return {field.name: _told(getattr(value, field.name)) for field in dataclasses.fields(value)}
  if callable(value):
    return getattr(value, "__qualname__", type(value).__qualname__)
  if isinstance(value, str | int | None):
    return value
  return np.asarray(value, np.float64).tolist()


def _check_parts(model: Model, loss: PerExampleLoss, parts: Examples, config: Any) -> int:
  """Returns the number of parts; raises if the leaves have different leading axes."""
  for name, leaf in parts._asdict().items():
    checks.require(
      np.ndim(leaf) >= 2 and np.shape(leaf)[:2] == np.shape(parts.y)[:2],
      f"parts.{name} has shape {np.shape(leaf)}, but parts are [k, n, ...]; "
      "make them with data.partition(examples, num_parts, key=...)",
    )
  total, size = np.shape(parts.y)[:2]
  checks.require(total > 0, "parts holds no teacher; use at least one part")
  checks.require(
    size > 0, f"{total} teachers have no examples; use fewer teachers than there are people"
  )
  config.check(model, loss, _ensembles.first_member(parts))
  check_examples(model, _ensembles.join_members(parts))
  _warn_of_missing_classes(parts.y)
  return int(total)


def _warn_of_missing_classes(y: Labels) -> None:
  if not checks.concrete(y) or np.ndim(y) != 2:
    return
  y = np.asarray(y)
  if y.dtype.kind not in "iu":
    return
  classes = np.unique(y)
  lacks = np.stack([~(y == label).any(axis=1) for label in classes], axis=1)
  teachers = np.flatnonzero(lacks.any(axis=1))
  if not teachers.size:
    return
  first = [f"{i} (no {', '.join(map(str, classes[lacks[i]]))})" for i in teachers[:NAMED]]
  more = len(teachers) - len(first)
  warnings.warn(
    f"{len(teachers)} of {len(y)} teachers have no example of some class and "
    f"will hardly vote for it: {', '.join(first)}"
    + (f" and {more} more" if more else "")
    + "; use fewer teachers",
    MissingClassWarning,
    stacklevel=4,
  )
