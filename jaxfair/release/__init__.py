"""Ask each person only for what decides their case.

Laws of hidden features, tests for core sets, the order of questions, audits.
Never here: training, and anything that reads a value nobody revealed.
"""

from jaxfair.release.audit import Audit, audit
from jaxfair.release.choosers import AtRandom, ByEntropy, ByImportance, ByProgress, ByVariance
from jaxfair.release.core_sets import Grid, Interval, Verdict
from jaxfair.release.gaussian import (
  Conditional,
  Gaussian,
  condition,
  fit_gaussian,
  fit_private_gaussian,
)
from jaxfair.release.greedy import NOT_ASKED, Released, release, release_each
from jaxfair.release.network import Network, as_network
from jaxfair.release.optimum import smallest_core_sets
from jaxfair.release.questionnaire import Questionnaire
from jaxfair.release.questions import Questions, questions, with_constants

__all__ = [
  "NOT_ASKED",
  "AtRandom",
  "Audit",
  "ByEntropy",
  "ByImportance",
  "ByProgress",
  "ByVariance",
  "Conditional",
  "Gaussian",
  "Grid",
  "Interval",
  "Network",
  "Questionnaire",
  "Questions",
  "Released",
  "Verdict",
  "as_network",
  "audit",
  "condition",
  "fit_gaussian",
  "fit_private_gaussian",
  "questions",
  "release",
  "release_each",
  "smallest_core_sets",
  "with_constants",
]
