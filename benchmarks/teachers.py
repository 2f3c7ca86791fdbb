"""200 teachers as one program, against loops.

    python benchmarks/teachers.py [--teachers 200] [--rounds 5] [--chunks 2 8]

An MLP 64-64 for each of 200 teachers with 200 examples of 100 features,
batches of 32, 20 epochs, Adam. Against it: a loop over teachers of jitted JAX
steps, and a loop in PyTorch (one thread, if it is installed), both timed on a
few teachers and scaled up. Prints CPU seconds, ratios, and the share of the
machine's matrix-product peak.
"""

import argparse
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import timing

from jaxfair import models, pate, training
from jaxfair.types import Examples

PEOPLE, FEATURES, HIDDEN, CLASSES, BATCH, EPOCHS = 200, 100, 64, 2, 32, 20
STEPS = EPOCHS * (PEOPLE // BATCH)
FEW = 10  # teachers that the loops are timed on


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--teachers", type=int, default=200)
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--chunks", type=int, nargs="*", default=[])
  options = parser.parse_args()
  parts = _parts(options.teachers)
  model = models.mlp((HIDDEN, HIDDEN), CLASSES)
  config = training.FitConfig(steps=STEPS, batch_size=BATCH)

  def together(chunk=None):
    found = pate.train_teachers(
      model, models.cross_entropy, parts, config, key=jax.random.key(0), chunk=chunk
    )
    jax.block_until_ready(found)

  def step_by_step():
    for i in range(FEW):
      x, y = jnp.asarray(parts.x[i]), jnp.asarray(parts.y[i])
      jax.block_until_ready(_loop_of_steps(model, x, y, i))

  jobs = {"train_teachers": together}
  for chunk in options.chunks:
    jobs[f"chunk {chunk}"] = functools.partial(together, chunk)
  jobs["loop of jitted steps"] = step_by_step
  if torch_loop := _torch_loop(parts):
    jobs["loop in torch"] = torch_loop
  found = timing.compare(jobs, rounds=options.rounds)
  scale = options.teachers / FEW
  found = {
    name: timing.Timing(*(scale * t for t in times)) if name.startswith("loop") else times
    for name, times in found.items()
  }
  timing.report(found, "train_teachers", f"{options.teachers} teachers: CPU time")
  widths = [FEATURES, HIDDEN, HIDDEN, CLASSES]
  weights = sum(a * b for a, b in itertools.pairwise(widths))
  # Forward, and backward by weights and by inputs; not by the first inputs.
  products = 3 * weights - FEATURES * HIDDEN
  work = 2 * BATCH * products * STEPS * options.teachers
  share = work / found["train_teachers"].median / timing.matmul_peak()
  print(f"  share of the matrix-product peak: {100 * share:.0f}%")


@functools.partial(jax.jit, static_argnames=("model", "optimizer"))
def _step(model, optimizer, params, state, x, y, rows):
  def mean_loss(p):
    logits = model.apply(p, x[rows])
    return jnp.mean(models.cross_entropy(logits, y[rows]))

  updates, state = optimizer.update(jax.grad(mean_loss)(params), state, params)
  return optax.apply_updates(params, updates), state


_ADAM = optax.adam(1e-3)


def _loop_of_steps(model, x, y, seed):
  """How one would write it without a scan."""
  rng = np.random.default_rng(seed)
  params = model.init(jax.random.key(seed), x[0])
  state = _ADAM.init(params)
  for _ in range(EPOCHS):
    order = rng.permutation(PEOPLE)
    for start in range(0, PEOPLE - BATCH + 1, BATCH):
      rows = order[start : start + BATCH]
      params, state = _step(model, _ADAM, params, state, x, y, rows)
  return params


def _torch_loop(parts):
  try:
    import torch
  except ImportError:
    return None
  torch.set_num_threads(1)

  def train(x, y):
    model = torch.nn.Sequential(
      torch.nn.Linear(FEATURES, HIDDEN),
      torch.nn.ReLU(),
      torch.nn.Linear(HIDDEN, HIDDEN),
      torch.nn.ReLU(),
      torch.nn.Linear(HIDDEN, CLASSES),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss = torch.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
      order = torch.randperm(PEOPLE)
      for start in range(0, PEOPLE - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        optimizer.zero_grad()
        loss(model(x[rows]), y[rows]).backward()
        optimizer.step()

  def loop():
    for i in range(FEW):
      train(torch.tensor(parts.x[i]), torch.tensor(parts.y[i]).long())

  return loop


def _parts(teachers):
  rng = np.random.default_rng(0)
  y = np.tile(np.arange(PEOPLE, dtype=np.int32) % CLASSES, (teachers, 1))
  x = rng.normal(size=(teachers, PEOPLE, FEATURES)).astype(np.float32)
  x[..., 0] += y
  return Examples(x, y, np.zeros_like(y))


if __name__ == "__main__":
  main()
