"""Ask each person only for what decides their case.

Laws of hidden features, tests for core sets, the order of questions, audits.
Never here: training, and anything that reads a value nobody revealed.
"""

from jaxfair.disclosure._audit import Audit, audit
from jaxfair.disclosure._choosers import AtRandom, ByEntropy, ByImportance, ByProgress, ByVariance
from jaxfair.disclosure._core_sets import GridTest, IntervalTest, Verdict
from jaxfair.disclosure._gaussian import (
  Conditional,
  Gaussian,
  condition,
  fit_gaussian,
  fit_private_gaussian,
)
from jaxfair.disclosure._greedy_disclosure import NOT_ASKED, Disclosed, disclose, disclose_each
from jaxfair.disclosure._network import Network, as_network
from jaxfair.disclosure._questionnaire import Questionnaire
from jaxfair.disclosure._questions import Questions, questions, with_constants
from jaxfair.disclosure._smallest_core_sets import smallest_core_sets

__all__ = [
  "NOT_ASKED",
  "AtRandom",
  "Audit",
  "ByEntropy",
  "ByImportance",
  "ByProgress",
  "ByVariance",
  "Conditional",
  "Disclosed",
  "Gaussian",
  "GridTest",
  "IntervalTest",
  "Network",
  "Questionnaire",
  "Questions",
  "Verdict",
  "as_network",
  "audit",
  "condition",
  "disclose",
  "disclose_each",
  "fit_gaussian",
  "fit_private_gaussian",
  "questions",
  "smallest_core_sets",
  "with_constants",
]
