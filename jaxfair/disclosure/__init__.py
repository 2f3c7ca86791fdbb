"""Minimal disclosure: ask each person only for the features that decide their case.

This package holds distributions of hidden features, tests for core sets, orders of questions and
audits. It does not train, and it never reads a value that was not revealed.
"""

from jaxfair.disclosure._audit import audit
from jaxfair.disclosure._choosers import AtRandom, ByEntropy, ByImportance, ByProgress, ByVariance
from jaxfair.disclosure._core_sets import GridTest, IntervalTest
from jaxfair.disclosure._gaussian import Gaussian, condition, fit_gaussian, fit_private_gaussian
from jaxfair.disclosure._greedy_disclosure import disclose, disclose_each
from jaxfair.disclosure._questions import questions
from jaxfair.disclosure._smallest_core_sets import smallest_core_sets

__all__ = [
  "AtRandom",
  "ByEntropy",
  "ByImportance",
  "ByProgress",
  "ByVariance",
  "Gaussian",
  "GridTest",
  "IntervalTest",
  "audit",
  "condition",
  "disclose",
  "disclose_each",
  "fit_gaussian",
  "fit_private_gaussian",
  "questions",
  "smallest_core_sets",
]
