"""The examples of docs/pate.md run, and say what the page says."""

import numpy as np
import pytest

from helpers import pages
from jaxfair import models

PAGE = "docs/pate.md"


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  session = pages.run(PAGE, blocks=4)
  guarantee, planned = capsys.readouterr().out.strip().splitlines()
  assert f"# {guarantee}" in pages.code_blocks(pages.read(PAGE))[0]
  assert f"```text\n{planned}\n```" in pages.read(PAGE)
  assert round(session["consensus"], 2) == 0.94
  answers, test = session["answers"], session["test"]
  assert 50 < answers.answered.sum() < answers.asked.sum() < 1000
  first = {name: leaf[0] for name, leaf in session["students"].params.items()}
  guess = models.predict(session["model"], first, test.x)
  # The best there is reaches Phi(1) = 0.841 of 2,000 people; 0.008 each.
  assert np.mean(np.asarray(guess) == test.y) > 0.76
