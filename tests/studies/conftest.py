"""The study that takes no time."""

import pytest

from helpers.toy_study import Toy


@pytest.fixture
def toy():
  return Toy()
