"""Minimal disclosure: ask each person only for the features that decide their case.

This package holds distributions of hidden features, tests for core sets, orders of questions and
audits. It does not train, and it never reads a value that was not revealed.
"""

from jaxfair.disclosure._audit import audit
from jaxfair.disclosure._choosers import ByEntropy, ByProgress, ByVariance
from jaxfair.disclosure._core_sets import IntervalTest
from jaxfair.disclosure._entropy_bound import entropy_bound
from jaxfair.disclosure._gaussian import Gaussian, fit_gaussian, fit_private_gaussian
from jaxfair.disclosure._greedy_disclosure import disclose
from jaxfair.disclosure._questions import questions

__all__ = [
  "ByEntropy",
  "ByProgress",
  "ByVariance",
  "Gaussian",
  "IntervalTest",
  "audit",
  "disclose",
  "entropy_bound",
  "fit_gaussian",
  "fit_private_gaussian",
  "questions",
]
