"""Look-ups by row numbers of a type that can index every row of their table.

XLA compares row numbers with the height of a table in the type of the row numbers. If 8 or 16 bits
cannot index the last row, that comparison is wrong: the derivative of the look-up drops rows, or
writes outside of its memory.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from jaxfair._jaxpr.calls import Kind, Program, inner, kind
from jaxfair._jaxpr.walking import bind, equations, walk


def has_short_rows(program: Program, *, inside: bool = True) -> bool:
  """Whether the program looks rows up by numbers that do not reach the last one.

  Args:
    program: from `jax.make_jaxpr`.
    inside: False leaves out the look-ups that `with_wide_rows` mends.
  """
  mended = () if inside else map(id, equations(program, through=(Kind.CALL,)))
  known = set(mended)
  return any(_is_short(one) for one in equations(program) if id(one) not in known)


def looks_up_short_rows(equation: core.JaxprEqn) -> bool:
  """Whether an equation, or one of the programs that it holds, looks rows up by such numbers."""
  parts = (one for part in inner(equation) for one in equations(part))
  return any(map(_is_short, (equation, *parts)))


def with_wide_rows(function: Callable[..., Any]) -> Callable[..., Any]:
  """The same function of pytrees; such row numbers are int32 in its look-ups.

  Look-ups in loops, branches and rematerialized parts stay as they are.

  Args:
    function: pure.
  """

  def run(*arguments: Any) -> Any:
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    results = walk(closed, jax.tree.leaves(arguments), _rule, constant=jnp.asarray)
    return jax.tree.unflatten(jax.tree.structure(shapes), results)

  return run


def _rule(equation: core.JaxprEqn, inputs: list[Any]) -> list[Any] | None:
  if kind(equation) == Kind.CALL:
    return None
  if _is_short(equation):
    table, rows = inputs
    inputs = [table, rows.astype(jnp.int32)]
  return bind(equation, inputs)


def _is_short(equation: core.JaxprEqn) -> bool:
  if equation.primitive.name != "gather":
    return False
  avals: list[Any] = [atom.aval for atom in equation.invars]
  table, rows = avals
  if not jnp.issubdtype(table.dtype, jnp.inexact):  # which has no derivative
    return False
  heights = [table.shape[axis] for axis in equation.params["dimension_numbers"].start_index_map]
  return rows.dtype.itemsize < 4 and max(heights, default=0) > jnp.iinfo(rows.dtype).max
