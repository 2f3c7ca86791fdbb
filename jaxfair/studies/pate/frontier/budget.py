"""How far a budget reaches: labels in order until the next might exceed it."""

from typing import Any, NamedTuple

import numpy as np

from jaxfair import accounting, pate


class Spending(NamedTuple):
  """What a budget pays for, in zCDP.

  Attributes:
    budget: rho that (epsilon, delta) is worth.
    test: rho of the test of one query; 0 if there is none.
    answer: rho of one answer.
  """

  budget: float
  test: float
  answer: float


def spending(
  *, epsilon: float, delta: float, sigma: float, sigma_threshold: float | None
) -> Spending:
  """The prices of GNMax (no test) or Confident-GNMax under a budget."""
  rule: pate.GnMax | pate.ConfidentGnMax = pate.GnMax(sigma)
  if sigma_threshold is not None:
    rule = pate.ConfidentGnMax(0.0, sigma_threshold, sigma)
  budget = accounting.zcdp_budget(epsilon=epsilon, delta=delta)
  test = 0.0 if rule.test is None else _rho(rule.test)
  return Spending(budget, test, _rho(rule.answer))


def asked(passed: Any, prices: Spending) -> np.ndarray:
  """Which queries are asked before the budget might be exceeded.

  asked_i = spent before i + test + answer <= budget

  Args:
    passed: [..., n] whether a query would be answered, in order.
    prices: what each costs.

  Returns:
    [..., n] True up to the last query that is asked.

  Privacy:
    The decision looks at public prices and released answers only. The spend
    depends on the answers, so the budget is what may be published.

  Reference:
    Feldman & Zrnic (2021), Theorem 3.1: Renyi filters.
  """
  passed = np.asarray(passed, bool)
  before = np.cumsum(passed, axis=-1) - passed
  order = np.arange(1, passed.shape[-1] + 1)
  spent = order * prices.test + (before + 1) * prices.answer
  return spent <= prices.budget


def _rho(event: accounting.Event) -> float:
  assert isinstance(event, accounting.ZCdp)
  return event.rho
