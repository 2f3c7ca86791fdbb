"""The parts of every page."""

from jaxfair.report import _html_parts


def test_times_are_told_as_people_tell_them():
  assert _html_parts.duration(3.2) == "3 s"
  assert _html_parts.duration(600) == "10 min"
