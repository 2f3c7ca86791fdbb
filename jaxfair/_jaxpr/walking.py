"""Walks through the equations of a program, and of the programs inside it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from jax.extend import core

from jaxfair._jaxpr.calls import Kind, Program, inner, kind, opened

V = TypeVar("V")


def walk(
  program: Program,
  inputs: Sequence[V],
  rule: Callable[[core.JaxprEqn, list[V]], Sequence[V] | None],
  *,
  constant: Callable[[Any], V],
) -> list[V]:
  """Runs a program on values of the caller's own: arrays, states, numbers.

  Args:
    program: from `jax.make_jaxpr`. The constants of an open one (`.jaxpr`)
      count as its first inputs.
    inputs: one value for each input.
    rule: `(equation, values of its inputs) -> values of its outputs`, or None
      to walk through the program that the equation calls. Only calls can be
      opened (`opened`).
    constant: the value that stands for a constant or literal.

  Returns:
    One value for each output.
  """
  jaxpr, consts = _parts(program)
  variables = [*jaxpr.constvars, *jaxpr.invars]
  values = [*map(constant, consts), *inputs]
  known: dict[Any, V] = dict(zip(variables, values, strict=True))

  def read(atom: core.Var | core.Literal) -> V:
    return constant(atom.val) if isinstance(atom, core.Literal) else known[atom]

  for equation in jaxpr.eqns:
    taken = [read(atom) for atom in equation.invars]
    given = rule(equation, taken)
    if given is None:
      given = walk(opened(equation), taken, rule, constant=constant)
    known.update(zip(equation.outvars, given, strict=True))
  return [read(atom) for atom in jaxpr.outvars]


def equations(
  program: Program, *, through: Collection[Kind] = tuple(Kind)
) -> Iterator[core.JaxprEqn]:
  """All equations, each before those of the programs that it holds.

  Args:
    program: from `jax.make_jaxpr`.
    through: the kinds of calls that are looked into; all of them by default.
  """
  for equation in _parts(program)[0].eqns:
    yield equation
    if kind(equation) in through:
      for part in inner(equation):
        yield from equations(part, through=through)


def uses(program: Program) -> dict[Any, list[core.JaxprEqn | None]]:
  """Which equations of the program read a variable; None for its outputs."""
  found: dict[Any, list[core.JaxprEqn | None]] = {}
  jaxpr, _ = _parts(program)
  readers = [(equation, equation.invars) for equation in jaxpr.eqns]
  for reader, atoms in [*readers, (None, jaxpr.outvars)]:
    for atom in atoms:
      if not isinstance(atom, core.Literal):
        found.setdefault(atom, []).append(reader)
  return found


def bind(equation: core.JaxprEqn, values: Sequence[Any]) -> list[Any]:
  """Applies the equation's own operation to arrays."""
  primitive = equation.primitive
  params = primitive.get_bind_params(equation.params)
  with equation.ctx.manager:
    results = primitive.bind(*values, **params)
  return list(results) if primitive.multiple_results else [results]


def _parts(program: Program) -> tuple[core.Jaxpr, Sequence[Any]]:
  if isinstance(program, core.ClosedJaxpr):
    return program.jaxpr, program.consts
  return program, ()
