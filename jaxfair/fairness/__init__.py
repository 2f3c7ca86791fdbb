"""Group fairness: metrics of how a model treats groups, with intervals, and fairness rules.

This package holds group reductions, rates, gaps, disparities and their confidence intervals. It
has no training loop and nothing that spends privacy.
"""

from jaxfair.fairness import constraints, rates
from jaxfair.fairness._abstain import Abstainer
from jaxfair.fairness._bootstrap import bootstrap, bootstrap_rows
from jaxfair.fairness._counter import CounterRule
from jaxfair.fairness._disparity import demographic_disparity
from jaxfair.fairness._gaps import difference
from jaxfair.fairness._intervals import paired_interval, seed_interval
from jaxfair.fairness._metrics import (
  accuracy,
  false_negative_rate,
  false_positive_rate,
  mean_loss,
  selection_rate,
  true_negative_rate,
  true_positive_rate,
)
from jaxfair.fairness._parity import (
  accuracy_parity_difference,
  accuracy_parity_ratio,
  demographic_parity_difference,
  demographic_parity_ratio,
  equal_opportunity_difference,
  equal_opportunity_ratio,
  equalized_odds_difference,
  equalized_odds_ratio,
)
from jaxfair.fairness._preprocess import leave_out, ordered_filter, sequential_filter
from jaxfair.fairness._summary import by_group
from jaxfair.fairness._wasserstein import wasserstein_disparity

__all__ = [
  "Abstainer",
  "CounterRule",
  "accuracy",
  "accuracy_parity_difference",
  "accuracy_parity_ratio",
  "bootstrap",
  "bootstrap_rows",
  "by_group",
  "constraints",
  "demographic_disparity",
  "demographic_parity_difference",
  "demographic_parity_ratio",
  "difference",
  "equal_opportunity_difference",
  "equal_opportunity_ratio",
  "equalized_odds_difference",
  "equalized_odds_ratio",
  "false_negative_rate",
  "false_positive_rate",
  "leave_out",
  "mean_loss",
  "ordered_filter",
  "paired_interval",
  "rates",
  "seed_interval",
  "selection_rate",
  "sequential_filter",
  "true_negative_rate",
  "true_positive_rate",
  "wasserstein_disparity",
]
