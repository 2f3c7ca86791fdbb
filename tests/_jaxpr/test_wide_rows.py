"""Look-ups by row numbers whose type is shorter than the table."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import _jaxpr
from jaxfair._jaxpr.walking import equations

HEIGHT = 300
TABLE = np.arange(HEIGHT, dtype=np.float32)[:, None]


def looked_up(table, rows):
  numbers = jax.lax.GatherDimensionNumbers((1,), (0,), (0,))
  return jax.lax.gather(table, rows[:, None], numbers, (1, 1), mode="clip")[:, 0]


def in_a_loop(table, rows):
  return jax.lax.map(lambda row: looked_up(table, row[None])[0], rows)


def row_types(function, rows):
  program = jax.make_jaxpr(function)(TABLE, rows)
  gathers = [one for one in equations(program) if one.primitive.name == "gather"]
  return [one.invars[1].aval.dtype for one in gathers]


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("through", [lambda f: f, jax.jit])
def test_rows_are_looked_up_by_long_numbers(kind, through):
  rows = np.array([0, 3, 127, 5], kind)
  function = through(looked_up)
  assert _jaxpr.has_short_rows(jax.make_jaxpr(function)(TABLE, rows))
  wide = _jaxpr.with_wide_rows(function)
  assert row_types(wide, rows) == [jnp.int32]
  np.testing.assert_array_equal(wide(TABLE, rows), [0, 3, 127, 5])
  slopes = jax.grad(lambda table: jnp.sum(wide(table, rows)))(TABLE)
  assert np.flatnonzero(slopes).tolist() == [0, 3, 5, 127]


def test_negative_numbers_mean_what_they_meant():
  rows = np.array([-1, -128], np.int8)
  np.testing.assert_array_equal(_jaxpr.with_wide_rows(looked_up)(TABLE, rows), [0, 0])


@pytest.mark.parametrize(("kind", "height"), [("int8", 127), ("uint8", 255), ("int32", HEIGHT)])
def test_numbers_that_reach_every_row_stay(kind, height):
  program = jax.make_jaxpr(looked_up)(TABLE[:height], np.zeros(2, kind))
  assert not _jaxpr.has_short_rows(program)


@pytest.mark.parametrize("around", [in_a_loop, jax.checkpoint(looked_up)])
def test_what_is_not_mended_is_told(around):
  rows = np.array([0, 3], np.int8)
  told = functools.partial(_jaxpr.has_short_rows, jax.make_jaxpr(around)(TABLE, rows))
  assert told(inside=False)
  straight = jax.make_jaxpr(looked_up)(TABLE, rows)
  assert not _jaxpr.has_short_rows(straight, inside=False)
