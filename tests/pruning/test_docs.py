"""docs/pruning.md: its examples run, one after the other, as they stand."""

import re

import numpy as np
import pytest

from helpers import pages
from jaxfair import pruning

PAGE = "docs/pruning.md"


@pytest.mark.slow
def test_the_examples_run(capsys):
  space = pages.run(PAGE, blocks=2)
  assert "nan" not in capsys.readouterr().out
  assert np.all(np.diff(space["found"].accuracy_gap[1:]) > 0)
  gone = [np.mean(~np.asarray(space["fit"].masks["layer_0"]["w"][rate])) for rate in (0, 1)]
  assert gone[0] < gone[1]


def test_the_table_names_what_there_is():
  for row in re.findall(r"^\| `.*?\|", pages.read(PAGE), re.MULTILINE):
    for name in re.findall(r"`(\w+)", row):
      assert hasattr(pruning, name)
