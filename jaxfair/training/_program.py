"""What a training consists of, and the one function that runs it.

Every trainer is a `Program`: `begin` makes the state before the first step, `feed` draws the
batches and keys of some steps, `step` takes one step, and `finish` makes the result. A step is

  sum      a sum over people; the only part that sees them
  release  noise on the sum; a plain training has none
  update   regularizers and the optimizer, which see nothing but what was released

Programs are static arguments of jit: two that compare equal share one compiled program. Numbers
and arrays, the config's included, are in `Given`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import optax

from jaxfair import checks, tree
from jaxfair.training import _driver
from jaxfair.training._optimizers import optimizer_of
from jaxfair.training._regularizers import check_anchor
from jaxfair.training._streaming import absent_people, run_streamed
from jaxfair.types import Examples, Fit, Model, Number, Params, PerExampleLoss, PyTree, Source

Config = TypeVar("Config")


@dataclass_transform(frozen_default=True)
def settings(*numbers: str) -> Callable[[type[Config]], type[Config]]:
  """Makes a frozen dataclass of a trainer's settings, as a pytree.

  Args:
    *numbers: fields that may be traced: stacked values are swept by `fit_many` in one program.
      The others fix the program.
  """

  def register(cls: type[Config]) -> type[Config]:
    made: Any = dataclasses.dataclass(frozen=True)(cls)
    fixed = [field.name for field in dataclasses.fields(made) if field.name not in numbers]
    jax.tree_util.register_dataclass(made, data_fields=numbers, meta_fields=fixed)
    return made

  return register


class Given(NamedTuple):
  """The inputs of a training.

  Attributes:
    examples: `Examples`, or a `Source`. While a training runs on a source, only its shapes.
    config: the trainer's settings.
    key: initial parameters, batches, noise.
    initial: parameters to start from; drawn by `model.init` if None.
    anchor: center of the proximity term.
    mask: what parameters are multiplied by at the start and after every step.
  """

  examples: Any
  config: Any
  key: jax.Array
  initial: Params | None = None
  anchor: Params | None = None
  mask: Params | None = None


class Begun(NamedTuple):
  """A training before its next step.

  Attributes:
    state: what the next step needs, and a checkpoint holds.
    source: keys, and what else feeds are made of.
    inputs: what every step reads.
  """

  state: Any
  source: Any
  inputs: Any


@dataclasses.dataclass(frozen=True)
class Program:
  """A training of a model by a loss; subclasses say which."""

  model: Model
  loss: PerExampleLoss

  def place(self, given: Given) -> Given:
    """What is given, on the devices where it is needed."""
    return given

  def begin(self, given: Given) -> Begun:
    """The training before its first step."""
    raise NotImplementedError

  def steps(self, config: Any) -> int:
    """How many steps there are."""
    count: int = config.steps
    return count

  def rows(self, inputs: PyTree) -> int:
    """How many rows of people the feed of one step names."""
    raise NotImplementedError

  def feed(self, source: PyTree, inputs: PyTree, start: int | jax.Array, count: int) -> PyTree:
    """The stacked feeds of `count` steps from `start` on.

    It depends on the number of the step and on the source alone: blocks of any size make the
    same feeds.
    """
    raise NotImplementedError

  def chosen(self, feeds: PyTree) -> tuple[Any, Any]:
    """[steps, batch] row numbers that some feeds name, and which of them take part (None: all).

    A program that has it, and `at_hand`, can train on a `Source`.
    """
    raise NotImplementedError

  def at_hand(self, feed: PyTree, inputs: PyTree, people: Examples) -> tuple[Any, Any]:
    """A step's feed and inputs if its batch consists of these people, in this order."""
    raise NotImplementedError

  def check_read(self, people: Examples) -> None:
    """Raises if people who were read from a source cannot be trained on."""

  def sum(self, state: PyTree, feed: PyTree, inputs: PyTree) -> tuple[Any, Any]:
    """A sum over the people of a batch, and what else was seen on the way."""
    raise NotImplementedError

  def release(self, total: PyTree, state: PyTree, feed: PyTree, inputs: PyTree) -> PyTree:
    """The sum as the update may see it; private trainers add noise here."""
    del state, feed, inputs
    return total

  def update(
    self, state: PyTree, released: PyTree, seen: PyTree, feed: PyTree, inputs: PyTree
  ) -> tuple[Any, Any]:
    """The state after the step, and what is traced of it."""
    raise NotImplementedError

  def step(self, state: PyTree, feed: PyTree, inputs: PyTree) -> tuple[Any, Any]:
    """`(state, feed, inputs) -> (state, info)`."""
    total, seen = self.sum(state, feed, inputs)
    released = self.release(total, state, feed, inputs)
    return self.update(state, released, seen, feed, inputs)

  def finish(self, state: PyTree, infos: PyTree, inputs: PyTree) -> Fit:
    """The result, from the last state and the stacked infos."""
    del inputs
    return Fit(state.params, infos)

  def start(self, given: Given) -> Params:
    """The parameters before the first step."""
    initial = given.initial
    if initial is None:
      one = jnp.zeros(given.examples.x.shape[1:], given.examples.x.dtype)
      initial = self.model.init(jax.random.fold_in(given.key, 0), one)
    return masked(initial, given.mask)


class RoundProgram(Program):
  """A training whose steps are rounds: some primal steps, then one dual step."""

  def steps(self, config: Any) -> int:
    """The number of rounds."""
    count: int = config.rounds
    return count

  def dual(self, state: PyTree, feed: PyTree, inputs: PyTree) -> tuple[Any, Any]:
    """One step of the multipliers, parameters held fixed."""
    raise NotImplementedError

  def join(
    self, state: PyTree, infos: PyTree, found: PyTree, feed: PyTree, inputs: PyTree
  ) -> tuple[Any, Any]:
    """The state after a round, and its info, from those of its steps."""
    raise NotImplementedError

  def primal(self, state: PyTree, feed: PyTree, inputs: PyTree) -> tuple[Any, Any]:
    """One step of the parameters, multipliers held fixed."""
    return super().step(state, feed, inputs)

  def step(self, state: PyTree, feed: PyTree, inputs: PyTree) -> tuple[Any, Any]:
    """One round, as a part of a larger program."""
    primals, dual = feed
    state, infos = _driver.run_steps(Part(self, "primal"), state, primals, inputs)
    state, found = self.dual(state, dual, inputs)
    return self.join(state, infos, found, feed, inputs)

  def step_apart(self, state: PyTree, feed: PyTree, inputs: PyTree) -> tuple[Any, Any]:
    """One round, each of its steps a program of its own."""
    primals, dual = feed
    state, infos = _driver.run_steps(Part(self, "primal"), state, primals, inputs, loop="step")
    one = jax.tree.map(lambda leaf: leaf[None], dual)
    state, found = _driver.run_steps(Part(self, "dual"), state, one, inputs, loop="step")
    return self.join(state, infos, tree.take(found, 0), feed, inputs)


@dataclasses.dataclass(frozen=True)
class Part:
  """A method of a program, equal to that of an equal program.

  Python compares bound methods by the identity of their object.
  """

  program: Program
  name: str

  def __call__(self, *arguments: Any) -> Any:
    """Calls it."""
    return getattr(self.program, self.name)(*arguments)


def train(program: Program, given: Given) -> Fit:
  """Checks what a training is given, and runs it from the first step to the last."""
  checks.one_key("key", given.key)
  people, source = opened(program, given.examples)
  given = given._replace(examples=people)
  given.config.check(program.model, program.loss, people)
  check_anchor(given.config, given.anchor)
  loop = loop_for(program, given)
  given = program.place(given)
  if loop == "scan" and source is None:
    return train_scan(program, given)
  return _train(program, given, loop, source)


def opened(program: Program, examples: Examples | Source) -> tuple[Examples, Source | None]:
  """People in memory; or the shapes of the people of a source, and the source."""
  if isinstance(examples, Examples) or not isinstance(examples, Source):
    return examples, None
  checks.require(
    type(program).chosen is not Program.chosen,
    "this training reads all people at once; pass Examples, or train by dp_sgd, train_to_budget or "
    "fit, which take a Source",
  )
  return absent_people(examples), examples


def loop_for(program: Program, given: Given) -> Literal["scan", "step"]:
  """How the steps of a training are run; see `driver.choose_loop`."""
  traced = not checks.concrete(given)
  return _driver.choose_loop(given.config.loop, program.model, given.examples.x, traced=traced)


@functools.partial(jax.jit, static_argnames=("program",))
def begin(program: Program, given: Given) -> Begun:
  """`program.begin`, compiled."""
  return program.begin(given._replace(examples=jax.tree.map(jnp.asarray, given.examples)))


def advance(
  program: Program,
  begun: Begun,
  *,
  count: int,
  start: int | jax.Array = 0,
  loop: Literal["scan", "step"] = "scan",
  source: Source | None = None,
) -> tuple[Begun, Any]:
  """Takes `count` steps from `start` on; the training then, and the stacked infos."""
  if source is not None:
    state, infos = run_streamed(program, begun, Part(program, "feed"), source, count, start, loop)
    return begun._replace(state=state), infos
  state, infos = _driver.run_blocks(
    Part(program, "step"),
    begun.state,
    Part(program, "feed"),
    begun.source,
    begun.inputs,
    steps=count,
    start=start,
    rows=program.rows(begun.inputs),
    loop=loop,
    apart=getattr(program, "step_apart", None),
  )
  return begun._replace(state=state), infos


def _train(
  program: Program,
  given: Given,
  loop: Literal["scan", "step"] = "scan",
  source: Source | None = None,
) -> Fit:
  begun, count = begin(program, given), program.steps(given.config)
  ended, infos = advance(program, begun, count=count, loop=loop, source=source)
  return program.finish(ended.state, infos, ended.inputs)


@functools.partial(jax.jit, static_argnames=("program",))
def train_scan(program: Program, given: Given) -> Fit:
  """A whole training as one compiled program."""
  return _train(program, given)


def descend(
  config: Any,
  gradient: PyTree,
  optimizer: optax.OptState,
  params: Params,
  *,
  mask: PyTree = None,
  share: Number | None = None,
  **seen: Any,
) -> tuple[Params, Any]:
  """One step of a config's optimizer: the new parameters, and its new state.

  Args:
    config: has `optimizer` and `learning_rate`.
    gradient: of the objective.
    optimizer: the optimizer's state.
    params: before the step.
    mask: what the gradient and the new parameters are multiplied by.
    share: of the step that is taken; all of it if None.
    **seen: extra arguments for the optimizer, if it takes any.
  """
  gradient = masked(gradient, mask)
  updates, optimizer = optimizer_of(config).update(gradient, optimizer, params, **seen)
  if share is not None:
    updates = tree.scale(share, updates)
  return masked(optax.apply_updates(params, updates), mask), optimizer


def masked(params: Params, mask: PyTree) -> Params:
  """Parameters times a mask, where there is one."""
  return params if mask is None else jax.tree.map(jnp.multiply, params, mask)
