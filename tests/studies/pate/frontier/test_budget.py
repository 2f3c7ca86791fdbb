"""How far a budget reaches, against the ledger's own arithmetic."""

import numpy as np

from jaxfair import accounting, pate
from jaxfair.studies.pate.frontier import budget

DELTA = 1e-5


def epsilon_of(rule, tests, answers):
  events = [accounting.Repeated(rule.answer, answers)] if answers else []
  if rule.test is not None and tests:
    events.append(accounting.Repeated(rule.test, tests))
  return accounting.composed_guarantee(
    events, delta=DELTA, relation=accounting.Relation.REPLACE_ONE
  ).epsilon


def test_the_next_query_would_exceed_the_budget():
  rule = pate.ConfidentGnMax(10.0, 30.0, 20.0)
  prices = budget.spending(epsilon=2.0, delta=DELTA, sigma=20.0, sigma_threshold=30.0)
  passed = np.random.default_rng(0).random((3, 200)) < 0.5
  asked = budget.asked(passed, prices)
  for own, reached in zip(passed, asked, strict=True):
    many = int(reached.sum())
    assert 0 < many < 200
    assert reached[:many].all()  # a prefix
    answered = int(own[:many].sum())
    assert epsilon_of(rule, many, answered) <= 2.0
    # One more may be answered, and that would be too much.
    assert epsilon_of(rule, many + 1, answered + 1) > 2.0


def test_without_a_test_answers_alone_are_charged():
  prices = budget.spending(epsilon=1.0, delta=DELTA, sigma=40.0, sigma_threshold=None)
  assert prices.test == 0.0
  asked = budget.asked(np.ones(100, bool), prices)
  assert asked.sum() == 48  # as docs/pate.md has it
