"""A hundred logistic regressions as one program, against loops.

    python benchmarks/fit_many.py [--members 100] [--steps 1000] [--rounds 3]

Adult's shape: 36,631 people, 104 features, Adam, batches of 256. Prints CPU
seconds, ratios, the share of the machine's matrix-product peak, and how often
something was compiled.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import timing

from jaxfair import models
from jaxfair.training import FitConfig, fit, fit_many
from jaxfair.types import Examples

PEOPLE, FEATURES, BATCH = 36_631, 104, 256


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--members", type=int, default=100)
  parser.add_argument("--steps", type=int, default=1000)
  parser.add_argument("--rounds", type=int, default=3)
  options = parser.parse_args()
  timing.use_all_cores()
  model, examples = models.logistic(2), _people()
  config = FitConfig(steps=options.steps, batch_size=BATCH)
  keys = jax.random.split(jax.random.key(0), options.members)
  few = keys[: max(1, options.members // 10)]

  def together():
    found = fit_many(model, models.cross_entropy, examples, config, keys=keys)
    jax.block_until_ready(found)

  def one_by_one():
    for key in keys:
      found = fit(model, models.cross_entropy, examples, config, key=key)
      jax.block_until_ready(found)

  def step_by_step():
    for key in few:
      jax.block_until_ready(_loop_of_steps(model, examples, config, key))

  jobs = {"fit_many": together, "loop over jitted fit": one_by_one}
  found = timing.compare(jobs, rounds=options.rounds)
  # The third takes long: a tenth of the members, scaled up.
  tenth = timing.compare({"steps": step_by_step}, rounds=options.rounds)["steps"]
  scale = options.members / len(few)
  found["loop over jitted steps"] = timing.Timing(*(scale * t for t in tenth))
  title = f"{options.members} logistic regressions, {options.steps} steps each"
  timing.report(found, "fit_many", f"{title}: CPU time")
  work = 3 * 2 * BATCH * FEATURES * 2 * options.steps * options.members
  share = work / found["fit_many"].median / timing.matmul_peak()
  print(f"  share of the matrix-product peak: {100 * share:.1f}%")
  again = _compilations(together)
  print(f"  compilations of fit_many after the first call: {again}")


@functools.partial(jax.jit, static_argnames=("model", "optimizer"))
def _step(model, optimizer, params, state, examples, rows):
  def mean_loss(p):
    logits = model.apply(p, examples.x[rows])
    return jnp.mean(models.cross_entropy(logits, examples.y[rows]))

  updates, state = optimizer.update(jax.grad(mean_loss)(params), state, params)
  return optax.apply_updates(params, updates), state


_ADAM = optax.adam(1e-3)


def _loop_of_steps(model, examples, config, key):
  """How one would write it without a scan."""
  rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
  params = model.init(key, examples.x[0])
  state = _ADAM.init(params)
  order = np.empty(0, np.int64)
  for _ in range(config.steps):
    if len(order) < BATCH:
      order = rng.permutation(PEOPLE)
    rows, order = order[:BATCH], order[BATCH:]
    params, state = _step(model, _ADAM, params, state, examples, rows)
  return params


def _people():
  rng = np.random.default_rng(0)
  y = rng.integers(0, 2, PEOPLE).astype(np.int32)
  x = rng.normal(size=(PEOPLE, FEATURES)).astype(np.float32)
  x[:, 0] += y
  return Examples(jnp.asarray(x), jnp.asarray(y), jnp.zeros(PEOPLE, jnp.int32))


def _compilations(job):
  counted = []
  listener = lambda name, *_, **__: counted.append(name)  # noqa: E731
  jax.monitoring.register_event_duration_secs_listener(listener)
  job()
  return sum("backend_compile" in name for name in counted)


if __name__ == "__main__":
  main()
