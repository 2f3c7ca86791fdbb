"""The study that takes no time."""

import pytest

from helpers.toy_study import Toy


@pytest.fixture
def toy():
  return Toy()


def pytest_collection_modifyitems(items):
  """Tests of a whole run, which the fixture `done` makes, are slow."""
  for item in items:
    if "done" in getattr(item, "fixturenames", ()):
      item.add_marker(pytest.mark.slow)
