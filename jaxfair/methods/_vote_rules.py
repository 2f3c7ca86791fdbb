"""Rules of answering with a test of consensus: their noise, and answers for a study."""

import math
from dataclasses import fields
from typing import Any, Literal

import numpy as np

from jaxfair import accounting, pate
from jaxfair.fairness import CounterRule
from jaxfair.methods._method import Plan
from jaxfair.pate._fair import FairAnswers
from jaxfair.types import Key, Labels


def fair_answers(
  plan: Plan,
  counts: np.ndarray,
  groups: np.ndarray,
  num_groups: int,
  rule: CounterRule,
  choice: Literal["any", "allowed"],
  key: Key,
  truth: Labels | None = None,
  order: np.ndarray | None = None,
) -> FairAnswers:
  """Answers with noise from a key, until the budget is spent; see `pate.fair_gnmax`."""
  config = plan.config
  noise = config.rule
  assert isinstance(noise, pate.ConfidentGnMax)
  return pate.fair_gnmax(
    counts,
    groups,
    num_groups=num_groups,
    threshold=noise.threshold,
    sigma_threshold=noise.sigma_threshold,
    sigma_answer=noise.sigma_answer,
    choice=choice,
    max_rho=config.max_rho,
    key=key,
    truth=truth,
    order=order,
    **vars(rule),
  )


def confident_rule(settings: Any, queries: int, max_rho: float) -> pate.ConfidentGnMax:
  """Noise at which the budget pays for all tests and for `answers` answers.

  queries / (2 (r s)^2) + answers / s^2 = rho, with r = test_ratio.
  """
  answers = min(settings.answers or queries, queries)
  cost = queries / (2 * settings.test_ratio**2) + answers
  # A little more: answers stop when float32 sums reach the budget.
  sigma = settings.sigma_answer or math.sqrt(cost / max_rho) * (1 + 1e-5)
  return pate.ConfidentGnMax(
    threshold=settings.threshold * settings.num_teachers,
    sigma_threshold=settings.test_ratio * sigma,
    sigma_answer=sigma,
  )


def describe_rule(rule: Any) -> str:
  """Name and noise of a rule, for people: "gnmax with sigma 30.9"."""
  parts = [f"{f.name.replace('_', ' ')} {getattr(rule, f.name):.4g}" for f in fields(rule)]
  return f"{rule.name} with {', '.join(parts)} (in votes)"


def total_rho(budget: accounting.Budget) -> float:
  """What a budget is worth in zCDP."""
  return accounting.zcdp_budget(epsilon=budget.epsilon, delta=budget.delta)
