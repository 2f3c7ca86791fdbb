"""FairPATE's charges, against the exact law of everything it releases.

Every way in which tests and noisy counts can come out is a lane of one scan;
lanes with the same answers and outcomes are one event of an observer.
"""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

from helpers import enumerations as exact
from jaxfair import accounting, pate
from jaxfair.accounting import _composition
from jaxfair.fairness import CounterRule
from jaxfair.fairness._known_labels import PARITY
from jaxfair.pate import _fair

DELTA = 1e-2
CLASSES = GROUPS = 3
NOISE = {"sigma_threshold": 6.0, "sigma_answer": 1.5}
THRESHOLD = -2.0
EACH = 0.5 / 6.0**2 + 1 / 1.5**2
RANKS = list(itertools.permutations(range(CLASSES)))
WHOSE = np.array([0, 1, 2, 0, 1])
TRUTH = np.array([1, 1, 1, 1, 1])
VOTES = [
  [[2, 2, 2], [3, 3, 0], [2, 3, 1], [6, 0, 0], [3, 2, 1]],
  [[6, 0, 0], [0, 6, 0], [5, 1, 0], [4, 1, 1], [2, 2, 2]],
  [[3, 3, 0]] * 5,
]
# Where one teacher's votes go from and to, on every query.
MOVES = [(0, 1), (1, 0)]


def moved(table, source, target):
  """Another vote of one teacher on every query on which it can be that one."""
  table = np.array(table)
  rows = table[:, source] > 0
  table[rows, source] -= 1
  table[rows, target] += 1
  return table


def lane_law(table, choice):
  """The probability of each lane: of a test and a winner for every query."""
  law = np.ones(1)
  for row in table:
    passes = exact.pass_law(row, THRESHOLD, NOISE["sigma_threshold"])
    if choice == "any":
      winners = exact.gnmax_law(row, NOISE["sigma_answer"])
    else:
      ranks = exact.rank_law(row, NOISE["sigma_answer"])
      winners = np.array([ranks[each] for each in RANKS])
    law = np.outer(law, np.outer(passes, winners).ravel()).ravel()
  return law


def run(rule, choice, max_rho, queries):
  """What is released in each lane, numbered, and what is charged for it."""
  winners = CLASSES if choice == "any" else len(RANKS)
  lanes = exact.sequences(2 * winners, queries)
  confident, winner = np.divmod(lanes.T, winners)
  if choice == "allowed":
    winner = np.array(RANKS)[winner].transpose(0, 2, 1)
  truth = None if rule.notion == PARITY else jnp.asarray(TRUTH[:queries])
  feed = _fair.Feed(
    jnp.asarray(WHOSE[:queries]), jnp.asarray(confident == 1), jnp.asarray(winner), truth
  )
  found = _fair.answer_in_order(
    feed, rule, _fair.QueryBudget.of(*NOISE.values(), max_rho), GROUPS, CLASSES
  )
  seen = np.concatenate([found.labels, found.outcome]).T
  numbers = np.unique(seen, axis=0, return_inverse=True)[1].ravel()
  one = found._replace(outcome=found.outcome[:, 0], max_rho=max_rho, **NOISE)
  return found, numbers, pate.fair_events(one)


# The guards differ in some lanes; the last rule also refuses for free.
OWN = CounterRule(0.6, 1, "rest", "own")
TABLE = CounterRule(0.6, 1, "rest", "table")
STRICT = CounterRule(0.45, 0, "rest", "table")
ODDS = CounterRule(0.45, 0, notion="equalized_odds")


@pytest.mark.slow
@pytest.mark.parametrize("budget", [math.inf, 2.5])
@pytest.mark.parametrize(
  ("rule", "choice"),
  [(OWN, "any"), (TABLE, "any"), (STRICT, "any"), (TABLE, "allowed"), (ODDS, "any")],
)
def test_what_is_charged_covers_all_that_is_released(rule, choice, budget):
  queries = 5 if choice == "any" else 3
  found, numbers, events = run(rule, choice, budget * EACH, queries)
  kinds = set(np.unique(found.outcome).tolist())
  assert (pate.Outcome.NOT_ASKED in kinds) == (budget < queries)
  if rule in (STRICT, ODDS) and budget > queries:
    assert {pate.Outcome.UNFAIR, pate.Outcome.REFUSED_FREE} <= kinds
  epsilon = _composition.composed_epsilon(
    events, delta=DELTA, relation=accounting.Relation.REPLACE_ONE
  )
  worst = lower = 0.0
  for table, move in itertools.product(VOTES, MOVES):
    pair = [
      np.bincount(numbers, lane_law(votes[:queries], choice))
      for votes in (table, moved(table, *move))
    ]
    assert abs(pair[0].sum() - 1) < 1e-9
    worst = max(worst, exact.delta_of(*pair, epsilon))
    lower = max(lower, exact.delta_of(*pair, 0.4 * epsilon))
  assert worst <= DELTA < lower


@pytest.mark.slow
def test_a_charge_for_what_was_answered_is_no_guarantee():
  # Nobody was confident, which happens: the price of the tests alone.
  found, numbers, _ = run(TABLE, "any", math.inf, 5)
  lane = np.flatnonzero((found.outcome == pate.Outcome.NOT_CONFIDENT).all(0))[0]
  one = found._replace(outcome=found.outcome[:, lane], tested=found.tested[:, lane], **NOISE)
  epsilon = _composition.composed_epsilon(
    _fair.papers_unsound_events(one), delta=DELTA, relation=accounting.Relation.REPLACE_ONE
  )
  pair = [
    np.bincount(numbers, lane_law(votes, "any")) for votes in (VOTES[2], moved(VOTES[2], 0, 1))
  ]
  assert exact.delta_of(*pair, epsilon) > 10 * DELTA
