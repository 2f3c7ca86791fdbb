"""Cost of noise: CPU time per draw, ours beside JAX's and NumPy's.

Every contender draws the same number of values. The contenders take turns, and
the median over the rounds is shown with its quartiles: CPU time of the process,
in one run, after compilation. The last column says how far the draws reach.

  python benchmarks/noise.py [--draws 1000000] [--rounds 21]
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair.privacy import exact, noise, randomized_response
from jaxfair.privacy._normal import normal

KEY = jax.random.key(0)


class Contender(NamedTuple):
  """Something that draws; `tails` says how far its draws reach."""

  name: str
  run: Callable[[], Any]
  tails: str


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--draws", type=int, default=1_000_000)
  parser.add_argument("--rounds", type=int, default=21)
  arguments = parser.parse_args()
  count, rounds = arguments.draws, arguments.rounds

  show("normal draws, float32", normals(count), count, rounds)
  show("added to a tree of 6 leaves", trees(), LEAF_TOTAL, rounds)
  show("integers, compiled", compiled(count), count, rounds)
  host = max(count // 10, 1000)
  show("integers, exact, on the host", exactly(host), host, max(rounds // 4, 3))


def normals(count: int) -> list[Contender]:
  rng = np.random.default_rng(0)
  ours = jax.jit(lambda: normal(KEY, (count,)))
  jaxs = jax.jit(lambda: jax.random.normal(KEY, (count,)))
  return [
    Contender("jaxfair.privacy._normal", ours, "9.1 sigma"),
    Contender("jax.random.normal", jaxs, "5.4 sigma"),
    Contender(
      "numpy standard_normal (float32)", lambda: rng.standard_normal(count, np.float32), "full"
    ),
    Contender("numpy standard_normal (float64)", lambda: rng.standard_normal(count), "full"),
  ]


SHAPES = ((100, 128), (128,), (128, 128), (128,), (128, 2), (2,))
LEAF_TOTAL = sum(int(np.prod(shape)) for shape in SHAPES)


def trees() -> list[Contender]:
  value = [jnp.zeros(shape) for shape in SHAPES]

  def per_leaf(tree: Any, key: Any) -> Any:
    keys = jax.random.split(key, len(tree))
    return [leaf + jax.random.normal(k, leaf.shape) for leaf, k in zip(tree, keys, strict=True)]

  ours = jax.jit(lambda tree, key: noise.gaussian(tree, sigma=1.0, key=key))
  theirs = jax.jit(per_leaf)
  return [
    Contender("noise.gaussian", lambda: ours(value, KEY), "9.1 sigma"),
    Contender("jax.random.normal per leaf", lambda: theirs(value, KEY), "5.4 sigma"),
  ]


def compiled(count: int) -> list[Contender]:
  zeros = jnp.zeros(count, jnp.int32)

  def jitted(add: Callable[..., Any], **setting: Any) -> Callable[[], Any]:
    run = jax.jit(lambda value: add(value, key=KEY, **setting))
    return lambda: run(zeros)

  rounded = jax.jit(lambda: jnp.round(50 * normal(KEY, (count,))).astype(jnp.int32))
  gaussian, laplace = noise.discrete_gaussian, noise.discrete_laplace
  contenders = [
    Contender(f"discrete_gaussian, sigma {sigma}", jitted(gaussian, sigma=sigma), "to 2^-110")
    for sigma in (1, 50, 1000)
  ] + [
    Contender(f"discrete_laplace, scale {scale}", jitted(laplace, scale=scale), "to 2^-110")
    for scale in (1, 50)
  ]
  response = jitted(randomized_response, epsilon=1.0, num_categories=5)
  return [
    *contenders,
    Contender("randomized_response, 5 categories", response, "exact epsilon"),
    Contender("rounded normal, sigma 50 (another law)", rounded, "9.1 sigma"),
  ]


def exactly(count: int) -> list[Contender]:
  zeros = np.zeros(count, np.int64)
  return [
    Contender(
      "exact.discrete_gaussian, sigma 50", lambda: exact.discrete_gaussian(zeros, sigma=50), "exact"
    ),
    Contender(
      "exact.discrete_gaussian, sigma 50.3",
      lambda: exact.discrete_gaussian(zeros, sigma=50.3),
      "exact",
    ),
    Contender(
      "exact.discrete_laplace, scale 50.3",
      lambda: exact.discrete_laplace(zeros, scale=50.3),
      "exact",
    ),
  ]


def show(title: str, contenders: list[Contender], count: int, rounds: int) -> None:
  for contender in contenders:
    jax.block_until_ready(contender.run())
  seconds = np.zeros((rounds, len(contenders)))
  for i in range(rounds):
    for j, contender in enumerate(contenders):
      start = time.process_time()
      jax.block_until_ready(contender.run())
      seconds[i, j] = time.process_time() - start
  low, middle, high = np.percentile(seconds / count * 1e9, (25, 50, 75), axis=0)
  print(f"{title}: {count} draws, {rounds} rounds, CPU ns per draw")
  for j, contender in enumerate(contenders):
    print(
      f"  {contender.name:<40} {middle[j]:8.1f}  [{low[j]:.1f}, {high[j]:.1f}]"
      f"  tails: {contender.tails}"
    )


if __name__ == "__main__":
  main()
