"""Cost of looking at pruned networks, of fair pruning, and of a ResNet's top
eigenvalue in bounded memory.

  python benchmarks/pruning.py [impact] [constraint] [check] [memory]

Without a name all of them run. Times are CPU time of the process after
compilation, ways taken in turn; memory is what the compiler reserves, and the
largest resident size of the process that did the work.
"""

import argparse
import functools
import resource
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse.linalg
import timing

from jaxfair import models, pruning, training, tree
from jaxfair.analysis import _streamed_products
from jaxfair.pruning import _constraints
from jaxfair.types import Examples, Params

KEY = jax.random.key(0)
LOSS = models.cross_entropy
CHUNK = 32  # images at a time
RATES = tuple(np.linspace(0.05, 0.95, 19).round(2).tolist())


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("parts", nargs="*", help="impact, constraint, check, memory")
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--side", type=int, default=12, help="pixels, memory")
  parser.add_argument("--images", type=int, default=1000, help="of a group")
  parser.add_argument("--steps", type=int, default=8, help="of Lanczos")
  arguments = parser.parse_args()
  parts = arguments.parts or ["impact", "constraint", "check", "memory"]
  if "impact" in parts:
    impact(arguments.rounds)
  if "constraint" in parts:
    constraint(arguments.rounds)
  if "check" in parts:
    check(arguments.side, 2 * arguments.steps)
  if "memory" in parts:
    memory(arguments.side, arguments.images, arguments.steps)


def people(count: int, shape: tuple[int, ...], num_groups: int) -> Examples:
  rng = np.random.default_rng(0)
  x = rng.normal(size=(count, *shape)).astype(np.float32)
  group = (np.arange(count) % num_groups).astype(np.int32)
  return Examples(x, group, group)


def impact(rounds: int) -> None:
  """19 rates and 10 groups: one call against the usual loops."""
  some = people(5000, (784,), 10)
  model = models.mlp((64,), 10)
  params = model.init(KEY, some.x[0])
  apply = jax.jit(model.apply)
  parts = [some.take(np.flatnonzero(some.group == a)) for a in range(10)]
  gradient = jax.jit(
    lambda p, own: tree.norm(jax.grad(lambda q: jnp.mean(LOSS(model.apply(q, own.x), own.y)))(p))
  )

  def one_call() -> object:
    return jax.block_until_ready(
      pruning.impact(model, LOSS, params, some, num_groups=10, rates=RATES)
    )

  def loop() -> object:
    found = []
    for rate in RATES:
      flat = np.concatenate([np.ravel(v) for v in jax.tree.leaves(params)])
      cut = np.quantile(np.abs(flat), rate)
      pruned = jax.tree.map(lambda v, c=cut: v * (jnp.abs(v) > c), params)
      for own in parts:
        logits = apply(pruned, own.x)
        losses = LOSS(logits, own.y)
        right = jnp.argmax(logits, -1) == own.y
        found.append((float(losses.mean()), float(right.mean()), gradient(pruned, own)))
    return jax.block_until_ready(found)

  times = timing.compare({"one call": one_call, "loop": loop}, rounds=rounds)
  title = "impact: 19 rates, 10 groups of 500, MLP 784-64-10"
  timing.report(times, "one call", title)


def constraint(rounds: int) -> None:
  """100 fine-tuning steps under no, relaxed and full constraints."""
  some = people(1000, (144,), 5)
  model = models.mlp((16,), 5)
  params = model.init(KEY, some.x[0])
  jobs = {}
  for name, notion in (
    ("none", None),
    ("relaxed", _constraints.relaxed(5, LOSS)),
    ("full", _constraints.full(model, LOSS, 5)),
  ):
    config = training.LagrangianConfig(
      constraint=notion, rounds=10, steps_per_round=10, batch_size=128, dual_size=128
    )

    def job(config: training.LagrangianConfig = config) -> object:
      return jax.block_until_ready(
        training.lagrangian(model, LOSS, some, config, key=KEY, initial=params).params
      )

    jobs[name] = job
  times = timing.compare(jobs, rounds=rounds)
  title = "constraints: 100 steps, batch 128, MLP 144-16-5, 5 groups"
  timing.report(times, "relaxed", title)


def memory(side: int, images: int, steps: int) -> None:
  """ResNet-18: what a Hessian-vector product reserves, and a real run."""
  model = models.resnet(18, 2)
  some = people(2 * images, (side, side, 1), 2)
  params = model.init(KEY, some.x[0])
  size = tree.size(params)
  print(f"memory: ResNet-18, {size:,} parameters, {side} x {side} pixels")
  for count in (CHUNK, images):
    own = _streamed_products.Chunk(some.take(slice(count)), np.zeros(count, np.float32))
    product = _streamed_products._product.lower(model, LOSS, params, own, params)
    reserved = product.compile().memory_analysis().temp_size_in_bytes
    print(f"  {count} images at once: {reserved / 2**20:,.0f} MB reserved")
  vector = 4 * size / 2**20
  print(f"  30 Lanczos vectors: {30 * vector:,.0f} MB; 3: {3 * vector:,.0f} MB")
  print(f"  before the first product the process held {_peak():,.0f} MB")
  *groups, _ = _streamed_products.chunks_by_group(some, 2, CHUNK)
  for index, group in enumerate(groups):
    start = time.process_time()
    ritz = _streamed_products.ritz_streamed(
      functools.partial(_streamed_products.mean_product, model, LOSS, params, group),
      _start(params, index),
      steps,
    )
    for step, (value, error) in enumerate(ritz, 1):
      print(
        f"  group {index} of {images}, {CHUNK} at a time, step {step}: value "
        f"{value:.6g}, residual {error:.1e}, "
        f"{time.process_time() - start:.0f} CPU s, peak {_peak():,.0f} MB",
        flush=True,
      )
      if error < 1e-3 * abs(value):
        break


def check(side: int, steps: int) -> None:
  """The streamed value beside ARPACK's, on 64 images in one program."""
  model = models.resnet(18, 2)
  some = people(2 * CHUNK, (side, side, 1), 1)
  params = model.init(KEY, some.x[0])
  flat, unravel = jax.flatten_util.ravel_pytree(params)

  def mean(vector: jax.Array) -> jax.Array:
    return jnp.mean(LOSS(model.apply(unravel(vector), some.x), some.y))

  # The parameters are an argument: as constants the compiler would fold them.
  product = jax.jit(lambda p, v: jax.jvp(jax.grad(mean), (p,), (v,))[1])
  operator = scipy.sparse.linalg.LinearOperator(
    (flat.size, flat.size),
    dtype=np.float32,
    matvec=lambda v: np.asarray(product(flat, v.ravel().astype(np.float32))),
  )
  theirs = scipy.sparse.linalg.eigsh(
    operator, 1, which="LA", ncv=10, tol=1e-4, return_eigenvectors=False
  )
  group, _ = _streamed_products.chunks_by_group(some, 1, CHUNK)
  ours, error = _streamed_products.largest_streamed(
    functools.partial(_streamed_products.mean_product, model, LOSS, params, group),
    _start(params, 0),
    steps,
  )
  print(
    f"check: 64 images, {steps} streamed steps {ours:.7g} (residual "
    f"{error:.1e}), ARPACK with ten vectors {float(theirs[0]):.7g}"
  )


def _start(params: Params, index: int) -> Params:
  flat, unravel = jax.flatten_util.ravel_pytree(params)
  return unravel(jax.random.normal(jax.random.fold_in(KEY, index), flat.shape))


def _peak() -> float:
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
  main()
