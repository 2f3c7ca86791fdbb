"""What a clipped gradient costs over the plain one, on networks that people bring.

    python benchmarks/networks.py [--only "LSTM"] [--rounds 7] [--no-time] [--large]

For each network, in one process: CPU time of the clipped gradient over that of the plain one
(interleaved medians), memory that the compiler reserves beyond arguments and results, compile
seconds, which method "auto" takes, and whether a slow path was warned of. --large compiles
transformers of 10 and 50 million parameters instead (memory only); --method overrides "auto".
"""

import argparse
import functools
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import timing

from jaxfair import models, tree
from jaxfair.privacy import _clipping, _pass_choice, _taps, clipped_grad
from jaxfair.types import Examples, Model

CLIP = 1.0


class Sizes(NamedTuple):
  """Of a transformer."""

  vocabulary: int = 256
  width: int = 64
  layers: int = 4
  heads: int = 4
  length: int = 32


class Block(nn.Module):
  """One layer of a transformer."""

  sizes: Sizes
  dtype: Any = jnp.float32

  @nn.compact
  def __call__(self, h, _=None):
    """As nn.scan wants it: what is carried, and nothing else."""
    width, dtype = self.sizes.width, self.dtype
    normed = nn.LayerNorm(dtype=dtype)(h)
    h = h + nn.MultiHeadDotProductAttention(self.sizes.heads, dtype=dtype)(normed, normed)
    normed = nn.LayerNorm(dtype=dtype)(h)
    wide = nn.gelu(nn.Dense(4 * width, dtype=dtype)(normed))
    return h + nn.Dense(width, dtype=dtype)(wide), None


class Transformer(nn.Module):
  """Predicts every next token; `form` says how its layers are repeated."""

  sizes: Sizes
  form: str = "loop"
  tied: bool = False
  dtype: Any = jnp.float32

  @nn.compact
  def __call__(self, ids):
    """[n, length, vocabulary] logits."""
    sizes = self.sizes
    table = nn.Embed(sizes.vocabulary, sizes.width, dtype=self.dtype)
    places = self.param("places", nn.initializers.normal(0.02), (sizes.length, sizes.width))
    h = table(ids) + places.astype(self.dtype)
    block = nn.remat(Block, prevent_cse=self.form == "remat") if "remat" in self.form else Block
    if "scan" in self.form:
      scanned = nn.scan(
        block, variable_axes={"params": 0}, split_rngs={"params": True}, length=sizes.layers
      )
      h, _ = scanned(sizes, self.dtype)(h, None)
    else:
      for _ in range(sizes.layers):
        h, _ = block(sizes, self.dtype)(h)
    h = nn.LayerNorm(dtype=self.dtype)(h)
    logits = table.attend(h) if self.tied else nn.Dense(sizes.vocabulary, dtype=self.dtype)(h)
    return logits.astype(jnp.float32)


class Recurrent(nn.Module):
  """A recurrent layer over 64 positions."""

  cell: Any

  @nn.compact
  def __call__(self, x):
    """[n, 10] logits."""
    return nn.Dense(10)(nn.RNN(self.cell)(x)[:, -1])


class Separable(nn.Module):
  """Depthwise-separable convolutions, as in MobileNet."""

  @nn.compact
  def __call__(self, x):
    """[n, 10] logits."""
    x = nn.relu(nn.GroupNorm(8)(nn.Conv(32, (3, 3))(x)))
    for width, stride in ((64, 1), (128, 2), (128, 1), (256, 2)):
      x = nn.Conv(x.shape[-1], (3, 3), stride, feature_group_count=x.shape[-1])(x)
      x = nn.relu(nn.GroupNorm(8)(x))
      x = nn.relu(nn.GroupNorm(8)(nn.Conv(width, (1, 1))(x)))
    return nn.Dense(10)(x.mean((1, 2)))


class ResNet18(nn.Module):
  """With group normalization: batch statistics would couple examples."""

  @nn.compact
  def __call__(self, x):
    """[n, 10] logits."""
    x = nn.relu(nn.GroupNorm(8)(nn.Conv(64, (3, 3), use_bias=False)(x)))
    for stage in range(4):
      for block in range(2):
        width, stride = 64 * 2**stage, 1 + (stage > 0 and block == 0)
        h = nn.relu(nn.GroupNorm(8)(nn.Conv(width, (3, 3), stride, use_bias=False)(x)))
        h = nn.GroupNorm(8)(nn.Conv(width, (3, 3), use_bias=False)(h))
        if x.shape != h.shape:
          x = nn.GroupNorm(8)(nn.Conv(width, (1, 1), stride, use_bias=False)(x))
        x = nn.relu(x + h)
    return nn.Dense(10)(x.mean((1, 2)))


class Network(NamedTuple):
  """A module, its batch, and its loss."""

  module: Any
  x: np.ndarray
  y: np.ndarray
  loss: Callable[..., Any] = models.cross_entropy


def next_token(logits: Any, ids: Any) -> Any:
  """[n] mean cross entropy of every token given those before it."""
  chosen = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), ids[:, 1:, None], axis=-1)
  return -jnp.mean(chosen[..., 0], axis=1)


def transformer(sizes: Sizes = Sizes(), batch: int = 16, **options: Any) -> Network:
  ids = np.random.default_rng(0).integers(0, sizes.vocabulary, (batch, sizes.length))
  ids = ids.astype(np.int32)
  return Network(Transformer(sizes, **options), ids, ids, next_token)


def pictures(module: Any, shape: tuple[int, ...], batch: int) -> Network:
  rng = np.random.default_rng(0)
  x = rng.normal(size=(batch, *shape)).astype(np.float32)
  return Network(module, x, rng.integers(0, 10, batch).astype(np.int32))


MILLIONS_10 = Sizes(8192, 256, 8, 8, 128)
MILLIONS_50 = Sizes(8192, 512, 14, 8, 128)
NETWORKS: dict[str, Callable[[], Network]] = {
  "MLP": lambda: pictures(models.mlp((128, 128), 10), (100,), 256),
  "CNN": lambda: pictures(models.convnet(10), (28, 28, 1), 256),
  "transformer": transformer,
  "transformer, tied": lambda: transformer(tied=True),
  "transformer, nn.scan": lambda: transformer(form="scan"),
  "transformer, nn.remat": lambda: transformer(form="remat"),
  "transformer, nn.scan + remat": lambda: transformer(form="scan remat"),
  "transformer, bfloat16": lambda: transformer(dtype=jnp.bfloat16),
  "LSTM": lambda: pictures(Recurrent(nn.LSTMCell(64)), (64, 32), 32),
  "GRU": lambda: pictures(Recurrent(nn.GRUCell(64)), (64, 32), 32),
  "depthwise-separable CNN": lambda: pictures(Separable(), (32, 32, 3), 16),
  "ResNet-18, 32 x 32": lambda: pictures(ResNet18(), (32, 32, 3), 16),
}
LARGE: dict[str, Callable[[], Network]] = {
  f"{name}, {told}": functools.partial(transformer, sizes, **options)
  for told, sizes in (("10M", MILLIONS_10), ("50M", MILLIONS_50))
  for name, options in {
    "transformer": {},
    "transformer, nn.scan": {"form": "scan"},
    "transformer, nn.remat": {"form": "remat"},
    "transformer, nn.scan + remat": {"form": "scan remat"},
    "transformer, bfloat16": {"dtype": jnp.bfloat16},
  }.items()
}


def measure(name: str, network: Network, method: Any, rounds: int) -> None:
  """Prints one network's row; times it if there are rounds."""
  module = network.module
  model = module if isinstance(module, Model) else models.from_flax(module)
  x, y = jnp.asarray(network.x), jnp.asarray(network.y)
  examples = Examples(x, y, jnp.zeros(len(x), jnp.int32))
  shapes = jax.eval_shape(model.init, jax.random.key(0), x[0])

  def plain(params: Any, examples: Examples) -> Any:
    return jax.grad(lambda p: jnp.sum(network.loss(model.apply(p, examples.x), examples.y)))(params)

  def private(params: Any, examples: Examples) -> Any:
    gradient = clipped_grad(model, network.loss, l2_clip=CLIP, method=method)
    return gradient(params, examples).total

  compiled, seconds, memory = {}, {}, {}
  with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for kind, function in {"plain": plain, "private": private}.items():
      start = time.process_time()
      compiled[kind] = jax.jit(function).lower(shapes, examples).compile()
      seconds[kind] = time.process_time() - start
      memory[kind] = compiled[kind].memory_analysis().temp_size_in_bytes / 1e6
  slow = any(issubclass(w.category, _clipping.SlowClippingWarning) for w in told)
  row = (
    f"{name:<34} {tree.size(shapes) / 1e6:6.2f}M  "
    f"memory {memory['plain']:7.1f} -> {memory['private']:7.1f} MB "
    f"({memory['private'] / memory['plain']:5.2f}x)  "
    f"compile {seconds['plain']:5.1f} -> {seconds['private']:5.1f} s "
    f"({seconds['private'] / seconds['plain']:4.1f}x)  {passes(model, network, method)}"
  )
  if rounds:
    params = model.init(jax.random.key(0), x[0])
    jobs = {
      kind: lambda f=function: jax.block_until_ready(f(params, examples))
      for kind, function in compiled.items()
    }
    found = timing.compare(jobs, rounds=rounds)
    row += f"  time {found['private'].median / found['plain'].median:5.2f}x"
  print(row + ("  SLOW PATH" if slow else ""), flush=True)


def passes(model: Model, network: Network, method: str) -> str:
  """Which method is taken."""
  x, y = (jax.ShapeDtypeStruct(v.shape[1:], v.dtype) for v in (network.x, network.y))
  params = jax.eval_shape(model.init, jax.random.key(0), x)
  leaves, treedef = jax.tree.flatten(params)

  def one(values: Any, example: Any) -> Any:
    x, y = example
    tree_ = jax.tree.unflatten(treedef, values)
    return network.loss(model.apply(tree_, x[None]), y[None])[0]

  reading = _taps.read(one, leaves, (x, y))
  two = _pass_choice.takes_two(method, reading, len(network.x))
  held = _pass_choice.held_bytes((*reading.taps, *reading.sources), len(network.x)) / 1e6
  return f"{'two passes' if two else 'one pass'} ({held:.0f} MB of factors)"


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--only", help="networks with this in their names")
  parser.add_argument("--rounds", type=int, default=7)
  parser.add_argument("--method", default="auto", choices=_clipping.METHODS)
  parser.add_argument("--no-time", action="store_true")
  parser.add_argument("--large", action="store_true", help="10M and 50M parameters, memory only")
  options = parser.parse_args()
  for name, make in (LARGE if options.large else NETWORKS).items():
    if not options.only or options.only in name:
      rounds = 0 if options.no_time or options.large else options.rounds
      measure(name, make(), options.method, rounds)


if __name__ == "__main__":
  main()
