"""Table 5: what is compared with what, and what a run's time is."""

import numpy as np
import pytest

from jaxfair import experiments
from jaxfair.studies.fairpate import times


def table(**seconds):
  """Two seeds, the second twice as slow throughout."""
  methods = list(seconds)
  slow = [1.0] * len(methods) + [2.0] * len(methods)
  values = np.array(list(seconds.values()) * 2) * slow
  return experiments.Table(
    {
      "method": methods * 2,
      "seed": [0] * len(methods) + [1] * len(methods),
      "seconds": values,
      "after_teachers": values / 10,
    }
  )


TIMES = {
  "pate": 1.0,
  "fairpate": 1.1,
  "dp_sgd": 4.0,
  "fair_dp_sgd": 11.0,
  "fair_dp_sgd_inside": 22.0,
  "fair_dp_sgd_listed": 44.0,
}


def test_ratios_are_those_of_one_seed():
  found = times.STUDY.derive(table(**TIMES))
  for name, expected in {
    "fairpate_over_pate": 1.1,
    "sgd_over_fairpate": 10.0,
    "inside_over_fairpate": 20.0,
    "listed_over_fairpate": 40.0,
    "sgd_over_setting": 100.0,
  }.items():
    np.testing.assert_allclose(found[name], expected)


@pytest.mark.parametrize(
  ("fairpate", "verdict"), [(1.1, "supported"), (1.2, "not supported"), (1.3, "not supported")]
)
def test_at_most_so_long_means_the_interval_is_below(fairpate, verdict):
  found = times.STUDY.derive(table(**TIMES | {"fairpate": fairpate}))
  [claim] = [c for c in times.STUDY.claims if "costs what" in c.name]
  assert claim.check(found).verdict == verdict


def test_the_time_of_a_job_leaves_its_compilation_out():
  calls = []

  def job():
    calls.append(1)
    if len(calls) == 1:  # the first run is slow, as if it compiled
      sum(range(3_000_000))
    return 0

  assert times._cpu_seconds("a program", job) < 0.01
  assert len(calls) == 2
  times._cpu_seconds("a program", job)
  assert len(calls) == 3
