"""Attacks on many examples, for a list of epsilons in one program."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, models
from jaxfair.models import _losses
from jaxfair.robustness import _smallest_attacks
from jaxfair.robustness._attacks import Attack, Best, Judge, State, judge_of
from jaxfair.training import _driver
from jaxfair.types import Examples, Key, Labels, Model, Params, PerExampleLoss, PyTree, Scores

Stop = Literal["end", "smallest"]


class Attacked(NamedTuple):
  """Examples after an attack, one leading axis for the epsilons.

  Attributes:
    x: [E, n, ...] pushed inputs.
    loss: [E, n] the attack's loss there.
    success: [E, n] whether they are predicted wrongly. An example that was
      wrong from the start counts, too.
  """

  x: np.ndarray
  loss: np.ndarray
  success: np.ndarray


def attack(
  model: Model,
  params: Params,
  examples: Examples,
  how: Attack,
  *,
  epsilons: Sequence[float],
  key: Key,
  loss: PerExampleLoss = models.cross_entropy,
  batch_size: int = 512,
  loop: _driver.Loop = "auto",
  stop: Stop = "end",
) -> Attacked:
  """Attacks every example, at all epsilons in parallel.

  Args:
    model: any model; it sees inputs in the attack's declared range.
    params: its parameters.
    examples: x in the declared range; y, the label that the attack leads away from.
    how: the attack.
    epsilons: sizes of the perturbations, in units of the inputs.
    key: for random starts; each epsilon and example has its own.
    loss: what the attack raises, `(logits, y) -> [n]`.
    batch_size: examples held in memory at once, each once per epsilon.
    loop: see `training.choose_loop`.
    stop: "end" takes all steps at every epsilon. "smallest" looks for the
      smallest epsilon that breaks each example, several times faster: see
      below. Use it where success counts, and not how badly it is broken.

  Returns:
    `Attacked`, on the host; inside jit it is traced, as everything is.

  With `stop="smallest"` each example is attacked from the largest epsilon down. The
  attack goes on to a smaller epsilon at the first input that is predicted wrongly, and
  ends at the first epsilon that the example withstands. A perturbation that breaks the
  example counts at every epsilon that is at least its size, since it lies in those balls
  as well: success never falls as epsilon grows, and x is that input at all those
  epsilons. Elsewhere x is the clean input. The first step is tried at all epsilons, so
  PGD stays at least as strong as FGSM at each. It can miss a smaller epsilon below one
  at which all steps fail; with a single epsilon it misses nothing.

  Assumptions:
    Success is a lower bound: a failed attack proves nothing. Where the loss is
    flat (large logits round cross-entropy's gradient to 0) an attack makes no
    progress; `negative_margin` does not flatten.
  """
  checks.non_negative("epsilons", epsilons)
  checks.require(
    np.ndim(epsilons) == 1 and np.size(epsilons) > 0,
    "epsilons must be a list of sizes, e.g. [0.01, 0.03]",
  )
  checks.integer("batch_size", batch_size, low=1)
  checks.one_key("key", key)
  checks.one_of("stop", stop, get_args(Stop))
  size = checks.same_length(**examples._asdict())
  checks.require(size > 0, "examples is empty; there is nobody to attack")
  how.check(examples.x)
  known = checks.concrete((params, examples, key))
  chosen = _driver.choose_loop(loop, model, examples.x, traced=not known)
  host = np if known else jnp
  sizes = jnp.asarray(epsilons, jnp.float32)
  batch = min(batch_size, size)
  step = _Advance(model, loss, how, np.shape(examples.x)[1:])
  found = []
  for index, first in enumerate(range(0, size, batch)):
    # The last batch is filled up with its last row, so that one program serves.
    rows = np.minimum(np.arange(first, first + batch), size - 1)
    some = jax.tree.map(jnp.asarray, examples.take(rows))
    # Rows of a matrix: loops over an image's short axes are slower.
    some = some._replace(x=some.x.reshape(batch, -1))
    own = jax.random.fold_in(key, index)
    inputs = _Inputs(params, some, sizes)
    best = _PROGRAMS[stop, chosen](step, inputs, own)
    kept = min(batch, size - first)
    found.append([host.asarray(leaf)[:, :kept] for leaf in best])
  x, losses, wrong = (host.concatenate(parts, 1) for parts in zip(*found, strict=True))
  return Attacked(x.reshape(len(x), *np.shape(examples.x)), losses, wrong)


def negative_margin(logits: Scores, y: Labels) -> jax.Array:
  """max_{c != y} logits_c - logits_y: positive exactly where the prediction is wrong.

  As a loss for attacks it does not flatten with the size of the logits.

  Reference:
    Carlini and Wagner 2017.
  """
  return -_losses.margin(logits, y)


class _Inputs(NamedTuple):
  params: Any
  examples: Examples
  epsilons: Any


@dataclasses.dataclass(frozen=True)
class _Advance:
  """One step of an attack at all epsilons: static parts only."""

  model: Model
  loss: PerExampleLoss
  how: Attack
  shape: tuple[int, ...]  # of one input

  def judge(self, inputs: _Inputs) -> Judge:
    return judge_of(self.model, self.loss, inputs.params, inputs.examples.y, shape=self.shape)

  def search(self, inputs: _Inputs) -> _smallest_attacks.Search:
    size = min(_smallest_attacks.WINDOW, inputs.examples.x.shape[0])
    return _smallest_attacks.Search(self.model, self.loss, self.how, self.shape, size)

  def begin_search(self, inputs: _Inputs, key: Key) -> PyTree:
    return self.search(inputs).begin(
      self.begin(inputs, key), inputs.examples, inputs.epsilons, inputs.params
    )

  def begin(self, inputs: _Inputs, key: Key) -> State:
    keys = jax.random.split(key, inputs.epsilons.shape[0])
    return jax.vmap(
      lambda epsilon, own: self.how.begin(self.judge(inputs), inputs.examples.x, epsilon, own)
    )(inputs.epsilons, keys)

  def __call__(self, state: State, feed: PyTree, inputs: _Inputs) -> tuple[State, None]:
    del feed
    judge, x = self.judge(inputs), inputs.examples.x
    return jax.vmap(lambda own, epsilon: self.how.advance(judge, own, x, epsilon))(
      state, inputs.epsilons
    ), None

  def end(self, state: State, inputs: _Inputs) -> Best:
    return jax.vmap(lambda own: self.how.end(self.judge(inputs), own))(state)


def _steps(step: _Advance, inputs: _Inputs, key: jax.Array) -> Best:
  state = _begin(step, inputs, key)
  state = _advanced(step, state, inputs, "step")
  return _end(step, state, inputs)


@functools.partial(jax.jit, static_argnames=("step",))
def _whole(step: _Advance, inputs: _Inputs, key: jax.Array) -> Best:
  state = step.begin(inputs, key)
  return step.end(_advanced(step, state, inputs, "scan"), inputs)


def _advanced(step: _Advance, state: State, inputs: _Inputs, loop: PyTree) -> State:
  if not step.how.steps_left:
    return state
  feeds = jnp.arange(step.how.steps_left)
  return _driver.run_steps(step, state, feeds, inputs, loop=loop)[0]


def _steps_of_search(step: _Advance, inputs: _Inputs, key: jax.Array) -> Best:
  search = step.search(inputs)
  progress, given = _begin_search(step, inputs, key)
  progress = _smallest_attacks.run_by_turns(search, progress, given)
  return _end_search(search, progress, given)


@functools.partial(jax.jit, static_argnames=("step",))
def _whole_search(step: _Advance, inputs: _Inputs, key: jax.Array) -> Best:
  search = step.search(inputs)
  progress, given = step.begin_search(inputs, key)
  return search.end(_smallest_attacks.run(search, progress, given), given)


_PROGRAMS: dict[tuple[str, str], Callable[..., Best]] = {
  ("end", "step"): _steps,
  ("end", "scan"): _whole,
  ("smallest", "step"): _steps_of_search,
  ("smallest", "scan"): _whole_search,
}


@functools.partial(jax.jit, static_argnames=("step",))
def _begin_search(step: _Advance, inputs: _Inputs, key: jax.Array) -> PyTree:
  return step.begin_search(inputs, key)


@functools.partial(jax.jit, static_argnames=("search",))
def _end_search(
  search: _smallest_attacks.Search,
  progress: _smallest_attacks.Progress,
  given: _smallest_attacks.Given,
) -> Best:
  return search.end(progress, given)


@functools.partial(jax.jit, static_argnames=("step",))
def _begin(step: _Advance, inputs: _Inputs, key: jax.Array) -> State:
  return step.begin(inputs, key)


@functools.partial(jax.jit, static_argnames=("step",))
def _end(step: _Advance, state: State, inputs: _Inputs) -> Best:
  return step.end(state, inputs)
