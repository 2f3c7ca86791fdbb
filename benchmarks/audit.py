"""How much of a known epsilon the audits show: the tables of docs/audit.md.

Shares of the claimed epsilon, mean and minimum over seeds, at 95% confidence
and delta 1e-5: first for the Gaussian mechanism by both methods and several
numbers of runs, then for DP-SGD with several numbers of canaries.

  python benchmarks/audit.py [--seeds 10]
"""

import argparse
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import accounting, auditing, data, models
from jaxfair.auditing import _bounds
from jaxfair.privacy import noise
from jaxfair.training import DpSgdConfig, calibrate, dp_sgd

DELTA = 1e-5
RUNS: tuple[tuple[_bounds.Method, int], ...] = (
  ("gaussian", 10_000),
  ("gaussian", 100_000),
  ("threshold", 10_000),
  ("threshold", 100_000),
  ("threshold", 1_000_000),
)
CANARIES = (1000, 4000, 10_000)
STEPS, RATE = 200, 0.1


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--seeds", type=int, default=10)
  seeds = parser.parse_args().seeds
  heads = [f"{method}, {runs:,} runs" for method, runs in RUNS]
  print(f"| epsilon | {' | '.join(heads)} |")
  for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
    cells = [gaussian(epsilon, *chosen, seeds) for chosen in RUNS]
    print(f"| {epsilon:g} | {' | '.join(map(shown, cells))} |", flush=True)
  heads = [f"{m:,} canaries" for m in CANARIES]
  print(f"| epsilon | {' | '.join(heads)} |")
  for epsilon in (1.0, 2.0, 4.0, 8.0):
    cells = [canaries(epsilon, m, seeds) for m in CANARIES]
    print(f"| {epsilon:g} | {' | '.join(map(shown, cells))} |", flush=True)


def gaussian(epsilon: float, method: _bounds.Method, runs: int, seeds: int) -> np.ndarray:
  sigma = accounting.gaussian_sigma(epsilon=epsilon, delta=DELTA)
  mechanism = functools.partial(_gaussian, sigma)
  bounds = [
    auditing.audit_mechanism(
      mechanism,
      jnp.zeros(1),
      jnp.ones(1),
      num_runs=runs,
      delta=DELTA,
      key=jax.random.key(seed),
      method=method,
      chunk=4096,
    ).epsilon
    for seed in range(seeds)
  ]
  return np.array(bounds) / epsilon


def canaries(epsilon: float, num_canaries: int, seeds: int) -> np.ndarray:
  people = data.two_gaussians((2000, 2000), key=jax.random.key(0)).examples
  size = people.size + num_canaries
  batch_size = int(RATE * size)
  config = calibrate(
    DpSgdConfig(learning_rate=0.5, steps=STEPS, batch_size=batch_size),
    size,
    epsilon=epsilon,
    delta=DELTA,
  )
  public: Any = {"sampling_rate": batch_size / size, "noise_multiplier": config.noise_multiplier}
  recorder = auditing.likelihood_recorder(optax.sgd, l2_clip=1.0, batch_size=batch_size, **public)
  config = dataclasses.replace(config, optimizer=recorder)
  hidden = auditing.gradient_canaries(
    models.logistic(2), models.cross_entropy, people, num_canaries=num_canaries
  )
  guesses = auditing.plan_guesses(
    num_canaries, delta=DELTA, separation=auditing.likelihood_separation(steps=STEPS, **public)
  )

  @jax.jit
  def train(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    key_coins, key_training = jax.random.split(key)
    coins = hidden.flip(key=key_coins)
    fitted = dp_sgd(hidden.model, hidden.loss, hidden.hide(people, coins), config, key=key_training)
    return hidden.scores(fitted.params), coins

  bounds = []
  for seed in range(seeds):
    scores, coins = map(np.asarray, train(jax.random.key(seed)))
    found = auditing.audit_one_run(scores, coins, delta=DELTA, guesses=guesses)
    bounds.append(found.epsilon)
  return np.array(bounds) / epsilon


def shown(shares: np.ndarray) -> str:
  return f"{shares.mean():.2f} ({shares.min():.2f})"


def _gaussian(sigma: float, value: Any, key: jax.Array) -> Any:
  return noise.gaussian(value, sigma=sigma, key=key)


if __name__ == "__main__":
  main()
