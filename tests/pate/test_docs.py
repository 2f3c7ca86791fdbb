"""The examples of docs/pate.md run, and say what the page says."""

import pathlib
import re

import numpy as np
import pytest

from jaxfair import models

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "pate.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_examples_run(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
  assert len(blocks) == 2
  session: dict = {}
  for block in blocks:
    exec(compile(block, str(PAGE), "exec"), session)
  printed = capsys.readouterr().out.strip()
  assert f"# {printed}" in blocks[0]
  answers, test = session["answers"], session["test"]
  assert 50 < answers.answered.sum() < answers.asked.sum() < 1000
  first = {name: leaf[0] for name, leaf in session["students"].params.items()}
  guess = models.predict(session["model"], first, test.x)
  # The best there is reaches Phi(1) = 0.841 of 2,000 people; 0.008 each.
  assert np.mean(np.asarray(guess) == test.y) > 0.76
