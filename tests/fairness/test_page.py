"""The example of docs/metrics.md runs as it is printed."""

import re

import pytest

from helpers import pages
from jaxfair import fairness


@pytest.mark.slow
def test_the_example_runs(capsys):
  names = pages.run("docs/metrics.md", blocks=1)
  told = capsys.readouterr().out
  assert "equalized odds difference" in told
  assert told.count("accuracy in [") == 3
  assert names["over_seeds"].estimate.shape == (3,)
  assert names["interval"].low < names["gap"] < names["interval"].high
  assert names["distance"] > 0


def test_every_function_it_names_exists():
  text = pages.read("docs/metrics.md")
  for name in set(re.findall(r"`(?:fairness\.)?([a-z_]+)\(", text)):
    assert hasattr(fairness, name), name
