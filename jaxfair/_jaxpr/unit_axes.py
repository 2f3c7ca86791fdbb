"""Programs without axes of length one.

A program for one example of a batch has an axis of length one where the batch was, and keeps it
when it is mapped over examples. It means nothing, but kernels of XLA's CPU backend that multiply
and sum take up to ten times as long for [n, 1, 32, 64] as for [n, 32, 64].
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core

from jaxfair._jaxpr.calls import Kind, Program, kind
from jaxfair._jaxpr.walking import bind, walk

# Operations whose results have the shape of their operands, number by number.
_ELEMENTWISE = frozenset(
  {
    *("abs", "add", "add_any", "and", "atan2", "cbrt", "ceil", "clamp", "convert_element_type"),
    *("copy", "cos", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor"),
    *("ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lt", "max"),
    *("min", "mul", "ne", "neg", "nextafter", "not", "optimization_barrier", "or", "pow"),
    *("reduce_precision", "rem", "round", "rsqrt", "select_n", "sign", "sin", "sqrt", "square"),
    *("stop_gradient", "sub", "tan", "tanh", "xor"),
  }
)
_SUMS = frozenset(
  {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or"}
)


def without_unit_axes(function: Callable[..., Any]) -> Callable[..., Any]:
  """The same function of pytrees; what it computes inside has no axes of length one.

  Args:
    function: pure.
  """

  def run(*arguments: Any) -> Any:
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    results = _run(closed, [_packed(leaf) for leaf in jax.tree.leaves(arguments)])
    leaves = [
      jnp.reshape(value, shape.shape)
      for value, shape in zip(results, jax.tree.leaves(shapes), strict=True)
    ]
    return jax.tree.unflatten(jax.tree.structure(shapes), leaves)

  return run


def _run(program: Program, inputs: Sequence[Any]) -> list[Any]:
  return walk(program, list(inputs), _rule, constant=_packed)


def _rule(equation: Any, inputs: list[Any]) -> list[Any] | None:
  """The results of an equation without their axes of length one, from such inputs."""
  name, params = equation.primitive.name, equation.params
  shape = equation.invars[0].aval.shape if equation.invars else ()
  if name in _ELEMENTWISE:
    return bind(equation, _repeated(equation, inputs))
  if kind(equation) == Kind.CALL:
    return None
  if name in ("squeeze", "expand_dims"):
    return inputs
  if name == "reshape" and params["dimensions"] is None:
    return [jnp.reshape(inputs[0], _long(params["new_sizes"]))]
  places = _places(shape)
  if name in _SUMS:
    axes = tuple(places[axis] for axis in params["axes"] if axis in places)
    return bind(equation.replace(params={**params, "axes": axes}), inputs) if axes else inputs
  if name == "transpose":
    order = [places[axis] for axis in params["permutation"] if axis in places]
    return [jnp.transpose(inputs[0], order)]
  if name == "broadcast_in_dim" and len(inputs) == 1:
    after = _places(params["shape"])
    axes = tuple(after[d] for i, d in enumerate(params["broadcast_dimensions"]) if i in places)
    return [jax.lax.broadcast_in_dim(inputs[0], _long(params["shape"]), axes)]
  if name == "scan":
    return _loop(equation, inputs)
  if name == "while" and not params["cond_jaxpr"].out_avals[0].shape:
    return _while(equation, inputs)
  if kind(equation) == Kind.REMAT:
    packed = jax.make_jaxpr(lambda *values: _run(params["jaxpr"], values))(*inputs)
    if not packed.consts:
      return bind(equation.replace(params={**params, "jaxpr": packed.jaxpr}), inputs)
  whole = [
    jnp.reshape(value, atom.aval.shape) for value, atom in zip(inputs, equation.invars, strict=True)
  ]
  return [_packed(result) for result in bind(equation, whole)]


def _repeated(equation: Any, inputs: list[Any]) -> list[Any]:
  """Operands of one shape: some may have an axis of length one where others are longer."""
  shapes = [atom.aval.shape for atom in equation.invars]
  if len(set(shapes)) == 1 or equation.primitive.multiple_results:
    return inputs
  full = equation.outvars[0].aval.shape
  after = _places(full)
  return [
    value
    if not shape or shape == full
    else jax.lax.broadcast_in_dim(value, _long(full), [after[axis] for axis in _places(shape)])
    for value, shape in zip(inputs, shapes, strict=True)
  ]


def _loop(equation: Any, inputs: list[Any]) -> list[Any]:
  params = equation.params
  consts, first = params["num_consts"], params["num_consts"] + params["num_carry"]
  length = params["length"]

  def one_round(carry: list[Any], rows: list[Any]) -> tuple[list[Any], list[Any]]:
    found = _run(params["jaxpr"], [*inputs[:consts], *carry, *rows])
    return found[: first - consts], found[first - consts :]

  rows = [
    jnp.reshape(value, (length, *_long(atom.aval.shape[1:])))
    for value, atom in zip(inputs[first:], equation.invars[first:], strict=True)
  ]
  carry, stacked = jax.lax.scan(
    one_round,
    inputs[consts:first],
    rows,
    length=length,
    reverse=params["reverse"],
    unroll=params["unroll"],
  )
  return [*carry, *map(_packed, stacked)]


def _while(equation: core.JaxprEqn, inputs: list[Any]) -> list[Any]:
  params = equation.params
  first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
  found = jax.lax.while_loop(
    lambda carry: _run(params["cond_jaxpr"], [*inputs[:first], *carry])[0],
    lambda carry: _run(params["body_jaxpr"], [*inputs[first:second], *carry]),
    inputs[second:],
  )
  return list(found)


def _packed(value: Any) -> Any:
  """An array without its axes of length one."""
  shape = jnp.shape(value)
  return jnp.reshape(value, _long(shape)) if 1 in shape else value


def _long(shape: Sequence[int]) -> tuple[int, ...]:
  return tuple(size for size in shape if size != 1)


def _places(shape: Sequence[int]) -> dict[int, int]:
  """Axes longer than one, and where they are when the others are gone."""
  return {axis: i for i, axis in enumerate(a for a, size in enumerate(shape) if size != 1)}
