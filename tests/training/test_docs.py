"""The examples of docs/private_training.md run, in one session."""

import pytest

from helpers import pages


@pytest.mark.slow
def test_the_examples_run():
  pages.run("docs/private_training.md", blocks=7)
