"""The walker: values of any kind, through calls, in the program's order."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import _jaxpr

X = jnp.arange(1.0, 4.0)
TABLE = np.array([2.0, 3.0, 5.0], np.float32)
OPENED = (_jaxpr.Kind.CALL, _jaxpr.Kind.REMAT, _jaxpr.Kind.CUSTOM_JVP)


def nested(x):
  """Calls inside calls, constants at each level, an output that is an input."""
  inside = jax.jit(lambda v: jnp.sin(v) * TABLE)
  outside = jax.checkpoint(lambda v: jax.nn.relu(inside(v)) + 1.0)
  return outside(x), x, 7.0


def evaluate(equation, values):
  if _jaxpr.kind(equation) in OPENED:
    return None
  return _jaxpr.bind(equation, values)


@pytest.mark.parametrize("rule", [evaluate, _jaxpr.bind])
def test_a_program_walked_with_arrays_gives_what_it_computes(rule):
  closed = jax.make_jaxpr(nested)(X)
  found = _jaxpr.walk(closed, [X], rule, constant=lambda value: value)
  for ours, theirs in zip(found, nested(X), strict=True):
    np.testing.assert_array_equal(ours, theirs)


def test_values_may_be_of_any_kind():
  def depth(equation, values):
    if _jaxpr.kind(equation) in OPENED:
      return None
    return [1 + max(values)] * len(equation.outvars)

  def function(x):
    return jax.jit(lambda v: jnp.sin(jnp.cos(v)))(x) + x

  closed = jax.make_jaxpr(function)(X)
  assert _jaxpr.walk(closed, [0], depth, constant=lambda _: 0) == [3]


def test_constants_of_an_open_program_are_its_first_inputs():
  closed = jax.make_jaxpr(lambda x: x * TABLE)(X)
  (found,) = _jaxpr.walk(closed.jaxpr, [10 * TABLE, X], _jaxpr.bind, constant=lambda value: value)
  np.testing.assert_array_equal(found, 10 * TABLE * X)
  with pytest.raises(ValueError, match="shorter"):
    _jaxpr.walk(closed.jaxpr, [X], _jaxpr.bind, constant=lambda value: value)


def test_a_loop_needs_a_rule():
  closed = jax.make_jaxpr(lambda x: jax.lax.map(jnp.sin, x))(X)
  with pytest.raises(ValueError, match="scan cannot be replaced"):
    _jaxpr.walk(closed, [X], lambda *_: None, constant=lambda value: value)


def names(program, **options):
  return [e.primitive.name for e in _jaxpr.equations(program, **options)]


def test_equations_are_those_of_all_programs_inside_or_of_some_kinds():
  def function(x):
    return jax.lax.cond(x.sum() > 0, jax.jit(jnp.sin), jax.checkpoint(jnp.cos), x)

  program = jax.make_jaxpr(jax.jit(function))(X)
  assert {"cond", "jit", "remat2", "sin", "cos"} <= set(names(program))
  calls = names(program, through=(_jaxpr.Kind.CALL,))
  assert calls[0] == "jit"
  assert "cond" in calls
  assert "sin" not in calls


def test_uses_lists_who_reads_a_variable():
  closed = jax.make_jaxpr(lambda x: (jnp.sin(x) + x, x * x))(X)
  uses = _jaxpr.uses(closed)
  readers = [e.primitive.name for e in uses[closed.jaxpr.invars[0]]]
  assert readers == ["sin", "add", "mul", "mul"]
  assert all(uses[var] == [None] for var in closed.jaxpr.outvars)


def test_no_other_module_loops_over_equations():
  package = pathlib.Path(_jaxpr.__file__).parent
  readers = [
    path for path in package.parent.rglob("*.py") if ".eqns" in path.read_text(encoding="utf-8")
  ]
  assert readers == [package / "walking.py"]
