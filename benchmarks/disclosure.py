"""Personalized disclosure for all people at once, beside a loop over people.

    JAXFAIR_DATA=folder python benchmarks/disclosure.py

A linear model on Bank, 7 sensitive columns, the paper's order by entropy with
1,000 imagined answers, delta = 0. The loop is NumPy in float64, one person
after another, on the same work; it is timed on a few people.
"""

import argparse
import time

import jax
import numpy as np
import scipy.special

from jaxfair import data, disclosure, models, training

SENSITIVE = ("job", "month", "poutcome", "housing", "contact", "pdays", "day")


def main() -> None:
  """Prints seconds for all people, and the ratio of CPU time per person."""
  options = argparse.ArgumentParser(description=__doc__)
  options.add_argument("--people", type=int, default=9000)
  options.add_argument("--draws", type=int, default=1000)
  options.add_argument("--loop-people", type=int, default=100)
  chosen = options.parse_args()
  bank = data.load("bank", group="age")
  prepared = data.prepare(bank, (0.7, 0.3), key=jax.random.key(0), scale="minmax")
  model = models.logistic(2)
  params = training.fit(
    model,
    models.cross_entropy,
    prepared.train,
    training.FitConfig(learning_rate=0.02, steps=500),
    key=jax.random.key(1),
  ).params
  law = disclosure.fit_gaussian(prepared.train.x)
  _, asked = disclosure.questions(bank.feature_names, bank.columns, SENSITIVE)
  x = prepared.test.x[: chosen.people]
  best = {
    "entropy": _timed(disclosure.ByEntropy(chosen.draws), model, params, law, asked, x),
    "variance": _timed(disclosure.ByVariance(), model, params, law, asked, x),
    "progress": _timed(disclosure.ByProgress(), model, params, law, asked, x),
  }
  for name, (wall, cpu, leakage) in best.items():
    print(
      f"{name:>9}: {len(x)} people, wall {wall:.2f} s, CPU {cpu:.2f} s, "
      f"{leakage:.3f} of 7 columns revealed"
    )
  begun = time.process_time()
  few = x[:: max(len(x) // chosen.loop_people, 1)]
  counts = [_loop(params, law, asked, row, chosen.draws) for row in few]
  each = (time.process_time() - begun) / len(few)
  ratio = each * len(x) / best["entropy"][1]
  print(
    f"     loop: {each * 1e3:.2f} ms CPU a person ({np.mean(counts):.3f} "
    f"columns), {each * len(x):.0f} s for all: {ratio:.0f} times entropy"
  )


def _timed(chooser, model, params, law, asked, x):
  def call():
    found = disclosure.disclose(
      model, params, law, asked, x, chooser=chooser, key=jax.random.key(2)
    )
    return jax.block_until_ready(found)

  call()
  walls, cpus = [], []
  for _ in range(3):
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    walls.append(time.perf_counter() - wall)
    cpus.append(time.process_time() - cpu)
  return np.median(walls), np.median(cpus), float(found.count.mean())


def _loop(params, law, asked, x, draws):
  """Algorithm 2 for one person, as one would write it in NumPy."""
  rng = np.random.default_rng(0)
  theta = np.asarray(params["w"][:, 1] - params["w"][:, 0], float)
  bias = float(params["b"][1] - params["b"][0])
  mean, covariance = (np.asarray(part, float) for part in law)
  worth = asked.values @ theta
  revealed = np.zeros(asked.size, bool)
  while True:
    known = ~asked.members[~revealed].any(axis=0)
    seen = bias + theta[known] @ x[known]
    low = seen + worth[~revealed].min(axis=1).sum()
    high = seen + worth[~revealed].max(axis=1).sum()
    if low > 0 or high < 0 or revealed.all():
      return int(revealed.sum())
    center, rest = _given(mean, covariance, known, x)
    scores = np.full(asked.size, -np.inf)
    for j in np.flatnonzero(~revealed):
      own = asked.members[j]
      answers = rng.multivariate_normal(center[own], rest[np.ix_(own, own)], draws, method="eigh")
      inverse = np.linalg.pinv(rest[np.ix_(own, own)], hermitian=True)
      gain = rest[:, own] @ inverse
      left = rest - gain @ rest[own]
      margins = bias + theta @ center + (answers - center[own]) @ (theta @ gain)
      deviation = np.sqrt(max(theta @ left @ theta, 1e-12))
      chance = scipy.special.ndtr(margins / deviation)
      entropy = scipy.special.entr(chance) + scipy.special.entr(1 - chance)
      scores[j] = -entropy.mean()
    revealed[np.argmax(scores)] = True


def _given(mean, covariance, known, x):
  center, rest = mean.copy(), np.zeros_like(covariance)
  inner = covariance[np.ix_(known, known)]
  gain = np.linalg.lstsq(inner, covariance[known][:, ~known], rcond=None)[0].T
  center[known] = x[known]
  center[~known] += gain @ (x[known] - mean[known])
  hidden = np.ix_(~known, ~known)
  rest[hidden] = covariance[hidden] - gain @ covariance[known][:, ~known]
  return center, rest


if __name__ == "__main__":
  main()
