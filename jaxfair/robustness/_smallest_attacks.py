"""Attacks that look for the smallest epsilon at which an example breaks.

A perturbation that breaks an example within a small ball is also in every larger ball. Each
example is therefore attacked from the largest epsilon down. When it is broken, the attack
continues with the largest epsilon that is smaller than the perturbation; it ends at the first
epsilon at which the example withstands all steps. That is about one run of steps per example,
instead of one run per pair of example and epsilon.

A window of examples is attacked at a time. An example that is finished makes room for the next
one, so that the window is full until the end.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair.robustness._attacks import Attack, Best, State, judge_of, judged
from jaxfair.robustness._norm_balls import choose
from jaxfair.types import Examples, Index, Labels, Model, Params, PerExampleLoss, PyTree

WINDOW = 32  # examples at a time: they fit the cache, and few wait for the last


class Given(NamedTuple):
  """What does not change. Levels number the epsilons from the smallest.

  Attributes:
    starts: [E, n, d] first pushes, in the order in which epsilons were given.
    order: [E] number of the epsilon that a level stands for.
    epsilons: [E] in ascending order.
    same: [E] the lowest level with the same epsilon: lists may repeat one.
    waiting: [n + k] rows to attack, then n: nobody.
    level: [n] where each begins: below what the first push breaks.
    clean_loss: [n] before any push.
    examples: inputs as rows of a matrix, see `balls.times`.
    params: of the model.
  """

  starts: Any
  order: Any
  epsilons: Any
  same: Any
  waiting: Any
  level: Any
  clean_loss: Any
  examples: Examples
  params: Any


class Window(NamedTuple):
  """[k] examples under attack; nobody where row is n."""

  x: Any
  row: Any
  level: Any
  age: Any


class Found(NamedTuple):
  """[n] what broke each example, and the lowest level that it counts at."""

  x: Any
  loss: Any
  level: Any


class Progress(NamedTuple):
  """The examples under attack, how many were started, and the results so far."""

  window: Window
  taken: Any
  found: Found


@dataclasses.dataclass(frozen=True)
class Search:
  """A search for the smallest epsilons: static parts only.

  Attributes:
    model: the attacked model.
    loss: what the attack raises.
    how: the attack.
    shape: shape of one input.
    size: of the window.
  """

  model: Model
  loss: PerExampleLoss
  how: Attack
  shape: tuple[int, ...]
  size: int

  def begin(
    self, state: State, examples: Examples, epsilons: jax.Array, params: Params
  ) -> tuple[Progress, Given]:
    """After the first push at every epsilon; the smallest that broke counts."""
    count = examples.size
    levels = epsilons.shape[0]
    order = jnp.argsort(epsilons)
    epsilons = epsilons[order]
    same = jnp.searchsorted(epsilons, epsilons)
    judge = self._judge(params, examples.y)
    losses, wrong = jax.vmap(judge)(state.x)  # [E, n]
    # All epsilons have the same clean input.
    clean, clean_wrong = state.best.loss[0], state.best.wrong[0]
    first = jnp.argmax(wrong[order], axis=0)
    at = order[first], jnp.arange(count)
    broken = jnp.any(wrong, axis=0) & ~clean_wrong
    level = jnp.where(broken, same[first], levels)
    level = jnp.where(clean_wrong, 0, level)
    found = Found(
      choose(broken, state.x[at], examples.x), jnp.where(broken, losses[at], clean), level
    )
    todo = (level > 0) & (self.how.steps_left > 0)
    waiting = jnp.where(todo, jnp.arange(count), count)
    waiting = jnp.concatenate([jnp.sort(waiting), jnp.full(self.size, count, waiting.dtype)])
    given = Given(state.x, order, epsilons, same, waiting, level - 1, clean, examples, params)
    row = waiting[: self.size]
    window = self._entered(row, given.level[row], given)
    return Progress(window, self.size, found), given

  def turn(self, progress: Progress, given: Given) -> Progress:
    """One step of everybody in the window, and the next ones in."""
    own, taken, found = progress
    count = given.examples.size
    clean = given.examples.x[own.row]
    judge = self._judge(given.params, given.examples.y[own.row])
    (losses, wrong), gradient = judged(judge, own.x)
    moved = self.how.pushed(gradient, own.x, clean, given.epsilons[own.level])
    # One that a step no longer moves would not be moved by the next.
    still = jnp.all(moved == own.x, axis=1)
    here = own.row < count
    broken = here & wrong
    held = here & ~wrong & (still | (own.age >= self.how.steps_left))
    size = self.how.ball.norm(own.x - clean)
    smaller = jnp.sum(given.epsilons < size[:, None], axis=1)
    level = jnp.minimum(smaller, given.same[own.level])
    place = jnp.where(broken, own.row, count)  # beyond the end: not written
    found = jax.tree.map(
      lambda old, new: old.at[place].set(new, mode="drop"), found, Found(own.x, losses, level)
    )
    out = held | (broken & (level == 0))
    next_in = given.waiting[taken - 1 + jnp.cumsum(out)]
    row = jnp.where(out, next_in, own.row)
    entered = self._entered(row, jnp.where(out, given.level[next_in], level - 1), given)
    anew = out | broken
    going = Window(moved, own.row, own.level, own.age + 1)
    window = jax.tree.map(lambda a, b: choose(anew, a, b), entered, going)
    taken = jnp.minimum(taken + jnp.sum(out), count)
    return Progress(window, taken, found)

  def end(self, progress: Progress, given: Given) -> Best:
    """Success at every epsilon that is not below what was found."""
    found = progress.found
    level = jnp.argsort(given.order)  # of every epsilon, as given
    success = level[:, None] >= found.level
    pick = jax.vmap(choose, (0, None, None))
    return Best(
      pick(success, found.x, given.examples.x),
      jnp.where(success, found.loss, given.clean_loss),
      success,
    )

  def left(self, progress: Progress) -> jax.Array:
    """How many are under attack."""
    return jnp.sum(progress.window.row < progress.found.level.shape[0])

  def _judge(self, params: Params, y: Labels) -> PyTree:
    return judge_of(self.model, self.loss, params, y, shape=self.shape)

  def _entered(self, row: Index, level: Index, given: Given) -> Window:
    x = given.starts[given.order[level], row]
    return Window(x, row, level, jnp.zeros_like(row))


def run(search: Search, progress: Progress, given: Given) -> Progress:
  """All turns as one program."""
  return jax.lax.while_loop(
    lambda held: search.left(held) > 0, lambda held: search.turn(held, given), progress
  )


def run_by_turns(search: Search, progress: Progress, given: Given) -> Progress:
  """The same with the loop on the host, for convolutions on CPU."""
  left = search.left(progress)
  while int(left):
    progress, left = _turn(search, progress, given)
  return progress


@functools.partial(jax.jit, static_argnames="search", donate_argnums=1)
def _turn(search: Search, progress: Progress, given: Given) -> PyTree:
  progress = search.turn(progress, given)
  return progress, search.left(progress)
