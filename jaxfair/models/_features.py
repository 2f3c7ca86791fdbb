"""Features that cost no privacy: fixed functions of one image, computed once and kept."""

import dataclasses
import hashlib
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _whole_files, checks
from jaxfair.data import Dataset
from jaxfair.data._files import PathLike, cache_folder
from jaxfair.types import Array, Features, Key, Model, Params


class Extractor(NamedTuple):
  """A fixed function from images to features, one example at a time.

  Attributes:
    name: what it is, with its settings; features of another name are others.
    params: public parameters, such as weights learned on ImageNet; an empty dict for none.
    apply: `(params, images [n, h, w, c]) -> [n, d]`.
  """

  name: str
  params: Params
  apply: Callable[[Params, Any], jax.Array]

  def __call__(self, x: Features) -> jax.Array:
    """The features of a batch of images."""
    return self.apply(self.params, x)


def embed(
  dataset: Dataset,
  extractor: Extractor,
  *,
  folder: PathLike | None = None,
  chunk_size: int = 128,
  progress: Callable[[int, int], None] | None = None,
) -> Dataset:
  """A data set with features in place of its images, kept on disk.

  Features are found again by a digest of the images, of the extractor's name and of its
  parameters; nothing else enters. They are computed `chunk_size` images at a time and
  memory-mapped, so that memory does not grow with the data.

  Args:
    dataset: images [n, h, w, c] in [0, 1].
    extractor: `pretrained(...)`, `scattering(...)` or your own.
    folder: where features are kept; by default beside the data sets in the user's cache.
    chunk_size: number of images in memory at a time.
    progress: called with the number of images done and the number of all.

  Returns:
    The same people with x of shape [n, d], float32.

  Privacy:
    The features of a person depend on that person's image and on public weights only, so
    they cost no privacy; but they are as private as the image. The folder is closed to
    other users. Delete it when the data must be deleted.
  """
  x = dataset.examples.x
  checks.require(np.ndim(x) == 4, f"{dataset.name} has no images but x of shape {np.shape(x)}")
  checks.integer("chunk_size", chunk_size, low=1)
  base = cache_folder().parent / "features" if folder is None else pathlib.Path(folder)
  place = base / _digest(x, extractor)[:32]
  if not (place / "x.npy").is_file():
    _whole_files.owner_only(base)
    with _whole_files.new_folder(place) as partial:
      _compute(x, extractor, partial / "x.npy", chunk_size, progress or (lambda done, total: None))
  features = np.load(place / "x.npy", mmap_mode="r")
  return dataclasses.replace(
    dataset,
    examples=dataset.examples._replace(x=features),
    feature_names=tuple(f"{extractor.name}.{column}" for column in range(features.shape[1])),
    columns=("image",) * features.shape[1],
  )


def with_head(extractor: Extractor, head: Model) -> Model:
  """The extractor with a model on its features, as one model with parameters of both.

  Its parameters are `{"features": ..., "head": ...}`; they start at the extractor's own and
  at the head's. Pass it to `frozen` or `low_rank` to train a part of it.
  """

  def init(key: Key, x_one: Array) -> Params:
    features = jax.eval_shape(
      extractor.apply, extractor.params, jax.ShapeDtypeStruct((1, *np.shape(x_one)), jnp.float32)
    )
    one = jnp.zeros(features.shape[1:], features.dtype)
    start = jax.tree.map(jnp.asarray, extractor.params)
    return {"features": start, "head": head.init(key, one)}

  def apply(params: Params, x: Array) -> jax.Array:
    return head.apply(params["head"], extractor.apply(params["features"], x))

  return Model(init, apply)


def _digest(x: np.ndarray, extractor: Extractor) -> str:
  digest = hashlib.sha256(extractor.name.encode())
  paths = jax.tree_util.tree_leaves_with_path(extractor.params)
  for path, leaf in [*paths, ("x", x)]:
    array = np.asarray(leaf)
    digest.update(f"{path} {array.shape} {array.dtype}".encode())
    for start in range(0, len(array), 4096):
      digest.update(np.ascontiguousarray(array[start : start + 4096]).data)
  return digest.hexdigest()


def _compute(
  x: np.ndarray,
  extractor: Extractor,
  path: pathlib.Path,
  chunk_size: int,
  progress: Callable[[int, int], None],
) -> None:
  size = len(x)
  chunk_size = min(chunk_size, size)
  # The weights are an argument: as constants, the compiler would try to fold them.
  work = jax.jit(extractor.apply)
  params = jax.tree.map(jnp.asarray, extractor.params)
  found: np.memmap | None = None
  progress(0, size)
  for start in range(0, size, chunk_size):
    # The last chunk starts earlier, so that one program serves all.
    start = min(start, size - chunk_size)
    made = np.asarray(work(params, x[start : start + chunk_size]))
    checks.require(
      made.ndim == 2 and bool(np.isfinite(made).all()),
      f"{extractor.name} gave features of shape {made.shape} that are not finite rows",
    )
    if found is None:
      shape = (size, made.shape[1])
      found = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    found[start : start + chunk_size] = made
    progress(start + chunk_size, size)
  assert found is not None
  found.flush()
