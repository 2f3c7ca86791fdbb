"""The public line: what the packages export is what the reference documents."""

import pytest

from helpers import reference

MOST = 280


@pytest.fixture(scope="module")
def exported():
  return {package: reference.names(package) for package in reference.packages()}


def test_the_reference_lists_every_public_name():
  told = reference.PAGE.read_text(encoding="utf-8")
  assert told == reference.page(), "run: python tests/helpers/reference.py"


def test_public_names_are_few(exported):
  assert sum(map(len, exported.values())) <= MOST


def test_every_public_name_has_a_claim(exported):
  empty = [(p, n) for p, found in exported.items() for n in found if not reference.claim(p, n)]
  assert not empty
