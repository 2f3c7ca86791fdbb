"""Asks until the answers are enough, for all people of a test set at once."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxfair import checks, models
from jaxfair.data._scaling import Scaler
from jaxfair.disclosure import _beliefs as laws
from jaxfair.disclosure._choosers import ByEntropy, Chooser, Person, Scores
from jaxfair.disclosure._core_sets import (
  GRID_LIMIT,
  GridTest,
  IntervalTest,
  PureTest,
  Test,
  Verdict,
)
from jaxfair.disclosure._gaussian import Gaussian, check_features
from jaxfair.disclosure._network import Network, as_network
from jaxfair.disclosure._questions import Questions, as_arrays
from jaxfair.types import Features, Key, Model, Number, Params, PyTree

NOT_ASKED = -1
CHUNK = 512  # people side by side
LABEL_DRAWS = 1000


class Disclosed(NamedTuple):
  """The questions that people were asked, and the decisions.

  Attributes:
    order: [n, q] questions in the order they were asked; NOT_ASKED behind.
    revealed: [n, q] which were asked.
    count: [n] how many: the leakage.
    label: [n] the representative label; with everything revealed it is the
      model's own.
  """

  order: jax.Array
  revealed: jax.Array
  count: Any
  label: jax.Array


def disclose(
  model: Model,
  params: Params,
  gaussian: Gaussian,
  questions: Questions,
  x: Features,
  *,
  delta: float = 0.0,
  chooser: Chooser = ByEntropy(),
  pure: PureTest = IntervalTest(),
  scaler: Scaler | None = None,
  key: Key,
) -> Disclosed:
  """Runs personalized disclosure for every person, in one compiled program.

  Ask the best open question, until Pr[f = y | answers] >= 1 - delta for some
  y, or nothing that is hidden can matter.

  Args:
    model: `models.logistic` or a ReLU `models.mlp`.
    params: its parameters.
    gaussian: law of the features, e.g. `fit_gaussian(train.x)`.
    questions: the sensitive columns; the rest is public.
    x: [n, d] people, in [-1, 1] or in the scaler's units.
    delta: failure probability; 0 asks for certainty. A pure set is a core set
      for any delta, though a Gaussian also lives outside [-1, 1].
    chooser: which question next.
    pure: when nothing hidden can matter.
    scaler: takes x to [-1, 1].
    key: for simulated answers.

  Returns:
    What was asked of each person, and their label. With delta = 0 and
    `IntervalTest`, the label is the model's for every person, exactly.

  Privacy:
    A value that is not revealed affects neither the order nor the label.
  """
  found = disclose_each(
    model,
    params,
    gaussian,
    questions,
    x,
    deltas=(delta,),
    choosers={"": chooser},
    pure=pure,
    scaler=scaler,
    key=key,
  )
  return jax.tree.map(lambda leaf: leaf[0], found[""])


def disclose_each(
  model: Model,
  params: Params,
  gaussian: Gaussian,
  questions: Questions,
  x: Features,
  *,
  deltas: Sequence[float],
  choosers: Mapping[str, Chooser],
  pure: PureTest = IntervalTest(),
  scaler: Scaler | None = None,
  key: Key,
) -> dict[str, Disclosed]:
  """`disclose` with several orders and deltas, which share their conditional distributions.

  The laws of what is hidden are most of the work; they depend on neither.

  Args:
    model: see `disclose`, here and below.
    params: its parameters.
    gaussian: law of the features.
    questions: the sensitive columns.
    x: [n, d] people.
    deltas: [k] failure probabilities.
    choosers: name -> which question next.
    pure: when nothing hidden can matter.
    scaler: takes x to [-1, 1].
    key: imagined answers; deltas share them, choosers do not.

  Returns:
    name -> what was asked, with a leading axis [k].
  """
  checks.require(
    len(deltas) > 0 and len(choosers) > 0, "deltas or choosers is empty; pass at least one of each"
  )
  for delta in deltas:
    checks.number("delta", delta, low=0.0, high=0.5, open_high=True)
  checks.one_key("key", key)
  check_questions(questions, pure)
  x = jnp.asarray(x if scaler is None else scaler.apply(x))
  check_features(x)
  found = _disclose(
    as_network(params),
    gaussian,
    as_arrays(questions),
    x,
    models.predict(model, params, x),
    jnp.asarray(deltas, jnp.float32),
    tuple(choosers.values()),
    pure,
    key,
  )
  return dict(zip(choosers, found, strict=True))


def check_questions(questions: Questions, pure: PureTest) -> None:
  """Raises for more questions than a test takes."""
  checks.require(
    not isinstance(pure, GridTest) or questions.size <= GRID_LIMIT,
    f"the grid test takes at most {GRID_LIMIT} sensitive columns, not "
    f"{questions.size}; use IntervalTest(), which needs no grid",
  )


def core_test(known: laws.Beliefs, pure: Test, delta: Number, *, key: Key) -> Test:
  """Pure, or probable enough: Definition 7.1."""
  network = known.network
  classes = network.layers[-1][1].shape[0]
  normals = jax.random.normal(key, (LABEL_DRAWS, classes))

  def test(revealed: jax.Array, x: Features) -> Verdict:
    certain = pure(revealed, x)
    center = laws.pre_activation(known, revealed, x)
    rest = known.law(revealed).covariance
    chances = laws.label_probabilities(network, center, rest, normals)
    probable = (delta > 0) & (jnp.max(chances) >= 1 - delta)
    label = jnp.where(certain.core, certain.label, jnp.argmax(chances))
    return Verdict(certain.core | probable, label.astype(jnp.int32))

  return test


# (revealed [q], person, the model's own label) -> Verdict
Heard = Callable[[Any, Person, Any], Verdict]


class _Asking(NamedTuple):
  """Where the interview of each person stands."""

  verdict: Verdict
  revealed: Any
  order: Any
  count: Any


@functools.partial(jax.jit, static_argnames=("choosers", "pure"))
def _disclose(
  network: Network,
  gaussian: Gaussian,
  questions: Questions,
  x: Features,
  chosen: Any,
  deltas: PyTree,
  choosers: tuple[Chooser, ...],
  pure: PureTest,
  key: jax.Array,
) -> list[Disclosed]:
  key_pure, key_label, key_choose, key_people = jax.random.split(key, 4)
  known = laws.beliefs(network, gaussian, questions)
  certain = pure.build(network, questions, key=key_pure)
  keys = jax.random.split(key_people, x.shape[0])
  people = (Person(x, keys), chosen)
  chunk = min(CHUNK, x.shape[0])

  def heard(delta: Number) -> Heard:
    test = core_test(known, certain, delta, key=key_label)
    return functools.partial(_heard, test)

  def begin(delta: Number) -> _Asking:
    first = functools.partial(_begin, heard(delta), questions.size)
    return jax.lax.map(first, people, batch_size=chunk)

  begun = jax.vmap(begin)(deltas)  # before anybody is asked, orders are alike
  found = []
  for index, chooser in enumerate(choosers):
    scores = chooser.build(known, key=jax.random.fold_in(key_choose, index))

    def one(delta: Number, own: _Asking, scores: Scores = scores) -> Disclosed:
      ask = functools.partial(_ask, heard(delta), scores)
      ended = _in_rounds(ask, own, people, chunk)
      return Disclosed(ended.order, ended.revealed, ended.count, ended.verdict.label)

    found.append(jax.vmap(one)(deltas, begun))
  return found


def _heard(test: Test, revealed: jax.Array, person: Person, own_label: jax.Array) -> Verdict:
  """The test, which ends at the latest when there is nothing left to ask."""
  verdict = test(revealed, person.x)
  everything = jnp.all(revealed)
  return Verdict(verdict.core | everything, jnp.where(everything, own_label, verdict.label))


def _begin(heard: Heard, size: int, given: tuple[Person, Any]) -> _Asking:
  nothing = jnp.zeros(size, bool)
  return _Asking(
    heard(nothing, *given), nothing, jnp.full(size, NOT_ASKED, jnp.int32), jnp.asarray(0, jnp.int32)
  )


def _ask(heard: Heard, scores: Scores, asking: _Asking, given: tuple[Person, Any]) -> _Asking:
  """One question to one person; nothing changes for one who is done."""
  value = scores(asking.revealed, given[0])
  best = jnp.argmax(jnp.where(asking.revealed, -jnp.inf, value))
  revealed = asking.revealed.at[best].set(True)
  asked = _Asking(
    heard(revealed, *given), revealed, asking.order.at[asking.count].set(best), asking.count + 1
  )
  over = asking.verdict.core
  return jax.tree.map(lambda a, b: jnp.where(over, a, b), asking, asked)


def _in_rounds(
  ask: Callable[[Any, Any], Any], begun: _Asking, people: PyTree, chunk: int
) -> _Asking:
  """One question to everybody who still waits, and again, until nobody does.

  Those who wait stand first in every round, so that a chunk holds no one who
  is done, but for the last: the work is that of the questions asked. Where all
  people are one chunk, a queue would save nothing and take as long to compile
  as all the rest.
  """
  size = begun.count.shape[0]

  def unfinished(state: _Asking) -> jax.Array:
    return ~jnp.all(state.verdict.core)

  def one_round(state: _Asking) -> _Asking:
    if size <= chunk:
      return jax.vmap(ask)(state, people)
    over = state.verdict.core
    queue = jnp.argsort(over, stable=True)

    def one_chunk(i: jax.Array, state: _Asking) -> _Asking:
      rows = queue.at[i * chunk + jnp.arange(chunk)].get(mode="fill", fill_value=size)
      mine = lambda leaf: leaf.at[rows].get(mode="clip")  # noqa: E731
      own = jax.tree.map(mine, (state, people))
      asked = jax.vmap(ask)(*own)
      return jax.tree.map(lambda all_, new: all_.at[rows].set(new, mode="drop"), state, asked)

    waiting = size - jnp.sum(over)
    return jax.lax.fori_loop(0, -(-waiting // chunk), one_chunk, state)

  return jax.lax.while_loop(unfinished, one_round, begun)
