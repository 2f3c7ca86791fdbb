"""What was spent: events, accountants, calibration and the ledger.

Everything is float64 on the host, and nothing here reads a person's record. Vote accounting reads
teachers' votes and marks its results as data-dependent; only `sanitized_epsilon` draws noise.
"""

from jaxfair.accounting._composition import (
  composed_guarantee,
  group_privacy,
  preprocessed_guarantee,
  repeat_and_select_epsilon,
)
from jaxfair.accounting._dataset_ledger import DatasetLedger
from jaxfair.accounting._dp_sgd import calibrate_dp_sgd, dp_sgd_epsilon, max_steps
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
from jaxfair.accounting._gaussian import gaussian_sigma
from jaxfair.accounting._grid import grid_sigma
from jaxfair.accounting._guarantee import (
  BudgetError,
  DataDependentEpsilon,
  PrivacyGuarantee,
  Relation,
)
from jaxfair.accounting._ledger import Ledger
from jaxfair.accounting._ledger_records import Budget
from jaxfair.accounting._locked_file import LedgerError
from jaxfair.accounting._pate_cost import pate_diagnosis, pate_events
from jaxfair.accounting._sanitize import sanitized_epsilon
from jaxfair.accounting._sanitizing_plan import plan_sanitizing
from jaxfair.accounting._truncation import max_batch_for
from jaxfair.accounting._zcdp import discrete_gaussian_sigma, zcdp_budget, zcdp_epsilon

__all__ = [
  "ApproxDp",
  "Budget",
  "BudgetError",
  "Composed",
  "DataDependentEpsilon",
  "DatasetLedger",
  "DpSgd",
  "Event",
  "Gaussian",
  "Laplace",
  "Ledger",
  "LedgerError",
  "PrivacyGuarantee",
  "PureDp",
  "RandomizedResponse",
  "Rdp",
  "Relation",
  "RepeatAndSelect",
  "Repeated",
  "ShuffledDpSgd",
  "ZCdp",
  "calibrate_dp_sgd",
  "composed_guarantee",
  "discrete_gaussian_sigma",
  "dp_sgd_epsilon",
  "gaussian_sigma",
  "grid_sigma",
  "group_privacy",
  "max_batch_for",
  "max_steps",
  "pate_diagnosis",
  "pate_events",
  "plan_sanitizing",
  "preprocessed_guarantee",
  "repeat_and_select_epsilon",
  "sanitized_epsilon",
  "zcdp_budget",
  "zcdp_epsilon",
]
