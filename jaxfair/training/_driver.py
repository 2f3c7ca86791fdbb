"""The one driver: runs a step many times, as one scan or as a jitted loop.

A scan is one compiled program: it can be vmapped over seeds, teachers and settings, and saves the
dispatch of every step. On the CPU backend a convolution inside a loop runs about ten times slower
than the same convolution in a program of its own, so there the default is a Python loop over one
jitted step.
"""

import functools
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
from numpy.typing import DTypeLike

from jaxfair import _jaxpr, checks, tree
from jaxfair.training._thin_products import by_columns
from jaxfair.types import Features, Index, Model, PyTree

Loop = Literal["auto", "scan", "step"]
BLOCK = 1024  # steps whose feeds are made together, at most
ROWS = 2**22  # rows in their batches, at most: drawing takes tens of bytes each


class Step(Protocol):
  """One step of a training.

  Steps are static arguments of jit: two steps that compare equal share one
  compiled program, so a frozen dataclass is the usual form.
  """

  def __call__(self, carry: PyTree, feed: PyTree, inputs: PyTree, /) -> tuple[Any, Any]:
    """`(carry, this step's feed, inputs) -> (carry, info)`."""
    ...

  def __hash__(self) -> int: ...


class Feeds(Protocol):
  """Makes what `count` steps from `start` on are given, stacked.

  A static argument of jit, as steps are. What a step is given depends on its
  number and on the source alone: blocks of any size make the same feeds.
  """

  def __call__(self, source: PyTree, inputs: PyTree, start: Index, count: int, /) -> PyTree:
    """`(source, inputs, number of the first step, how many) -> feeds`."""
    ...

  def __hash__(self) -> int: ...


def run_blocks(
  step: Step,
  carry: PyTree,
  feeds: Feeds,
  source: PyTree,
  inputs: PyTree,
  *,
  steps: int,
  start: Index = 0,
  rows: int = 1,
  loop: Literal["scan", "step"] = "scan",
  apart: Step | None = None,
) -> tuple[Any, Any]:
  """Applies `step` as often as asked, making feeds a block at a time.

  Memory does not grow with the number of steps, but for the infos.

  Args:
    step: a pure function of `(carry, feed, inputs)`.
    carry: what the next step needs; a pytree.
    feeds: makes the feeds of some steps from `source`.
    source: keys, and what else feeds are made of; a pytree.
    inputs: what every step reads; a pytree.
    steps: number of steps.
    start: number of the first step, in a training that continues another.
    rows: rows of people that one step's feed names.
    loop: as in `run_steps`.
    apart: the step as it is applied by a Python loop, if it consists of several programs.

  Returns:
    The last carry, and the infos stacked along a leading axis.
  """
  size = block_size(steps, rows)
  if loop == "scan":
    if size == steps:
      return _scan(step, carry, feeds(source, inputs, start, steps), inputs)
    return _scan_blocks(step, carry, feeds, source, inputs, start, steps=steps, size=size)
  infos = []
  for first in range(0, steps, size):
    # As long as the others also if fewer are left: one program for all.
    made = make(feeds, source, inputs, start + first, size)
    for index in range(min(size, steps - first)):
      if apart is None:
        carry, info = _single(step, carry, made, jnp.asarray(index), inputs)
      else:
        carry, info = apart(carry, tree.take(made, index), inputs)
      infos.append(info)
  return carry, tree.stack(infos)


def block_size(steps: int, rows: int, *, most: int = ROWS) -> int:
  """How many steps' feeds are made together.

  A divisor of the number of steps if there is a large one: the steps that are
  left after the last block are a second loop to compile.
  """
  limit = min(BLOCK, max(1, most // rows))
  if steps <= limit:
    return steps
  divisors = (d for d in range(limit, limit // 4, -1) if steps % d == 0)
  return next(divisors, limit)


@functools.partial(jax.jit, static_argnames=("feeds", "count"))
def make(feeds: Feeds, source: PyTree, inputs: PyTree, start: Index, count: int) -> PyTree:
  """The feeds of `count` steps from `start` on, by one compiled program."""
  return feeds(source, inputs, start, count)


def run_steps(
  step: Step,
  carry: PyTree,
  feeds: PyTree,
  inputs: PyTree,
  *,
  loop: Literal["scan", "step"] = "scan",
) -> tuple[Any, Any]:
  """Applies `step` once per feed.

  Args:
    step: a pure function of `(carry, feed, inputs)`.
    carry: what the next step needs; a pytree.
    feeds: what differs between steps (rows of the batch, keys), stacked along
      a leading axis. Made before the loop: inside it the compiler would fuse
      the making of row numbers into the look-up of every single feature.
    inputs: what every step reads (data, settings); a pytree.
    loop: "scan", or "step" for a Python loop over one jitted step, which
      cannot itself be traced. `choose_loop` picks one.

  Returns:
    The last carry, and the infos stacked along a leading axis.
  """
  if loop == "scan":
    return _scan(step, carry, feeds, inputs)
  infos = []
  for index in range(jax.tree.leaves(feeds)[0].shape[0]):
    carry, info = _single(step, carry, feeds, jnp.asarray(index), inputs)
    infos.append(info)
  return carry, tree.stack(infos)


def choose_loop(loop: Loop, model: Model, x: Features, *, traced: bool) -> Literal["scan", "step"]:
  """Picks the faster loop for this model on this backend.

  Args:
    loop: the user's wish; "auto" chooses.
    model: looked through for convolutions.
    x: [n, ...] inputs; only the shape is used.
    traced: whether the training is itself inside jit, vmap or grad, where only a scan is possible.
  """
  checks.one_of("loop", loop, ("auto", "scan", "step"))
  if loop == "step" and traced:
    raise checks.ArgumentError(
      'loop="step" cannot run inside jit, vmap or grad; use loop="scan" there'
    )
  if loop != "auto":
    return loop
  slow_in_scan = jax.default_backend() == "cpu" and not traced
  if slow_in_scan and _has_convolution(model, x.shape[1:], x.dtype):
    return "step"
  return "scan"


@functools.partial(jax.jit, static_argnames=("step",))
def _scan(step: Step, carry: PyTree, feeds: PyTree, inputs: PyTree) -> tuple[Any, Any]:
  thin = by_columns(step)
  return jax.lax.scan(lambda c, f: thin(c, f, inputs), carry, feeds)


@functools.partial(jax.jit, static_argnames=("step", "feeds", "steps", "size"))
def _scan_blocks(
  step: Step,
  carry: PyTree,
  feeds: Feeds,
  source: PyTree,
  inputs: PyTree,
  start: Index,
  *,
  steps: int,
  size: int,
) -> tuple[Any, Any]:
  blocks, left = divmod(steps, size)

  def run(carry: PyTree, first: PyTree, count: int) -> tuple[Any, Any]:
    return _scan(step, carry, feeds(source, inputs, first, count), inputs)

  carry, infos = jax.lax.scan(
    lambda carry, first: run(carry, first, size), carry, start + size * jnp.arange(blocks)
  )
  infos = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), infos)
  if left:
    carry, last = run(carry, start + size * blocks, left)
    infos = jax.tree.map(lambda *a: jnp.concatenate(a), infos, last)
  return carry, infos


@functools.partial(jax.jit, static_argnames=("step",))
def _single(
  step: Step, carry: PyTree, feeds: PyTree, index: Index, inputs: PyTree
) -> tuple[Any, Any]:
  # The index is a device array: one compilation serves all steps.
  return by_columns(step)(carry, tree.take(feeds, index), inputs)


@functools.lru_cache(maxsize=256)
def _has_convolution(model: Model, shape: tuple[int, ...], dtype: DTypeLike) -> bool:
  one = jax.ShapeDtypeStruct(shape, dtype)
  params = jax.eval_shape(model.init, jax.random.key(0), one)
  batch = jax.ShapeDtypeStruct((1, *shape), dtype)
  return any(
    equation.primitive.name == "conv_general_dilated"
    for equation in _jaxpr.equations(jax.make_jaxpr(model.apply)(params, batch))
  )
