"""Frontiers: jaxfair against plain Python loops, and pymoo if it is there.

Non-dominated sets of settings in four objectives, exact hypervolumes of
frontiers, and the chance of being on the frontier over draws of seeds. CPU
time of the process, variants in turn in one run.

  python benchmarks/frontier.py [--quick]
"""

import argparse

import jax
import numpy as np
import timing

from jaxfair import frontier

BETTER = ["low"] * 4


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--quick", action="store_true", help="fewer points")
  quick = parser.parse_args().quick
  rng = np.random.default_rng(0)
  settings = rng.random((500 if quick else 2000, 4))
  peer = pymoo()
  jobs = {
    "jaxfair": lambda: frontier.non_dominated(settings, BETTER).on,
    "loop over pairs": lambda: loop_non_dominated(settings),
  }
  if peer is not None:
    jobs["pymoo"] = lambda: peer[0](settings)
  assert jobs["jaxfair"]().tolist() == jobs["loop over pairs"]().tolist()
  timing.report(
    timing.compare(jobs, rounds=3),
    "jaxfair",
    f"non-dominated among {len(settings)} settings, 4 objectives",
  )

  for dims, size in ((3, 60), (4, 20 if quick else 40), (4, 500)):
    points = sphere(rng, size, dims)
    volumes(points, peer, brute=size < 100)

  values = rng.random((len(settings), 10, 4))
  cloud = frontier.points(values)
  key = jax.random.key(0)
  found = timing.compare(
    {"jaxfair": lambda: frontier.attainment(cloud, key=key, draws=100)}, rounds=3
  )
  timing.report(
    found, "jaxfair", f"chance of being on the frontier, {len(settings)} settings, 100 draws"
  )


def volumes(points: np.ndarray, peer: tuple | None, *, brute: bool) -> None:
  """Times the hypervolume of one frontier."""
  size, dims = points.shape
  corner = [1.0] * dims
  jobs = {"jaxfair": lambda: frontier.hypervolume(points, ["low"] * dims, reference=corner)}
  if brute:
    jobs["recursive loop"] = lambda: loop_volume(points.tolist(), corner)
    np.testing.assert_allclose(*(job() for job in jobs.values()), rtol=1e-9)
  if peer is not None:
    jobs["pymoo"] = lambda: peer[1](points, corner)
  found = timing.compare(jobs, rounds=3)
  timing.report(found, "jaxfair", f"hypervolume of {size} points, {dims} axes")


def sphere(rng: np.random.Generator, size: int, dims: int) -> np.ndarray:
  """Points none of which beats another."""
  drawn = np.abs(rng.normal(size=(size, dims)))
  return 1 - drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def loop_non_dominated(values: np.ndarray) -> np.ndarray:
  """The definition, pair by pair, with tuples of Python floats."""
  rows = [tuple(row) for row in values.tolist()]

  def beaten(a: tuple) -> bool:
    return any(b != a and all(x <= y for x, y in zip(b, a, strict=True)) for b in rows)

  return np.array([not beaten(a) for a in rows])


def loop_volume(rows: list, corner: list) -> float:
  """Slices along the last objective, each a volume of one axis fewer."""
  if len(corner) == 1:
    return corner[0] - min(row[0] for row in rows)
  rows = sorted(rows, key=lambda row: row[-1])
  volume = 0.0
  for i, row in enumerate(rows):
    end = rows[i + 1][-1] if i + 1 < len(rows) else corner[-1]
    if end > row[-1]:
      below = [other[:-1] for other in rows[: i + 1]]
      volume += (end - row[-1]) * loop_volume(below, corner[:-1])
  return volume


def pymoo() -> tuple | None:
  """pymoo's two functions, if it is installed."""
  try:
    from pymoo.indicators.hv import HV
    from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting
  except ImportError:
    return None
  sort = NonDominatedSorting()
  return (
    lambda values: sort.do(values, only_non_dominated_front=True),
    lambda values, corner: HV(ref_point=np.array(corner))(values),
  )


if __name__ == "__main__":
  main()
