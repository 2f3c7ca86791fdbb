"""The list of mutants fits the code and the page; the harness judges rightly.

All mutants take an hour of CPU: `python benchmarks/mutants.py`. Here a few
of the fastest are run, and the others are kept from going stale.
"""

import dataclasses
import importlib.util
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent


def _load():
  path = ROOT / "benchmarks" / "mutants.py"
  spec = importlib.util.spec_from_file_location("mutants_harness", path)
  module = importlib.util.module_from_spec(spec)
  sys.modules[spec.name] = module  # dataclasses look there
  spec.loader.exec_module(module)
  return module


harness = _load()
MUTANTS = {mutant.name: mutant for mutant in harness.read()}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_line_is_there_and_the_mutant_compiles(name):
  mutant = MUTANTS[name]
  text = (ROOT / mutant.file).read_text(encoding="utf-8")
  compile(mutant.applied(text), mutant.file, "exec")


@pytest.mark.parametrize("name", MUTANTS)
def test_the_tests_that_should_notice_exist(name):
  for test in MUTANTS[name].tests:
    file, _, function = test.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {function.partition('[')[0]}(" in text


def test_the_page_lists_them_all():
  page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
  # If it does not: python benchmarks/mutants.py --docs
  assert harness.section(page) == harness.table(list(MUTANTS.values()))
  assert f"{len(MUTANTS)} one-line mutants" in page


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"old": "no such line"}, "0 times"),
    ({"old": "return"}, "times, not once"),
    ({"new": "one\ntwo"}, "differ in one line"),
    ({"new": "words.high < high"}, "differ in one line"),
  ],
)
def test_stale_records_are_refused(change, told):
  old = {"old": "words.high < high"}
  mutant = dataclasses.replace(MUTANTS["gaps-by-64-bits"], **(old | change))
  text = "a = words.high < high\nreturn a\nreturn b\n"
  with pytest.raises(harness.HarnessError, match=told):
    mutant.applied(text)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
  return harness.Copy(tmp_path_factory.mktemp("mutants"))


@pytest.mark.slow
@pytest.mark.parametrize(
  "name",
  [
    "cap-one-too-generous",
    "exact-zero-counts-twice",
    "gnmax-charged-for-one-count",
    "seal-without-the-past",
    "shuffled-replacement-moves-once",
  ],
)
def test_mutants_are_caught(copy, name):
  caught = copy.verdict(MUTANTS[name])
  assert caught.partition("[")[0] in MUTANTS[name].tests


@pytest.mark.slow
def test_what_no_test_looks_at_survives(copy):
  """And tests import the copy: else every mutant would."""
  mutant = MUTANTS["seal-without-the-past"]
  other = ("tests/accounting/test_laplace.py::test_hand_values",)
  copy.require_own_code(other[0])
  assert copy.verdict(dataclasses.replace(mutant, tests=other)) == ""
