"""A hundred private trainings on Bank's shape, in one compiled call.

    pip install -e .[bench]
    python benchmarks/dp_sgd_seeds.py [--seeds 100] [--steps 400] [--no-peers]

Against a loop of jitted trainings, and against Opacus (Poisson sampling, hooks)
run three times and scaled. Once by CPU time, once by the clock: the compiled
call uses every core. Torch runs with one thread.
"""

import argparse
import functools
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import timing

from jaxfair import models
from jaxfair.training import DpSgdConfig, dp_sgd, fit_many
from jaxfair.types import Examples

PEOPLE, FEATURES, HIDDEN, BATCH = 33_908, 48, 32, 256
OPACUS_RUNS = 3


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--seeds", type=int, default=100)
  parser.add_argument("--steps", type=int, default=400)
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--no-peers", action="store_true")
  options = parser.parse_args()
  timing.use_all_cores()
  model, examples = models.mlp((HIDDEN,), 2), _people()
  config = DpSgdConfig(steps=options.steps, batch_size=BATCH)
  keys = jax.random.split(jax.random.key(0), options.seeds)

  def together():
    found = fit_many(model, models.cross_entropy, examples, config, keys=keys, trainer=dp_sgd)
    jax.block_until_ready(found)

  def one_by_one():
    for key in keys:
      found = dp_sgd(model, models.cross_entropy, examples, config, key=key)
      jax.block_until_ready(found)

  jobs = {"one compiled call": together, "loop of jitted calls": one_by_one}
  clocks = {"CPU time": time.process_time, "clock time": time.perf_counter}
  for told, clock in clocks.items():
    found = timing.compare(jobs, rounds=options.rounds, clock=clock)
    if not options.no_peers:
      once = timing.compare(
        {"opacus": functools.partial(_opacus, examples, options.steps)},
        rounds=OPACUS_RUNS,
        clock=clock,
      )["opacus"]
      scaled = timing.Timing(*(options.seeds * t for t in once))
      found[f"Opacus (scaled from {OPACUS_RUNS} runs)"] = scaled
    title = f"{options.seeds} trainings of {options.steps} steps: {told}"
    timing.report(found, "one compiled call", title)


def _opacus(examples, steps):
  import torch
  from opacus import PrivacyEngine
  from torch import nn

  torch.set_num_threads(1)
  network = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2))
  x = torch.from_numpy(np.array(examples.x))
  y = torch.from_numpy(np.array(examples.y)).long()
  data = torch.utils.data.TensorDataset(x, y)
  loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
  optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
  loss = nn.CrossEntropyLoss()
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    network, optimizer, loader = PrivacyEngine().make_private(
      module=network,
      optimizer=optimizer,
      data_loader=loader,
      noise_multiplier=1.0,
      max_grad_norm=1.0,
    )
    done = 0
    while done < steps:
      for inputs, targets in loader:
        optimizer.zero_grad()
        loss(network(inputs), targets).backward()
        optimizer.step()
        done += 1
        if done == steps:
          break


def _people():
  rng = np.random.default_rng(0)
  y = rng.integers(0, 2, PEOPLE).astype(np.int32)
  x = rng.normal(size=(PEOPLE, FEATURES)).astype(np.float32)
  x[:, 0] += y
  return Examples(jnp.asarray(x), jnp.asarray(y), jnp.zeros(PEOPLE, jnp.int32))


if __name__ == "__main__":
  main()
