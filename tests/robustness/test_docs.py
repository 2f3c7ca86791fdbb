"""docs/robustness.md: its example runs, and its table is the library's."""

import re

import pytest

from helpers import pages
from jaxfair import robustness
from jaxfair.robustness import _surrogates

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
    "natural": robustness.natural_threshold(*PEOPLE),
    "fair": robustness.fair_threshold(*PEOPLE),
    "robust": robustness.robust_threshold(*PEOPLE, 0.2),
    "fair, by the ramp loss": robustness.equal_loss_threshold(_surrogates.ramp_loss, *PEOPLE),
  }
  for name, at in thresholds.items():
    [row] = re.findall(rf"^\| {name} \| (.*) \|$", TEXT, re.MULTILINE)
    told = [float(cell) for cell in row.split("|")]
    minus, plus = robustness.class_errors(at, *PEOPLE)
    found = [
      at,
      robustness.natural_error(at, *PEOPLE),
      abs(plus - minus),
      robustness.boundary_error(at, *PEOPLE, epsilon=0.2),
      robustness.robust_error(at, *PEOPLE, epsilon=0.2),
      robustness.mean_distance(at, *PEOPLE),
    ]
    assert told == pytest.approx([float(v) for v in found], abs=6e-4)
