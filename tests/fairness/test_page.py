"""The example of docs/metrics.md runs as it is printed."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.mark.slow
def test_the_example_runs(capsys):
  (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
  names = {}
  exec(compile(example, str(PAGE), "exec"), names)
  told = capsys.readouterr().out
  assert "equalised odds difference" in told
  assert told.count("accuracy in [") == 3
  assert names["over_seeds"].estimate.shape == (3,)
  assert names["interval"].low < names["gap"] < names["interval"].high
  assert names["distance"] > 0


def test_every_function_it_names_exists():
  from jaxfair import fairness

  text = PAGE.read_text("utf-8")
  for name in set(re.findall(r"`(?:fairness\.)?([a-z_]+)\(", text)):
    assert hasattr(fairness, name), name
