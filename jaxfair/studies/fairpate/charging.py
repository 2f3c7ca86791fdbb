"""Where a budget ends a query phase, by three ways to charge for it.

A phase within a budget is the beginning of the phase without one, so that one phase is cut for all
budgets and charges.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxfair import accounting
from jaxfair.accounting import _pate_gnmax, _pate_threshold, _rdp
from jaxfair.pate import Outcome
from jaxfair.pate._fair import FairAnswers

SOUND, FREE, PAPER = "every argmax", "refused labels free", "as in the paper"
CHARGES = (SOUND, FREE, PAPER)
TOLD = (
  f'Charge "{SOUND}" is sound: labels refused as unfair cost as much as given ones, and epsilon is '
  "a budget for any votes, which may be published.",
  f'Charges "{FREE}" and "{PAPER}" are unsound and not publishable: they count nothing for labels '
  f'that were computed and refused. "{PAPER}" also prices tests and labels at the votes that were '
  "cast (data-dependent), as the paper does. They are here to test the paper's claims at its own "
  "epsilons.",
)


class Charges:
  """Prices of the queries of one ensemble; for the eyes of those who hold the votes."""

  def __init__(self, config: Any, votes: np.ndarray):
    self._config, self._votes = config, votes

  def asked(self, run: FairAnswers, threshold: float, charge: str) -> Callable[[float], np.ndarray]:
    """A function from epsilon to [n] whether a query comes before the budget is spent.

    Args:
      run: a phase without a budget.
      threshold: its T, in votes.
      charge: one of `CHARGES`. By the first two a query is asked if its test and its argmax fit
        into what is left; by the paper's the phase ends where the data-dependent epsilon of what
        was answered passes the budget.
    """
    given = run.outcome == Outcome.ANSWERED
    if charge == PAPER:
      cost = run.tested[:, None] * self._tests(threshold) + given[:, None] * self._argmaxes
      spent = _rdp.rdp_to_epsilon(cost.cumsum(axis=0), _rdp.DEFAULT_ORDERS, delta=self.delta)
      return lambda epsilon: spent <= epsilon
    test, answer = self.rho
    total = np.cumsum(run.tested * test + (run.chosen if charge == SOUND else given) * answer)
    least = np.concatenate([[0.0], total[:-1]]) + test + answer
    return lambda epsilon: least <= accounting.zcdp_budget(epsilon=epsilon, delta=self.delta)

  def spent(self, run: FairAnswers, asked: np.ndarray) -> float:
    """The epsilon of all tests and argmaxes of these queries, for any votes."""
    test, answer = self.rho
    rho = float(np.sum((run.tested * test + run.chosen * answer)[asked]))
    return accounting.zcdp_epsilon(rho=rho, delta=self.delta)

  @property
  def delta(self) -> float:
    """Delta of every budget."""
    return float(self._config.delta)

  @property
  def rho(self) -> tuple[float, float]:
    """zCDP of a test and of an argmax."""
    return 0.5 / self._config.sigma_threshold**2, self._config.sigma_answer**-2

  @functools.cached_property
  def _argmaxes(self) -> np.ndarray:
    """[n, orders] data-dependent divergences of the labels."""
    found = _pate_gnmax.gnmax_rdp(
      self._votes, sigma=self._config.sigma_answer, orders=_rdp.DEFAULT_ORDERS, discrete=True
    )
    return np.asarray(found.view(np.ndarray))

  def _tests(self, threshold: float) -> np.ndarray:
    found = _pate_threshold.threshold_rdp(
      self._votes,
      threshold=threshold,
      sigma=self._config.sigma_threshold,
      orders=_rdp.DEFAULT_ORDERS,
      discrete=True,
    )
    return np.asarray(found.view(np.ndarray))
