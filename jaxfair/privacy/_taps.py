"""Finds where parameters meet data in a model, by reading its jaxpr.

The per-example loss is traced for one example. Wherever an operation combines a parameter with
something that depends on the example, and is of a kind whose parameter gradient is a simple
function of its input and of its output's cotangent, that place is a *site*: a zero "tap" is added
to its output, and differentiating by the taps alone gives every site's back-propagated signal at
the cost of one data-gradient pass. No layer library is named here: flax, haiku and hand-written
models trace to the same few operations.

A parameter that meets data in any other way, or in numbers shorter than 32 bits, is tapped itself,
which gives its per-example gradient directly: slower and larger, never wrong.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core

from jaxfair import _jaxpr

# A rematerialized part computes what it holds, and so do its gradients. Custom
# derivatives stay closed: taps inside would see another backward pass.
OPENED = (_jaxpr.Kind.CALL, _jaxpr.Kind.REMAT)
VIEWS = frozenset({"reshape", "transpose", "squeeze", "expand_dims", "broadcast_in_dim", "copy"})


class View(NamedTuple):
  """A parameter leaf seen through rearrangements (reshape, broadcast, ...).

  Attributes:
    leaf: index of the leaf.
    operations: (primitive, params) to replay on the leaf.
  """

  leaf: int
  operations: tuple[Any, ...] = ()

  def apply(self, value: Any) -> Any:
    """The view of the leaf's value."""
    for primitive, params in self.operations:
      value = primitive.bind(value, **params)
    return value

  def pull_back(self, cotangent: Any, leaf_like: Any) -> Any:
    """The leaf's cotangent from the view's."""
    if not self.operations:
      return cotangent
    (result,) = jax.linear_transpose(self.apply, leaf_like)(cotangent)
    return result

  @property
  def names(self) -> tuple[str, ...]:
    """The rearrangements' names, in order."""
    return tuple(primitive.name for primitive, _ in self.operations)


@dataclasses.dataclass(frozen=True)
class Site:
  """A place where one parameter meets data.

  Attributes:
    kind: "dense", "conv", "rows", "shift", "negative_shift" or "scale".
    view: the parameter operand.
    operand: shape of the parameter operand.
    position: which operand the parameter is.
    params: the operation's own parameters.
    output: shape and type of the result, and so of the tap.
  """

  kind: str
  view: View
  operand: tuple[int, ...]
  position: int
  params: dict[str, Any]
  output: jax.ShapeDtypeStruct


class Reading(NamedTuple):
  """All sites of a loss, in order, and the leaves that must be tapped whole."""

  sites: tuple[Site, ...]
  whole: frozenset[int]


class _Data(NamedTuple):
  """Depends on the example."""


class _Mixed(NamedTuple):
  """Made of parameters alone, but not a view of one."""

  leaves: frozenset[int]


class _Value(NamedTuple):
  value: Any
  origin: Any  # None: a constant; _Data; _Mixed; or a View


Tap = Callable[[Site, Any, Any], Any]


def read(function: Callable[..., Any], leaves: Sequence[Any], example: Any) -> Reading:
  """Lists the sites of `function(leaves, example)`.

  Args:
    function: scalar function of the parameter leaves and one example.
    leaves: shapes of the leaves.
    example: shapes of one example.
  """
  sites: list[Site] = []
  whole: set[int] = set()

  def note(site: Site, data: Any, output: Any) -> Any:
    del data
    sites.append(site)
    return output

  jax.eval_shape(lambda ls, e: _interpret(function, ls, e, note, whole.update), leaves, example)
  kept = tuple(site for site in sites if site.view.leaf not in whole)
  return Reading(kept, frozenset(whole))


def evaluate(
  function: Callable[..., Any],
  reading: Reading,
  leaves: Sequence[Any],
  taps: Sequence[Any],
  example: Any,
) -> tuple[Any, list[Any]]:
  """Evaluates the function with a tap added to every site's output.

  Returns:
    The function's value, and the data operand of every site.
  """
  captured: list[Any] = []

  def add_tap(site: Site, data: Any, output: Any) -> Any:
    if site.view.leaf in reading.whole:
      return output
    captured.append(data)
    return output + taps[len(captured) - 1]

  value = _interpret(function, leaves, example, add_tap, lambda leaf: None)
  return value, captured


def _interpret(
  function: Callable[..., Any],
  leaves: Sequence[Any],
  example: Any,
  tap: Tap,
  spoil: Callable[[frozenset[int]], None],
) -> Any:
  """Runs the function operation by operation, calling `tap` at each site."""
  closed = jax.make_jaxpr(function)(list(leaves), example)
  parameters = [_Value(v, View(i)) for i, v in enumerate(leaves)]
  data = [_Value(v, _Data()) for v in jax.tree.leaves(example)]

  def rule(equation: core.JaxprEqn, inputs: list[_Value]) -> Any:
    has_parameter = any(isinstance(v.origin, View | _Mixed) for v in inputs)
    if has_parameter and _jaxpr.kind(equation) in OPENED:
      return None
    return _apply(equation, inputs, tap, spoil)

  (output,) = _jaxpr.walk(closed, parameters + data, rule, constant=lambda v: _Value(v, None))
  # What reaches the end without meeting data has a gradient, too.
  spoil(_leaves(output.origin))
  return output.value


def _apply(
  equation: Any, inputs: Sequence[_Value], tap: Tap, spoil: Callable[[frozenset[int]], None]
) -> list[_Value]:
  """One operation: its value, its origin, and its site if it is one."""
  results = _jaxpr.bind(equation, [v.value for v in inputs])
  parameters = [v for v in inputs if isinstance(v.origin, View | _Mixed)]
  has_data = any(isinstance(v.origin, _Data) for v in inputs)
  if not parameters:
    origin = _Data() if has_data else None
    return [_Value(r, origin) for r in results]
  if not has_data:
    origin = _rearranged(equation, inputs)
    return [_Value(r, origin) for r in results]
  found = _site(equation, inputs)
  if found is None:
    spoil(frozenset().union(*(_leaves(v.origin) for v in parameters)))
    return [_Value(r, _Data()) for r in results]
  site, data = found
  return [_Value(tap(site, data.value, results[0]), _Data())]


def _rearranged(equation: Any, inputs: Sequence[_Value]) -> Any:
  """The origin of something made of parameters and constants."""
  first = inputs[0].origin
  if equation.primitive.name in VIEWS and len(inputs) == 1 and isinstance(first, View):
    operation = (equation.primitive, equation.params)
    return View(first.leaf, (*first.operations, operation))
  return _Mixed(frozenset().union(*(_leaves(v.origin) for v in inputs)))


def _leaves(origin: Any) -> frozenset[int]:
  if isinstance(origin, View):
    return frozenset({origin.leaf})
  return origin.leaves if isinstance(origin, _Mixed) else frozenset()


def _site(equation: Any, inputs: Sequence[_Value]) -> tuple[Site, _Value] | None:
  """The site this operation is, with its data operand; None if unknown."""
  if len(inputs) != 2:
    return None
  position = 0 if isinstance(inputs[0].origin, View) else 1
  parameter, data = inputs[position], inputs[1 - position]
  if not isinstance(parameter.origin, View):
    return None
  if isinstance(data.origin, View | _Mixed):
    return None
  kind = _kind(equation, parameter, position)
  aval = equation.outvars[0].aval
  if kind is None or not _has_long_factors(kind, parameter, data, aval):
    return None
  site = Site(
    kind,
    parameter.origin,
    tuple(jnp.shape(parameter.value)),
    position,
    equation.params,
    jax.ShapeDtypeStruct(aval.shape, aval.dtype),
  )
  return site, data


def _has_long_factors(kind: str, parameter: _Value, data: _Value, output: Any) -> bool:
  """Whether inputs and signals are of the parameter's type, 32 bits or more.

  Norms are bounded for the rounding of float32. In shorter numbers the factors would be squared and
  weighted with a rounding of up to 2^-3; of other kinds of numbers (complex ones) they may not even
  be factors. Row numbers are integers of any length: they are compared, not computed with.
  """
  dtype = jnp.result_type(parameter.value)
  types = {dtype, output.dtype}
  if kind != "rows":
    types.add(jnp.result_type(data.value))
  return len(types) == 1 and dtype in (jnp.float32, jnp.float64)


def _kind(equation: Any, parameter: _Value, position: int) -> str | None:
  name, params = equation.primitive.name, equation.params
  plain = "broadcast_in_dim" not in parameter.origin.names
  if name == "dot_general":
    return "dense" if plain and params["dimension_numbers"][1] == ((), ()) else None
  if name == "conv_general_dilated":
    simple = (
      params["feature_group_count"] == 1
      and params["batch_group_count"] == 1
      and all(d == 1 for d in params["lhs_dilation"])
    )
    return "conv" if plain and position == 1 and simple else None
  if name in ("add", "add_any"):
    return "shift"
  if name == "sub":
    return "shift" if position == 0 else "negative_shift"
  if name == "mul":
    return "scale"
  if name == "gather" and position == 0 and not parameter.origin.operations:
    return "rows" if _takes_rows(params, jnp.shape(parameter.value)) else None
  return None


def _takes_rows(params: dict[str, Any], table: tuple[int, ...]) -> bool:
  """Whether a gather looks up whole rows of a table, as embeddings do."""
  numbers = params["dimension_numbers"]
  return (
    numbers.collapsed_slice_dims == (0,)
    and numbers.start_index_map == (0,)
    and numbers.operand_batching_dims == ()
    and params["slice_sizes"] == (1, *table[1:])
    and len(table) == 2
  )
