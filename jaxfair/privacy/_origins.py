"""What each value inside a program depends on: the example, parameters, or neither.

Reading a program (on shapes) and running it (on arrays) both use these decisions.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend import core

from jaxfair import _jaxpr
from jaxfair.privacy._sites import VIEWS, View, keeps_view


class Data(NamedTuple):
  """Depends on the example."""


class Mixed(NamedTuple):
  """Made of parameters alone, but not a view of one."""

  leaves: frozenset[int]


class Value(NamedTuple):
  """A value inside a program.

  Attributes:
    value: the array; its shape and type while reading.
    origin: None for a constant, or `Data`, `Mixed`, `View`.
    exact: of a view that was cast, the float32 numbers before the cast.
  """

  value: Any
  origin: Any
  exact: Any = None


class Step(enum.Enum):
  """What is done with an equation."""

  APPLY = "apply the operation; no parameter meets data here"
  OPEN = "go through the program that it calls"
  REMAT = "go through it, inside a rematerialized part"
  LOOP = "go through its body, inside a loop"
  MEET = "a parameter meets data: a site, if a rule fits"


def has_parameter(value: Value) -> bool:
  """Whether a value is made of parameters."""
  return isinstance(value.origin, View | Mixed)


def leaves_of(origin: object) -> frozenset[int]:
  """The leaves that a value is made of, if of nothing else."""
  if isinstance(origin, View):
    return frozenset({origin.leaf})
  return origin.leaves if isinstance(origin, Mixed) else frozenset()


def step_of(equation: core.JaxprEqn, inputs: Sequence[Value], *, plain: bool) -> Step:
  """What is done with an equation, from the origins of its inputs.

  Custom derivatives stay closed: a tap inside would see another backward pass.
  """
  if not any(map(has_parameter, inputs)):
    return Step.APPLY
  has_data = any(isinstance(v.origin, Data) for v in inputs)
  kind = _jaxpr.kind(equation)
  if kind == _jaxpr.Kind.CALL:
    return Step.OPEN
  if kind == _jaxpr.Kind.REMAT:
    return Step.REMAT if has_data and not plain else Step.OPEN
  if not has_data:
    return Step.APPLY
  return Step.LOOP if equation.primitive.name == "scan" and not plain else Step.MEET


def origin_after(equation: core.JaxprEqn, inputs: Sequence[Value], *, plain: bool) -> Any:
  """The origin of the results of an operation at which no parameter meets data."""
  if any(isinstance(v.origin, Data) for v in inputs):
    return Data()
  if not any(map(has_parameter, inputs)):
    return None
  first = inputs[0].origin
  if len(inputs) == 1 and isinstance(first, View):
    if keeps_view(equation, plain=plain):
      return first
    if equation.primitive.name in VIEWS:
      operation = (equation.primitive, equation.params)
      return first._replace(operations=(*first.operations, operation))
  return Mixed(frozenset().union(*(leaves_of(v.origin) for v in inputs)))


def in_body(
  equation: Any, inputs: Sequence[Value], depth: int, spoil: Callable[[frozenset[int]], None]
) -> list[Any]:
  """Origins of the inputs of a loop's body.

  What is carried depends on the example, sooner or later: parameters in it are spoiled.

  Args:
    equation: a scan.
    inputs: its inputs.
    depth: number of loops around it.
    spoil: told which leaves must be tapped whole.
  """
  consts, carried = equation.params["num_consts"], equation.params["num_carry"]
  found: list[Any] = []
  for i, value in enumerate(inputs):
    origin = value.origin
    if consts <= i < consts + carried:
      spoil(leaves_of(origin))
      origin = Data()
    elif i >= consts and isinstance(origin, View) and "broadcast_in_dim" in origin.names:
      # Slices of a repeated parameter are the same parameter: their gradients add up.
      origin = Mixed(frozenset({origin.leaf}))
    elif i >= consts and isinstance(origin, View):
      shape = equation.invars[i].aval.shape[1:]
      base = jax.ShapeDtypeStruct(shape, origin.base.dtype)
      origin = View(origin.leaf, base, (), origin, depth)
    found.append(origin)
  return found
