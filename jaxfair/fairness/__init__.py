"""What is owed to groups: metrics of how a model treats them, with intervals.

Here live group reductions, rates, gaps, disparities and their confidence
intervals; never a training loop, and nothing that spends privacy.
"""

from jaxfair.fairness import constraints, rates
from jaxfair.fairness._abstain import Abstainer
from jaxfair.fairness._bootstrap import bootstrap, bootstrap_counts, bootstrap_rows
from jaxfair.fairness._confusion import confusion_counts, prediction_counts
from jaxfair.fairness._counter import REFUSED, CounterRule, admit, allowed_classes, new_counters
from jaxfair.fairness._counter_sequence import Counted, admit_in_order
from jaxfair.fairness._disparity import demographic_disparity
from jaxfair.fairness._gaps import difference, ratio
from jaxfair.fairness._groups import divide, group_counts, group_means, group_sums
from jaxfair.fairness._intervals import Interval, interval_of_draws, paired_interval, seed_interval
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
from jaxfair.fairness._soft import soft_disparity
from jaxfair.fairness._summary import GroupReport, Measures, by_group
from jaxfair.fairness._wasserstein import wasserstein_disparity, wasserstein_distances

__all__ = [
  "REFUSED",
  "Abstainer",
  "Counted",
  "CounterRule",
  "GroupReport",
  "Interval",
  "Measures",
  "accuracy",
  "accuracy_parity_difference",
  "accuracy_parity_ratio",
  "admit",
  "admit_in_order",
  "allowed_classes",
  "bootstrap",
  "bootstrap_counts",
  "bootstrap_rows",
  "by_group",
  "confusion_counts",
  "constraints",
  "demographic_disparity",
  "demographic_parity_difference",
  "demographic_parity_ratio",
  "difference",
  "divide",
  "equal_opportunity_difference",
  "equal_opportunity_ratio",
  "equalized_odds_difference",
  "equalized_odds_ratio",
  "false_negative_rate",
  "false_positive_rate",
  "group_counts",
  "group_means",
  "group_sums",
  "interval_of_draws",
  "leave_out",
  "mean_loss",
  "new_counters",
  "ordered_filter",
  "paired_interval",
  "prediction_counts",
  "rates",
  "ratio",
  "seed_interval",
  "selection_rate",
  "sequential_filter",
  "soft_disparity",
  "true_negative_rate",
  "true_positive_rate",
  "wasserstein_disparity",
  "wasserstein_distances",
]
