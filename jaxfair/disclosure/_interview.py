"""One person, one question at a time."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.disclosure import _beliefs as laws
from jaxfair.disclosure._choosers import ByEntropy, ByProgress, ByVariance, Person
from jaxfair.disclosure._core_sets import IntervalTest
from jaxfair.disclosure._greedy_disclosure import core_test
from jaxfair.disclosure._questionnaire import Questionnaire
from jaxfair.types import Features


class Decision(NamedTuple):
  """How an interview ended.

  Attributes:
    label: the decision's name.
    how_sure: in words.
    asked: columns that were revealed, in order.
    never_asked: columns that nobody needed.
  """

  label: str
  how_sure: str
  asked: tuple[str, ...]
  never_asked: tuple[str, ...]


class Interview:
  """Asks until the label is decided; holds only what was answered.

  With delta = 0 the order is that of expected progress, else that of
  entropy. Columns that are not sensitive are asked for first, all of them.

  Privacy:
    There are no hidden values here to look at: a feature that was not
    answered is NaN, and would make the decision NaN if it were read.
  """

  def __init__(self, questionnaire: Questionnaire, *, delta: float = 0.05):
    checks.number("delta", delta, low=0.0, high=0.5, open_high=True)
    self._of = questionnaire
    self._delta = delta
    columns = dict.fromkeys(questionnaire.columns)
    self._public = [c for c in columns if c not in questionnaire.sensitive]
    self.restart()

  def restart(self) -> None:
    """Forgets every answer."""
    self._x = np.full(len(self._of.columns), np.nan, np.float32)
    self._asked: list[str] = []
    self._state: Any = None

  def next_column(self) -> str | None:
    """The next question, or None once the decision stands."""
    for column in self._public:
      if column not in self._asked:
        return column
    core, _, best = self._look()
    if core or len(self._revealed()) == len(self._of.sensitive):
      return None
    return self._of.sensitive[best]

  def answer(self, column: str, answer: str) -> None:
    """Notes one answer, in words or figures as the data set has them."""
    checks.one_of("column", column, [*self._public, *self._of.sensitive])
    for row, value in self._of.encoded(column, answer).items():
      self._x[row] = value
    self._asked.append(column)
    self._state = None

  def decision(self) -> Decision:
    """The representative label of what was answered."""
    core, label, _ = self._look()
    everything = len(self._revealed()) == len(self._of.sensitive)
    checks.require(core or everything, "the interview is not over; call next_column first")
    certain = self._delta == 0 or everything
    told = "certain" if certain else f"{100 * (1 - self._delta):.4g}% sure"
    hidden = [c for c in self._of.sensitive if c not in self._asked]
    return Decision(self._of.class_names[label], told, tuple(self._asked), tuple(hidden))

  def _revealed(self) -> set[str]:
    return set(self._of.sensitive) & set(self._asked)

  def _look(self) -> tuple[bool, int, int]:
    """Whether it is decided, the label, and the best open question."""
    if self._state is None:
      revealed = np.array([c in self._asked for c in self._of.sensitive])
      found = self._program(jnp.asarray(revealed), jnp.asarray(self._x))
      core, label, scores = jax.device_get(found)
      best = int(np.argmax(np.where(revealed, -np.inf, scores)))
      self._state = bool(core), int(label), best
    state: tuple[bool, int, int] = self._state
    return state

  @functools.cached_property
  def _program(self) -> Any:
    network, asked = self._of.network, self._of.asked
    # Fixed, so that a person who answers the same is asked the same.
    keys = jax.random.split(jax.random.key(0), 4)
    key_pure, key_label, key_choose, key_person = keys

    def program(revealed: jax.Array, x: Features) -> Any:
      known = laws.beliefs(network, self._of.gaussian, asked)
      pure = IntervalTest().build(network, asked, key=key_pure)
      test = core_test(known, pure, self._delta, key=key_label)
      chooser: Any = ByProgress()
      if self._delta > 0:
        chooser = ByVariance() if network.is_binary else ByEntropy(200, 200)
      scores = chooser.build(known, key=key_choose)
      verdict = test(revealed, x)
      return *verdict, scores(revealed, Person(x, key_person))

    return jax.jit(program)
