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
    shape: of one input.
    pairs: numbers of epsilons and examples, (E, n).
    size: of the window.
  """

  model: Model
  loss: PerExampleLoss
  how: Attack
  shape: tuple[int, ...]
  pairs: tuple[int, int]
  size: int

  def begin(
    self, state: State, examples: Examples, epsilons: Any, params: Any
  ) -> tuple[Progress, Given]:
    """After the first push: who is wrong is done, the others wait."""
    count = math.prod(self.pairs)
    rows = jnp.arange(count + self.size)
    x, best = state.x.reshape(count, -1), state.best  # [E, n, d] before
    wrong = best.wrong.reshape(count)
    smallest = jnp.repeat(epsilons, self.pairs[1])
    order = jnp.lexsort((smallest, wrong))
    waiting = count - jnp.sum(wrong)
    queue = tree.take(
      Pairs(x, jnp.arange(count), jnp.zeros(count, jnp.int32)),
      order[jnp.minimum(rows, count - 1)],
    )
    queue = queue._replace(place=jnp.where(rows < waiting, queue.place, -1))
    # Those that are wrong come first, then whoever is left by the attack.
    before = jnp.roll(order, count - waiting)[jnp.minimum(rows, count - 1)]
    done = Done(
      examples.x[before % self.pairs[1]],
      jnp.where(rows < count - waiting, before, -1),
      best.loss.reshape(count)[before],
      wrong[before],
    )
    given = Given(queue, examples.x, examples.y, epsilons, params)
    window = tree.take(queue, slice(self.size))
    return Progress(window, self.size, done, count - waiting), given

  def turn(self, progress: Progress, given: Given) -> Progress:
    """One step of everybody in the window, and the next ones in."""
    own, taken, done, left = progress
    row = own.place % self.pairs[1]
    clean = given.clean[row]
    epsilon = given.epsilons[own.place // self.pairs[1]]
    judge = judge_of(
      self.model, self.loss, given.params, given.y[row], shape=self.shape
    )
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
    next_in = tree.take(given.queue, taken - 1 + jnp.cumsum(out))
    window = Pairs(
      choose(out, next_in.x, moved),
      jnp.where(out, next_in.place, own.place),
      jnp.where(out, next_in.age, own.age + 1),
    )
    number = jnp.sum(out)
    count = math.prod(self.pairs)
    taken = jnp.minimum(taken + number, count)
    return Progress(window, taken, done, left + number)

  def end(self, done: Done) -> Best:
    """In the order that the pairs came in, [E, n, d]."""
    count = math.prod(self.pairs)
    order = jnp.argsort(done.place[:count])
    x, _, loss, wrong = tree.take(done, order)
    return jax.tree.map(
      lambda v: v.reshape(*self.pairs, *v.shape[1:]), Best(x, loss, wrong)
    )


def run(queue: Queue, progress: Progress, given: Given) -> Done:
  """All turns as one program."""
  count = math.prod(queue.pairs)
  return jax.lax.while_loop(
    lambda held: held.left < count,
    lambda held: queue.turn(held, given),
    progress,
  ).done


def run_by_turns(queue: Queue, progress: Progress, given: Given) -> Done:
  """The same with the loop on the host, for convolutions on CPU."""
  count = math.prod(queue.pairs)
  while int(progress.left) < count:
    progress = _turn(queue, progress, given)
  return progress.done


@functools.partial(jax.jit, static_argnames="queue", donate_argnums=1)
def _turn(queue: Queue, progress: Progress, given: Given) -> Progress:
  return queue.turn(progress, given)
