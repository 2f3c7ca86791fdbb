"""docs/robustness.md: its example runs, and its table is the library's."""

import re

import pytest

from helpers import pages
from jaxfair.robustness import _gaussians, _surrogates

PAGE = "docs/robustness.md"
TEXT = pages.read(PAGE)
PEOPLE = (-1.0, 1.0, 5.0)


@pytest.mark.slow
def test_the_example_runs_and_hardens(capsys):
  pages.run(PAGE, blocks=1)
  lines = [
    [float(v) for v in re.findall(r"\d+\.\d*", line)]
    for line in capsys.readouterr().out.splitlines()
  ]
  assert lines[1][2] < lines[0][2]  # the robust error at epsilon 0.1


def test_the_table_of_thresholds():
  thresholds = {
    "natural": _gaussians.natural_threshold(*PEOPLE),
    "fair": _gaussians.fair_threshold(*PEOPLE),
    "robust": _gaussians.robust_threshold(*PEOPLE, 0.2),
    "fair, by the ramp loss": _surrogates.equal_loss_threshold(_surrogates.ramp_loss, *PEOPLE),
  }
  for name, at in thresholds.items():
    [row] = re.findall(rf"^\| {name} \| (.*) \|$", TEXT, re.MULTILINE)
    told = [float(cell) for cell in row.split("|")]
    minus, plus = _gaussians.class_errors(at, *PEOPLE)
    found = [
      at,
      _gaussians.natural_error(at, *PEOPLE),
      abs(plus - minus),
      _gaussians.boundary_error(at, *PEOPLE, epsilon=0.2),
      _gaussians.robust_error(at, *PEOPLE, epsilon=0.2),
      _gaussians.mean_distance(at, *PEOPLE),
    ]
    assert told == pytest.approx([float(v) for v in found], abs=6e-4)
