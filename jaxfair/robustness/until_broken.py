"""Attacks that leave a pair of example and epsilon as soon as it is broken.

Pairs wait in a queue, those of small epsilons first: they hold out longest. A
window of them is under attack. Whoever is broken, or has taken all steps, makes
room for the next in the queue, so that the work is what the attack needs, and
the window is full until the end.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import tree
from jaxfair.robustness.attacks import (
  Attack,
  Best,
  Judge,
  State,
  judge_of,
  judged,
)
from jaxfair.robustness.balls import choose
from jaxfair.types import Examples, Model, PerExampleLoss

WINDOW = 128  # pairs at a time: they fit the cache, and the last ones are few


class Pairs(NamedTuple):
  """Some pairs of an example and an epsilon; nobody where place is negative.

  Attributes:
    x: [k, d] where they are, as rows of a matrix: see `balls.times`.
    place: [k] epsilon number times n, plus row number.
    age: [k] steps taken.
  """

  x: Any
  place: Any
  age: Any


class Done(NamedTuple):
  """Pairs in the order in which the attack left them."""

  x: Any
  place: Any
  loss: Any
  wrong: Any


class Progress(NamedTuple):
  """Who is under attack, how many were taken in, and who is done."""

  window: Pairs
  taken: Any
  done: Done
  left: Any


class Given(NamedTuple):
  """What does not change: the queue, and what the pairs are made of."""

  queue: Pairs
  waiting: Any
  clean: Any
  y: Any
  epsilons: Any
  params: Any


@dataclasses.dataclass(frozen=True)
class Queue:
  """An attack until pairs are broken: static parts only.

  Attributes:
    model: the attacked model.
    loss: what the attack raises.
    how: the attack.
    shape: of the epsilons, examples and inputs, (E, n, ...).
    size: of the window.
  """

  model: Model
  loss: PerExampleLoss
  how: Attack
  shape: tuple[int, ...]
  size: int

  def begin(
    self, state: State, examples: Examples, epsilons: Any, params: Any
  ) -> tuple[Progress, Given]:
    """After the first push: who is wrong is done, the others wait."""
    count = math.prod(self.shape[:2])
    rows = jnp.arange(count + self.size)
    x, best = state.x.reshape(count, -1), state.best
    wrong = best.wrong.reshape(count)
    smallest = jnp.repeat(epsilons, self.shape[1])
    order = jnp.lexsort((smallest, wrong))
    waiting = count - jnp.sum(wrong)
    queue = tree.take(
      Pairs(x, jnp.arange(count), jnp.zeros(count, jnp.int32)),
      order[jnp.minimum(rows, count - 1)],
    )
    queue = queue._replace(place=jnp.where(rows < waiting, queue.place, -1))
    clean = examples.x.reshape(self.shape[1], -1)
    # Those that are wrong come first, then whoever is left by the attack.
    before = jnp.roll(order, count - waiting)[jnp.minimum(rows, count - 1)]
    done = Done(
      clean[before % self.shape[1]],
      jnp.where(rows < count - waiting, before, -1),
      best.loss.reshape(count)[before],
      wrong[before],
    )
    given = Given(queue, waiting, clean, examples.y, epsilons, params)
    window = tree.take(queue, slice(self.size))
    return Progress(window, self.size, done, count - waiting), given

  def turn(self, progress: Progress, given: Given) -> Progress:
    """One step of everybody in the window, and the next ones in."""
    own, taken, done, left = progress
    row = own.place % self.shape[1]
    clean = given.clean[row]
    epsilon = given.epsilons[own.place // self.shape[1]]
    judge = self._judge(given.y[row], given.params)
    (losses, wrong), gradient = judged(judge, own.x)
    moved = self.how.pushed(gradient, own.x, clean, epsilon)
    # One that a step no longer moves would not be moved by the next.
    still = jnp.all(moved == own.x, axis=1)
    out = (own.place >= 0) & (wrong | still | (own.age >= self.how.steps_left))
    order = jnp.argsort(~out, stable=True)
    leaving = tree.take(Done(own.x, own.place, losses, wrong), order)
    # What is written beyond those that leave is written over by the next.
    done = jax.tree.map(
      lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, left, 0),
      done,
      leaving,
    )
    number = jnp.sum(out)
    staying = tree.take(Pairs(moved, own.place, own.age + 1), order)
    fresh = jax.tree.map(
      lambda v: jax.lax.dynamic_slice_in_dim(v, taken, self.size), given.queue
    )
    new = jnp.arange(self.size) < number
    window = Pairs(
      choose(new, fresh.x, staying.x),
      jnp.where(new, fresh.place, staying.place),
      jnp.where(new, fresh.age, staying.age),
    )
    count = math.prod(self.shape[:2])
    taken = jnp.minimum(taken + number, count)
    return Progress(window, taken, done, left + number)

  def end(self, done: Done) -> Best:
    """In the order and shape that the pairs came in."""
    count = math.prod(self.shape[:2])
    order = jnp.argsort(done.place[:count])
    x, _, loss, wrong = tree.take(done, order)
    two = self.shape[:2]
    return Best(x.reshape(self.shape), loss.reshape(two), wrong.reshape(two))

  def _judge(self, y: Any, params: Any) -> Judge:
    judge = judge_of(self.model, self.loss, params, y)
    return lambda rows: judge(rows.reshape(self.size, *self.shape[2:]))


def run(queue: Queue, progress: Progress, given: Given) -> Done:
  """All turns as one program."""
  count = math.prod(queue.shape[:2])
  return jax.lax.while_loop(
    lambda held: held.left < count,
    lambda held: queue.turn(held, given),
    progress,
  ).done


def run_by_turns(queue: Queue, progress: Progress, given: Given) -> Done:
  """The same with the loop on the host, for convolutions on CPU."""
  count = math.prod(queue.shape[:2])
  while int(progress.left) < count:
    progress = _turn(queue, progress, given)
  return progress.done


@functools.partial(jax.jit, static_argnames="queue", donate_argnums=1)
def _turn(queue: Queue, progress: Progress, given: Given) -> Progress:
  return queue.turn(progress, given)
