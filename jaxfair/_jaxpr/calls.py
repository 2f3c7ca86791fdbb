"""The table of call-like primitives: those whose parameters hold a program.

A test compares it with the installed JAX: every name here is a primitive
there, and every primitive there that is bound with a program is here. Kernels
(`jax.experimental.pallas`, cuDNN fusions) are left out: their programs compute
on references to memory, and nothing here reads those.
"""

import enum
from typing import NamedTuple, TypeAlias

import jax
from jax.extend import core

Program: TypeAlias = core.Jaxpr | core.ClosedJaxpr


class Kind(enum.Enum):
  """How a primitive uses the program in its parameters.

  The first three can be opened: the program has the equation's inputs and
  outputs, in order, and is run once.
  """

  CALL = "run it, nothing else"
  REMAT = "run it, and again in the backward pass to save memory"
  CUSTOM_JVP = "run it; its derivative is another program"
  OPAQUE = "anything else: repeat it, choose it, combine elements with it"


class _Call(NamedTuple):
  kind: Kind
  program: str | None = None  # the parameter to open


_OPAQUE = _Call(Kind.OPAQUE)
CALLS: dict[str, _Call] = {
  "call": _Call(Kind.CALL, "call_jaxpr"),
  "closed_call": _Call(Kind.CALL, "call_jaxpr"),
  "jit": _Call(Kind.CALL, "jaxpr"),
  "remat2": _Call(Kind.REMAT, "jaxpr"),
  "custom_jvp_call": _Call(Kind.CUSTOM_JVP, "call_jaxpr"),
  # The backward pass is another function, which is not traced beforehand.
  "custom_vjp_call": _OPAQUE,
  "remat_opt": _OPAQUE,
  # Other rules for batching or lowering than the program's own.
  "composite": _OPAQUE,
  "compute_on": _OPAQUE,
  "custom_vmap_call": _OPAQUE,
  "eval_jaxpr": _OPAQUE,
  # Control flow, devices, references.
  "cond": _OPAQUE,
  "run_state": _OPAQUE,
  "scan": _OPAQUE,
  "shard_map": _OPAQUE,
  "while": _OPAQUE,
  # The program combines two elements, or is a linear map to be solved.
  "custom_linear_solve": _OPAQUE,
  "linear_call": _OPAQUE,
  "reduce": _OPAQUE,
  "reduce_window": _OPAQUE,
  "scatter": _OPAQUE,
  "scatter-add": _OPAQUE,
  "scatter-max": _OPAQUE,
  "scatter-min": _OPAQUE,
  "scatter-mul": _OPAQUE,
  "scatter-sub": _OPAQUE,
  "select_and_scatter": _OPAQUE,
}


def kind(equation: core.JaxprEqn) -> Kind | None:
  """How the equation uses the program it holds; None if it holds none.

  A primitive that holds a program and is not in the table is opaque.
  """
  call = CALLS.get(equation.primitive.name)
  if call is not None:
    return call.kind
  return Kind.OPAQUE if inner(equation) else None


def opened(equation: core.JaxprEqn) -> Program:
  """The program that stands for the equation: same inputs, same outputs."""
  call = CALLS.get(equation.primitive.name, _OPAQUE)
  if call.program is None:
    raise ValueError(
      f"{equation.primitive.name} cannot be replaced by the program it holds; "
      "give it a rule of its own"
    )
  program: Program = equation.params[call.program]
  return program


def inner(equation: core.JaxprEqn) -> list[Program]:
  """All programs in the equation's parameters, of any primitive."""
  values = list(equation.params.values())
  return [value for value in jax.tree.leaves(values, is_leaf=_is_program) if _is_program(value)]


def _is_program(value: object) -> bool:
  return isinstance(value, core.Jaxpr | core.ClosedJaxpr)
