"""What was spent: events, accountants, calibration and the ledger.

Float64 on the host: nothing here looks at a person's record. Vote accounting
looks at teachers' votes and marks what it finds; only `sanitized_epsilon` draws
noise.
"""

from jaxfair.accounting._bounds import Accountant
from jaxfair.accounting._bridge import to_dp_event
from jaxfair.accounting._composition import (
  composed_epsilon,
  composed_guarantee,
  group_privacy,
  preprocessed_guarantee,
  preprocessing_factor,
  repeat_and_select_epsilon,
)
from jaxfair.accounting._data_dependent import DataDependentRdp
from jaxfair.accounting._dataset_ledger import DatasetLedger, dataset_ledgers
from jaxfair.accounting._dp_sgd import (
  calibrate_dp_sgd,
  dp_sgd_epsilon,
  max_steps,
  shuffled_dp_sgd_epsilon,
)
from jaxfair.accounting._events import (
  ApproxDp,
  Composed,
  DpSgd,
  Event,
  Gaussian,
  Laplace,
  PureDp,
  RandomizedResponse,
  Rdp,
  RepeatAndSelect,
  Repeated,
  ShuffledDpSgd,
  ZCdp,
)
from jaxfair.accounting._gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from jaxfair.accounting._grid import grid_delta, grid_gaussian, grid_sigma
from jaxfair.accounting._guarantee import (
  BudgetError,
  DataDependentEpsilon,
  DeltaWarning,
  PrivacyGuarantee,
  Relation,
  round_up,
)
from jaxfair.accounting._laplace import laplace_epsilon, laplace_scale
from jaxfair.accounting._ledger import Ledger
from jaxfair.accounting._ledger_records import Budget, Entry
from jaxfair.accounting._locked_file import LedgerError
from jaxfair.accounting._pate_cost import pate_diagnosis, pate_events
from jaxfair.accounting._pate_gnmax import gnmax_log_q, gnmax_rdp, histogram_rdp
from jaxfair.accounting._pate_laplace import lnmax_log_q, lnmax_rdp
from jaxfair.accounting._pate_threshold import log_answer_probability, threshold_rdp
from jaxfair.accounting._randomized_response import (
  randomized_response_epsilon,
  randomized_response_keep,
)
from jaxfair.accounting._rdp import DEFAULT_ORDERS, rdp_to_epsilon
from jaxfair.accounting._sanitize import SanitizedEpsilon, sanitized_epsilon
from jaxfair.accounting._sanitizing_plan import SanitizingPlan, plan_sanitizing, sanitizing_event
from jaxfair.accounting._truncation import max_batch_for, truncation_delta
from jaxfair.accounting._units import NotCovered
from jaxfair.accounting._zcdp import (
  discrete_gaussian_rho,
  discrete_gaussian_sigma,
  zcdp_budget,
  zcdp_epsilon,
)

__all__ = [
  "DEFAULT_ORDERS",
  "Accountant",
  "ApproxDp",
  "Budget",
  "BudgetError",
  "Composed",
  "DataDependentEpsilon",
  "DataDependentRdp",
  "DatasetLedger",
  "DeltaWarning",
  "DpSgd",
  "Entry",
  "Event",
  "Gaussian",
  "Laplace",
  "Ledger",
  "LedgerError",
  "NotCovered",
  "PrivacyGuarantee",
  "PureDp",
  "RandomizedResponse",
  "Rdp",
  "Relation",
  "RepeatAndSelect",
  "Repeated",
  "SanitizedEpsilon",
  "SanitizingPlan",
  "ShuffledDpSgd",
  "ZCdp",
  "calibrate_dp_sgd",
  "composed_epsilon",
  "composed_guarantee",
  "dataset_ledgers",
  "discrete_gaussian_rho",
  "discrete_gaussian_sigma",
  "dp_sgd_epsilon",
  "gaussian_delta",
  "gaussian_epsilon",
  "gaussian_sigma",
  "gnmax_log_q",
  "gnmax_rdp",
  "grid_delta",
  "grid_gaussian",
  "grid_sigma",
  "group_privacy",
  "histogram_rdp",
  "laplace_epsilon",
  "laplace_scale",
  "lnmax_log_q",
  "lnmax_rdp",
  "log_answer_probability",
  "max_batch_for",
  "max_steps",
  "pate_diagnosis",
  "pate_events",
  "plan_sanitizing",
  "preprocessed_guarantee",
  "preprocessing_factor",
  "randomized_response_epsilon",
  "randomized_response_keep",
  "rdp_to_epsilon",
  "repeat_and_select_epsilon",
  "round_up",
  "sanitized_epsilon",
  "sanitizing_event",
  "shuffled_dp_sgd_epsilon",
  "threshold_rdp",
  "to_dp_event",
  "truncation_delta",
  "zcdp_budget",
  "zcdp_epsilon",
]
