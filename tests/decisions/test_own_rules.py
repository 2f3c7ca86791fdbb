"""Rules of one's own: loaded, called, and refused with a reason."""

import numpy as np
import pytest

from jaxfair.checks import ArgumentError
from jaxfair.decisions import _own_rules

FILE = """
import numpy as np
LIMIT = 3
def allot(children, weight, floor=1.0):
  children *= weight
  return children / max(children.sum(), floor)
def due(children):
  return children > 10
def raises(children):
  raise KeyError("no such year")
def short(children):
  return children[1:]
def words(children):
  return ["yes"] * len(children)
def infinite(children):
  return 1 / children
"""


@pytest.fixture
def file(tmp_path):
  path = tmp_path / "grant.py"
  path.write_text(FILE)
  return path


def test_amounts_and_decisions(file):
  rule = _own_rules.load_rule(f"{file}:allot")
  assert rule.parameters == ("children", "weight")  # a default is not a column
  columns = [np.array([1.0, 3.0]), np.array([1.0, 2.0])]
  np.testing.assert_allclose(rule(columns), [1 / 7, 6 / 7])
  np.testing.assert_array_equal(columns[0], [1, 3])  # written to a copy
  due = _own_rules.load_rule(f"{file}:due")([np.array([9.0, 11.0])])
  assert due.dtype == bool
  assert due.tolist() == [False, True]


@pytest.mark.parametrize(
  ("name", "told"),
  [
    ("raises", r"grant.py:raises fails on the true counts \(KeyError: 'no such year'\)"),
    ("short", r"returns shape \(1,\) on the true counts; return 2 values"),
    ("words", "return one number"),
    ("infinite", "1 values that are not finite"),
    ("LIMIT", "has no function LIMIT; use one of allot"),
    ("alot", "did you mean allot"),
    ("a b", "pass title-one, minority-language, or FILE.py:FUNCTION"),
  ],
)
def test_refused(file, name, told):
  with pytest.raises(ArgumentError, match=told):
    _own_rules.load_rule(f"{file}:{name}")([np.array([0.0, 2.0])])


@pytest.mark.parametrize(
  ("content", "told"),
  [(None, "there is no file"), ("import nonesuch_", "ModuleNotFoundError"), ("x = (", "Syntax")],
)
def test_files_that_cannot_be_imported(tmp_path, content, told):
  path = tmp_path / "grant.py"
  if content is not None:
    path.write_text(content)
  with pytest.raises(ArgumentError, match=told):
    _own_rules.load_rule(f"{path}:allot")
