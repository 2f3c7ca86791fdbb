"""A table of people who were hired or not, as a file."""

import csv

import numpy as np

SIZE = 600


def write(path, size=SIZE, **columns):
  """A table whose label follows from pay; `columns` replace or add some."""
  rng = np.random.default_rng(0)
  pay = rng.normal(3000, 500, size)
  table = {
    "age": rng.integers(20, 60, size).tolist(),
    "pay": np.round(pay, 2).tolist(),
    "job": rng.choice(["cook", "nurse", "clerk"], size).tolist(),
    "sex": np.where(np.arange(size) % 2 > 0, "F", "M").tolist(),
    "hired": np.where(pay > 3000, "yes", "no").tolist(),
  } | columns
  with open(path, "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
  return path
