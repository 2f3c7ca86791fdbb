"""Evaluates a program that was read (`_taps`), with another operation at each site."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend import core

from jaxfair import _jaxpr
from jaxfair.privacy import _origins
from jaxfair.privacy._origins import Data, Step, Value
from jaxfair.privacy._sites import Site, View
from jaxfair.privacy._taps import Level, Reading, inputs_of
from jaxfair.types import PyTree


class Meeting(NamedTuple):
  """What is known where a parameter meets data.

  Attributes:
    at: index of the site.
    site: the site.
    equation: the operation.
    data: the data operand.
    parameter: the parameter operand; its `exact` numbers are in float32.
    extra: what was passed to `run` for this site.
  """

  at: int
  site: Site
  equation: Any
  data: Any
  parameter: Value
  extra: Any

  def result(self) -> PyTree:
    """The operation's own result."""
    operands = [self.data, self.parameter.value]
    ordered = operands if self.site.position else operands[::-1]
    return _jaxpr.bind(self.equation, ordered)[0]


# Returns the site's output and what is captured there (None: nothing).
AtSite = Callable[[Meeting], tuple[Any, Any]]
Indexed = dict[int, Any]


def evaluate(
  reading: Reading, leaves: Sequence[Any], taps: Sequence[Any], example: PyTree
) -> tuple[Any, list[Any]]:
  """Evaluates what was read with the taps added.

  Args:
    reading: of the function.
    leaves: the parameters.
    taps: one array for each of `reading.taps`.
    example: one example.

  Returns:
    The function's value, and the captured arrays, as `reading.sources` lists them.
  """
  # Several sites may read one array; the first of them captures it.
  first = {site.source: i for i, site in reversed(list(enumerate(reading.sites)))}

  def capture(meeting: Meeting) -> PyTree:
    source = meeting.site.source
    is_first = source >= 0 and first[source] == meeting.at
    return meeting.result(), meeting.data if is_first else None

  value, captured = run(reading, leaves, example, capture, taps=dict(enumerate(taps)))
  return value, [captured[first[i]] for i in range(len(reading.sources))]


def run(
  reading: Reading,
  leaves: Sequence[Any],
  example: PyTree,
  at_site: AtSite,
  *,
  taps: Indexed | None = None,
  extra: Indexed | None = None,
) -> tuple[Any, Indexed]:
  """Evaluates what was read, operation by operation.

  Args:
    reading: of the function.
    leaves: the parameters.
    example: one example.
    at_site: what is done at a site.
    taps: by their indices.
    extra: what is passed to `at_site`, by indices of the sites. Like taps, each array has the
      lengths of the loops around its site as leading axes.

  Returns:
    The function's value, and what was captured, by indices of the sites.
  """
  shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in leaves]
  inputs = inputs_of(shapes, [*leaves, *jax.tree.leaves(example)])
  runner = _Runner(reading, at_site)
  inside = _Inside(taps or {}, extra or {})
  (output,), captured = runner.program(reading.program, inputs, reading.level, inside, 0)
  return output.value, captured


class _Inside(NamedTuple):
  """Taps and extra inputs of the sites in a part of the program."""

  taps: Indexed
  extra: Indexed

  def of(self, level: Level) -> "_Inside":
    taps = {i: self.taps[i] for i in level.tap_range if i in self.taps}
    return _Inside(taps, {i: self.extra[i] for i in level.site_range if i in self.extra})


class _Runner(NamedTuple):
  reading: Reading
  at_site: AtSite

  def program(
    self,
    program: _jaxpr.Program,
    inputs: Sequence[Value],
    level: Level,
    inside: _Inside,
    depth: int,
  ) -> tuple[list[Value], Indexed]:
    """The outputs of a program, and what its sites capture."""
    captured: Indexed = {}
    children = iter(level.children)
    plain = self.reading.plain

    def rule(equation: core.JaxprEqn, values: list[Value]) -> list[Value]:
      step = _origins.step_of(equation, values, plain=plain)
      if step in (Step.APPLY, Step.MEET):
        results = self._apply(equation, values, level, inside, captured, step)
        tap = level.taps.get(equation.outvars[0]) if equation.outvars else None
        if tap in inside.taps:
          results[0] = results[0]._replace(value=results[0].value + inside.taps[tap])
        return results
      child = next(children)
      own = inside.of(child)
      if step == Step.OPEN:
        outputs, found = self.program(_jaxpr.opened(equation), values, child, own, depth)
      elif step == Step.REMAT:
        outputs, found = self._rematerialized(equation, values, child, own, depth)
      else:
        outputs, found = self._loop(equation, values, child, own, depth)
      captured.update(found)
      return outputs

    outputs = _jaxpr.walk(program, list(inputs), rule, constant=lambda v: Value(v, None))
    return outputs, captured

  def _apply(
    self,
    equation: core.JaxprEqn,
    values: list[Value],
    level: Level,
    inside: _Inside,
    captured: Indexed,
    step: Step,
  ) -> list[Value]:
    index = level.sites.get(id(equation)) if step == Step.MEET else None
    if index is not None:
      site = self.reading.sites[index]
      parameter = values[site.position]
      data = values[1 - site.position].value
      meeting = Meeting(index, site, equation, data, parameter, inside.extra.get(index))
      output, found = self.at_site(meeting)
      if found is not None:
        captured[index] = found
      return [Value(output, Data())]
    results = _jaxpr.bind(equation, [v.value for v in values])
    if step == Step.MEET:
      return [Value(result, Data()) for result in results]
    origin = _origins.origin_after(equation, values, plain=self.reading.plain)
    if not isinstance(origin, View):
      return [Value(result, origin) for result in results]
    (before,) = values
    if origin == before.origin:  # a cast
      return [Value(results[0], origin, _exact(before))]
    exact = None if before.exact is None else _jaxpr.bind(equation, [before.exact])[0]
    return [Value(results[0], origin, exact)]

  def _rematerialized(
    self, equation: core.JaxprEqn, values: list[Value], level: Level, inside: _Inside, depth: int
  ) -> tuple[list[Value], Indexed]:
    origins: list[Any] = []

    def part(arrays: PyTree, exact: PyTree, inside: _Inside) -> PyTree:
      inputs = [
        Value(array, value.origin, other)
        for array, value, other in zip(arrays, values, exact, strict=True)
      ]
      outputs, captured = self.program(_jaxpr.opened(equation), inputs, level, inside, depth)
      origins[:] = [output.origin for output in outputs]
      return [output.value for output in outputs], [output.exact for output in outputs], captured

    wrapped = jax.checkpoint(
      part, prevent_cse=equation.params["prevent_cse"], policy=equation.params["policy"]
    )
    found, exact, captured = wrapped([v.value for v in values], [v.exact for v in values], inside)
    return [Value(*one) for one in zip(found, origins, exact, strict=True)], captured

  def _loop(
    self, equation: core.JaxprEqn, values: list[Value], level: Level, inside: _Inside, depth: int
  ) -> tuple[list[Value], Indexed]:
    params = equation.params
    consts, carried = params["num_consts"], params["num_carry"]
    origins = _origins.in_body(equation, values, depth, lambda leaves: None)
    first = consts + carried

    def one_round(carry: PyTree, rows: PyTree) -> PyTree:
      arrays, exact, inside = rows
      everything = [*(v.value for v in values[:consts]), *carry, *arrays]
      exacts = [*(v.exact for v in values[:consts]), *([None] * carried), *exact]
      inputs = [Value(*one) for one in zip(everything, origins, exacts, strict=True)]
      outputs, captured = self.program(params["jaxpr"], inputs, level, inside, depth + 1)
      found = [output.value for output in outputs]
      return found[:carried], (found[carried:], captured)

    rows = ([v.value for v in values[first:]], [v.exact for v in values[first:]], inside)
    start = [v.value for v in values[consts:first]]
    carry, (stacked, captured) = jax.lax.scan(
      one_round,
      start,
      rows,
      length=params["length"],
      reverse=params["reverse"],
      unroll=params["unroll"],
    )
    return [Value(array, Data()) for array in (*carry, *stacked)], captured


def _exact(value: Value) -> PyTree:
  return value.value if value.exact is None else value.exact
