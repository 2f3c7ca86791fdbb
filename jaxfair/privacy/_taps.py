"""Finds where a model combines parameters with data, by reading its jaxpr.

The per-example loss is traced for one example. Wherever an operation combines a parameter with
something that depends on the example, and has a rule (`_sites`), that place is a *site*: a zero
"tap" is added to its output, and differentiating by the taps alone gives every site's
back-propagated signal at the cost of one data-gradient pass. No layer library is named here: flax,
haiku and hand-written models trace to the same few operations.

Loops (`lax.scan`) and rematerialized parts are kept. The taps of a loop's sites are additional
inputs of it, one for each iteration, and what its sites capture are additional outputs.

A parameter that is combined with data in any other way is tapped itself, which gives its
per-example gradient directly: slower and larger, but never wrong.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend import core

from jaxfair import _jaxpr
from jaxfair.privacy import _origins
from jaxfair.privacy._origins import Data, Step, Value, leaves_of
from jaxfair.privacy._sites import Site, View, recognize
from jaxfair.types import PyTree

ADDITIONS = ("add", "add_any")


class Slot(NamedTuple):
  """A tap or a captured array.

  Attributes:
    one: its shape and type in one round.
    loops: lengths of the loops around it.
    remat: whether a rematerialized part is around it.
  """

  one: jax.ShapeDtypeStruct
  loops: tuple[int, ...]
  remat: bool

  @property
  def shape(self) -> tuple[int, ...]:
    """Of all rounds."""
    return (*self.loops, *self.one.shape)


@dataclasses.dataclass
class Level:
  """What reading found in one call of one program, apart from the calls inside it.

  Attributes:
    sites: id of an equation -> index of the site that it is.
    taps: variable -> index of the tap that is added to it.
    sources: variable -> index of the captured array that it is.
    children: of the calls that were read into, in order.
    site_range: indices of the sites in it, its children included.
    tap_range: indices of the taps in it, its children included.
  """

  sites: dict[int, int] = dataclasses.field(default_factory=dict)
  taps: dict[Any, int] = dataclasses.field(default_factory=dict)
  sources: dict[Any, int] = dataclasses.field(default_factory=dict)
  children: list["Level"] = dataclasses.field(default_factory=list)
  site_range: range = range(0)
  tap_range: range = range(0)


class Reading(NamedTuple):
  """All sites of a loss, in order.

  Attributes:
    sites: where parameters meet data.
    whole: the leaves that must be tapped whole.
    taps: one for each signal.
    sources: one for each array that is captured.
    program: what was read.
    level: of the program.
    plain: see `read`.
    short_rows: whether the derivative of some look-up is JAX's own, as it is at no site, and its
      row numbers are too short for it (`_jaxpr.wide_rows`).
  """

  sites: tuple[Site, ...]
  whole: frozenset[int]
  taps: tuple[Slot, ...]
  sources: tuple[Slot, ...]
  program: core.ClosedJaxpr
  level: Level
  plain: bool
  short_rows: bool


def read(
  function: Callable[..., Any], leaves: Sequence[Any], example: PyTree, *, plain: bool = False
) -> Reading:
  """Lists the sites of `function(leaves, example)`.

  Args:
    function: scalar function of the parameter leaves and one example.
    leaves: shapes of the leaves.
    example: shapes of one example.
    plain: read no loops and no numbers but float32 ones, and give every site a tap and a captured
      array of its own.
  """
  program = jax.make_jaxpr(function)(list(leaves), example)
  shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in leaves]
  inputs = inputs_of(shapes, program.in_avals)
  first = _Reader(plain, frozenset())
  first.read(program, inputs)
  # Which leaves are tapped whole is known at the end; their sites then count for nothing.
  second = _Reader(plain, frozenset(first.whole))
  level = second.read(program, inputs)
  found = (tuple(second.sites), second.skip, tuple(second.taps), tuple(second.sources))
  return Reading(*found, program, level, plain, second.short_rows)


def inputs_of(shapes: Sequence[jax.ShapeDtypeStruct], arrays: Sequence[Any]) -> list[Value]:
  """The inputs of a program: parameter leaves of these shapes, then the example."""
  origins: list[Any] = [View(i, shape) for i, shape in enumerate(shapes)]
  origins += [Data()] * (len(arrays) - len(shapes))
  return [Value(array, origin) for array, origin in zip(arrays, origins, strict=True)]


class _Around(NamedTuple):
  """What a part of a program is inside of."""

  loops: tuple[int, ...]
  remat: bool


class _Reader:
  """Walks through a program on shapes and notes its sites."""

  def __init__(self, plain: bool, skip: frozenset[int]):
    self.plain, self.skip = plain, skip
    self.sites: list[Site] = []
    self.taps: list[Slot] = []
    self.sources: list[Slot] = []
    self.whole: set[int] = set()
    self.short_rows = False

  def read(self, program: core.ClosedJaxpr, inputs: Sequence[Value]) -> Level:
    """Reads all of it."""
    outputs, level = self._program(program, inputs, _Around((), False))
    for output in outputs:
      # What reaches the end without meeting data has a gradient, too.
      self.whole.update(leaves_of(output.origin))
    return level

  def _program(
    self, program: _jaxpr.Program, inputs: Sequence[Value], around: "_Around"
  ) -> tuple[list[Value], Level]:
    level, uses = Level(), _jaxpr.uses(program)
    sites, taps = len(self.sites), len(self.taps)

    def rule(equation: core.JaxprEqn, values: list[Value]) -> list[Value]:
      step = _origins.step_of(equation, values, plain=self.plain)
      match step:
        case Step.APPLY:
          self._look(equation, values)
          return _results(equation, _origins.origin_after(equation, values, plain=self.plain))
        case Step.OPEN | Step.REMAT:
          inside = around._replace(remat=around.remat or step == Step.REMAT)
          outputs, child = self._program(_jaxpr.opened(equation), values, inside)
          level.children.append(child)
          return outputs
        case Step.LOOP:
          outputs, child = self._loop(equation, values, around)
          level.children.append(child)
          return outputs
        case Step.MEET:
          self._meet(equation, values, around, level, uses)
      return _results(equation, Data())

    outputs = _jaxpr.walk(program, list(inputs), rule, constant=lambda v: Value(v, None))
    level.site_range = range(sites, len(self.sites))
    level.tap_range = range(taps, len(self.taps))
    return outputs, level

  def _loop(
    self, equation: core.JaxprEqn, values: list[Value], around: "_Around"
  ) -> tuple[list[Value], Level]:
    body = equation.params["jaxpr"]
    origins = _origins.in_body(equation, values, len(around.loops), self.whole.update)
    inputs = [Value(aval, origin) for aval, origin in zip(body.in_avals, origins, strict=True)]
    inside = around._replace(loops=(*around.loops, equation.params["length"]))
    outputs, child = self._program(body, inputs, inside)
    for output in outputs:
      self.whole.update(leaves_of(output.origin))
    return _results(equation, Data()), child

  def _meet(
    self, equation: core.JaxprEqn, values: list[Value], around: "_Around", level: Level, uses: Any
  ) -> None:
    site = _site(equation, values, self.plain)
    if site is None:
      self.whole.update(*(leaves_of(v.origin) for v in values))
    if site is None or site.view.leaf in self.skip:
      self._look(equation, values)
      return
    data, result = equation.invars[1 - site.position], equation.outvars[0]
    signal = result if self.plain else _signal_variable(result, uses)
    own = (id(equation),) if self.plain else ()
    level.sites[id(equation)] = len(self.sites)
    tap = _place(level.taps, signal, self.taps, Slot(site.output, *around))
    source = -1
    if site.needs_data or self.plain:
      source = _place(level.sources, (data, *own), self.sources, Slot(site.data, *around))
    self.sites.append(dataclasses.replace(site, loops=around.loops, tap=tap, source=source))

  def _look(self, equation: core.JaxprEqn, values: list[Value]) -> None:
    """Notes a look-up by short row numbers in a table that is not constant."""
    tables = values[:1] if equation.primitive.name == "gather" else values
    if any(table.origin is not None for table in tables):
      self.short_rows |= _jaxpr.looks_up_short_rows(equation)


def _results(equation: core.JaxprEqn, origin: Any) -> list[Value]:
  return [Value(variable.aval, origin) for variable in equation.outvars]


def _site(equation: core.JaxprEqn, values: Sequence[Value], plain: bool) -> Site | None:
  """The site that an equation is, if one of its two operands is a view and the other is data."""
  if len(values) != 2:
    return None
  position = 0 if isinstance(values[0].origin, View) else 1
  view = values[position].origin
  if not isinstance(view, View) or not isinstance(values[1 - position].origin, Data):
    return None
  return recognize(equation, view, position, plain=plain)


def _place(indices: dict[Any, int], key: object, slots: list[Slot], slot: Slot) -> int:
  """The index of the key's slot; a new one if it has none."""
  if key not in indices:
    indices[key] = len(slots)
    slots.append(slot)
  return indices[key]


def _signal_variable(variable: Any, uses: dict[Any, list[Any]]) -> Any:
  """The last variable with the same cotangent: where it is only added to something."""
  while True:
    readers = uses.get(variable, [])
    if len(readers) != 1 or readers[0] is None:
      return variable
    (reader,) = readers
    after = reader.outvars[0]
    same = (after.aval.shape, after.aval.dtype) == (variable.aval.shape, variable.aval.dtype)
    if reader.primitive.name not in ADDITIONS or not same:
      return variable
    variable = after
