"""Tests of a whole run are slow."""

import pytest


def pytest_collection_modifyitems(items):
  """The fixture `done` makes a whole run."""
  for item in items:
    if "done" in getattr(item, "fixturenames", ()):
      item.add_marker(pytest.mark.slow)
