"""What one private step costs over the plain one, beside the peers.

    pip install -e .[bench]
    python benchmarks/step_cost.py [--batch 256] [--rounds 11] [--no-peers]

Same model, same batch, one process, one run; the unit is the plain jitted step
of the same model. Torch runs with one thread. Memory is what the compiler
reserves for a step beyond its arguments and results.
"""

import argparse
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import timing

from jaxfair import models, tree
from jaxfair.privacy import clipped_grad, noise
from jaxfair.types import Examples

CLIP, SIGMA, RATE = 1.0, 1.0, 0.1


MEMORY_BATCHES = (256, 1024, 4096)


def steps_in_jax(model, size):
  """name -> step `(params, examples, key) -> params`, to be jitted."""

  def plain(params, examples, key):
    del key

    def mean_loss(p):
      losses = models.cross_entropy(model.apply(p, examples.x), examples.y)
      return jnp.mean(losses)

    return _descend(params, jax.grad(mean_loss)(params))

  def ours(params, examples, key, method="ghost", noisy=True):
    gradient = clipped_grad(model, models.cross_entropy, l2_clip=CLIP, method=method)
    total = gradient(params, examples).total
    if noisy:
      total = noise.gaussian(total, sigma=SIGMA * gradient.sensitivity, key=key)
    return _descend(params, tree.scale(1 / size, total))

  return {
    "plain": plain,
    "jaxfair, no noise": functools.partial(ours, noisy=False),
    "jaxfair": ours,
    "jaxfair, method=vmap": functools.partial(ours, method="vmap"),
  }


def steps_of_peers(model, size):
  """The same for optax.contrib and jax_privacy."""
  import jax_privacy

  def optax_contrib(params, examples, key):
    grads = jax.vmap(jax.grad(functools.partial(_one_loss, model)), (None, 0, 0))(
      params, examples.x, examples.y
    )
    transform = optax.contrib.differentially_private_aggregate(CLIP, SIGMA, key=key)
    mean, _ = transform.update(grads, transform.init(params))
    return _descend(params, mean)

  def jax_privacy_step(params, examples, key, microbatch):
    gradient = jax_privacy.clipped_grad(
      lambda p, x, y: jnp.mean(models.cross_entropy(model.apply(p, x), y)),
      l2_clip_norm=CLIP,
      normalize_by=size,
      batch_argnums=(1, 2),
      microbatch_size=microbatch,
    )
    mean = gradient(params, examples.x, examples.y)
    leaves, structure = jax.tree.flatten(mean)
    keys = jax.random.split(key, len(leaves))
    scale = SIGMA * gradient.sensitivity()
    noisy = [
      leaf + scale * jax.random.normal(k, leaf.shape) for leaf, k in zip(leaves, keys, strict=True)
    ]
    return _descend(params, jax.tree.unflatten(structure, noisy))

  steps = {"optax.contrib": optax_contrib}
  for microbatch in (None, 8, 32):
    told = "default" if microbatch is None else f"microbatch {microbatch}"
    steps[f"jax_privacy, {told}"] = functools.partial(jax_privacy_step, microbatch=microbatch)
  return steps


def jobs_in_jax(model, examples, peers):
  """name -> job: one jitted step each."""
  params = model.init(jax.random.key(0), examples.x[0])
  key = jax.random.key(1)
  steps = steps_in_jax(model, examples.size)
  if peers:
    steps |= steps_of_peers(model, examples.size)
  jobs = {}
  for name, step in steps.items():
    # The people are arguments: of constants the compiler might fold norms.
    compiled = jax.jit(step)
    jobs[name] = lambda f=compiled: jax.block_until_ready(f(params, examples, key))
  return jobs


def print_memory(kind, model, shape, classes):
  """Prints what a step needs in memory, by batch size."""
  print(f"\n{kind}: memory of a step in MB, batch {MEMORY_BATCHES}")
  found = {}
  for size in MEMORY_BATCHES:
    examples = _batch(shape, classes, size)
    params = model.init(jax.random.key(0), examples.x[0])
    for name, step in steps_in_jax(model, size).items():
      lowered = jax.jit(step).lower(params, examples, jax.random.key(1))
      used = lowered.compile().memory_analysis().temp_size_in_bytes
      found.setdefault(name, []).append(f"{used / 1e6:9.2f}")
  for name, used in found.items():
    print(f"  {name:<22}{''.join(used)}")


OPACUS = {
  "plain": "torch, plain",
  "hooks": "Opacus, hooks",
  "ew": "Opacus, ExpandedWeights",
  "ghost": "Opacus, ghost",
}


def jobs_in_torch(kind, examples):
  """Opacus in its three modes, and plain torch, on the same architecture."""
  import torch
  from opacus import PrivacyEngine

  torch.set_num_threads(1)
  x = torch.from_numpy(np.array(examples.x))
  x = x.permute(0, 3, 1, 2).contiguous() if kind == "cnn" else x
  y = torch.from_numpy(np.array(examples.y)).long()
  jobs = {}
  for mode in OPACUS:
    network = _torch_network(kind)
    loss = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    if mode != "plain":
      data = torch.utils.data.TensorDataset(x, y)
      loader = torch.utils.data.DataLoader(data, batch_size=len(x))
      with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = PrivacyEngine().make_private(
          module=network,
          optimizer=optimizer,
          data_loader=loader,
          criterion=loss,
          noise_multiplier=SIGMA,
          max_grad_norm=CLIP,
          poisson_sampling=False,
          grad_sample_mode=mode,
        )
      network, optimizer = made[0], made[1]
      loss = made[2] if mode == "ghost" else loss

    def job(network=network, optimizer=optimizer, loss=loss):
      optimizer.zero_grad()
      loss(network(x), y).backward()
      optimizer.step()

    jobs[OPACUS[mode]] = job
  return jobs


def _torch_network(kind):
  from torch import nn

  if kind == "mlp":
    return nn.Sequential(
      nn.Linear(100, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)
    )
  return nn.Sequential(
    nn.Conv2d(1, 16, 3, 2, 1),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, 2, 1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(7 * 7 * 32, 10),
  )


def _one_loss(model, params, x, y):
  return models.cross_entropy(model.apply(params, x[None]), y[None])[0]


def _descend(params, gradient):
  return jax.tree.map(lambda p, g: p - RATE * g, params, gradient)


def _batch(shape, classes, size):
  rng = np.random.default_rng(0)
  x = rng.normal(size=(size, *shape)).astype(np.float32)
  y = rng.integers(0, classes, size).astype(np.int32)
  return Examples(jnp.asarray(x), jnp.asarray(y), jnp.zeros(size, jnp.int32))


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--batch", type=int, default=256)
  parser.add_argument("--rounds", type=int, default=11)
  parser.add_argument("--no-peers", action="store_true")
  options = parser.parse_args()
  cases = {
    "mlp": (models.mlp((128, 128), 2), (100,), 2, 20),
    "cnn": (models.convnet(10), (28, 28, 1), 10, 5),
  }
  for kind, (model, shape, classes, calls) in cases.items():
    examples = _batch(shape, classes, options.batch)
    jobs = jobs_in_jax(model, examples, not options.no_peers)
    if not options.no_peers:
      jobs |= jobs_in_torch(kind, examples)
    found = timing.compare(jobs, rounds=options.rounds, calls=calls)
    timing.report(found, "plain", f"{kind}, batch {options.batch}: CPU time a step")
    print_memory(kind, model, shape, classes)


if __name__ == "__main__":
  main()
