"""Clipping on random programs; benchmarks/clipping_zoo.py has 10,000."""

import numpy as np
import pytest

from helpers import program_verdict, program_zoo
from jaxfair.privacy import _clip_factors, _site_factors

BLOCKS = 15
PROGRAMS = 5  # in a block, on four sets of people each: 300 in all


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_nobody_exceeds_the_bound_and_gradients_are_those_of_float64(block):
  for number in range(block * PROGRAMS, (block + 1) * PROGRAMS):
    program = program_zoo.draw(number)
    verdict = program_verdict.judge(program)
    assert not verdict.failures, (number, program.features, verdict)
    assert not verdict.refused, (number, program.features, verdict)


def test_programs_are_the_same_for_the_same_number():
  one, other, another = (program_zoo.draw(n) for n in (7, 7, 8))
  assert one.features == other.features
  for a, b in zip(one.cases, other.cases, strict=True):
    np.testing.assert_array_equal(a.x, b.x)
  assert one.cases[0].x.tobytes() != another.cases[0].x.tobytes()


def test_every_feature_is_drawn():
  seen = {f for n in range(150) for f in program_zoo.draw(n, 1).features}
  assert seen >= {*program_zoo.LAYERS, "table", "broken", "micro-batches"}
  assert seen >= {f"{kind} data" for kind in program_zoo.IDS}


@pytest.mark.slow
def test_the_zoo_notices_row_numbers_that_wrap(monkeypatch):
  """A mistake that was made: with it, some program must fail."""
  program = next(
    program
    for program in map(program_zoo.draw, range(1000))
    if {"table", "uint8 data"} <= {*program.features}
    and "method" not in program.options
    and len(program.cases[0].params["layer 0"]["table"]) in (256, 257, 300)
  )
  assert not program_verdict.judge(program).failures
  monkeypatch.setattr(_site_factors, "_int32", lambda rows, height: rows)
  assert program_verdict.judge(program).failures


@pytest.mark.slow
def test_the_zoo_notices_a_bound_without_its_margin(monkeypatch):
  program = program_zoo.draw(3)
  assert not program_verdict.judge(program).failures
  monkeypatch.setattr(_clip_factors, "ROUNDING_MARGIN", 1 + 2.0**-18)
  assert "exceeded" in str(program_verdict.judge(program).failures)
