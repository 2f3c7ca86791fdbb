"""Three epsilons of the same votes, beside the accounting that they come from."""

import math

import jax
import numpy as np
import pytest

from jaxfair import accounting, methods
from jaxfair.methods._method import Sizes
from jaxfair.methods._vote_epsilons import vote_epsilons


def planned(name, epsilon, **settings):
  method = methods.get(name)
  own = method.settings(num_teachers=1000, queries=1000, **settings)
  return method.plan(own, Sizes(40_000, 1000, (5,), 2, 2), accounting.Budget(epsilon, 1e-5))


def votes(agree):
  winner = np.full(1000, round(1000 * agree))
  return np.stack([1000 - winner, winner], axis=1)


@pytest.mark.slow
def test_strong_consensus_costs_less_than_any_votes():
  plan = planned("pate", 8.0)
  found = vote_epsilons(plan, votes(0.95), key=jax.random.key(0), compare=True)
  assert found.any_votes == plan.guarantee.guarantee.epsilon <= 8.0
  assert found.not_publishable < found.sanitized < found.any_votes
  own = accounting.pate_diagnosis(
    votes(0.95), sigma=plan.config.rule.sigma, delta=1e-5, discrete=True
  )
  assert found.not_publishable == own.not_for_release
  divided = vote_epsilons(plan, votes(0.5), key=jax.random.key(0), compare=True)
  assert divided.not_publishable > 0.9 * found.any_votes  # nothing hides behind a tie


@pytest.mark.slow
def test_where_no_figure_pays_there_is_none():
  plan = planned("pate", 0.1)  # noise far above the votes
  found = vote_epsilons(plan, votes(0.95), key=jax.random.key(0), compare=True)
  assert math.isnan(found.sanitized)
  assert found.any_votes <= 0.1


@pytest.mark.slow
def test_a_test_of_consensus_is_charged_for_every_query():
  plan = planned("confident_pate", 8.0, threshold=0.6)
  rule = plan.config.rule
  found = vote_epsilons(plan, votes(0.95), key=jax.random.key(0), compare=True)
  own = accounting.pate_diagnosis(
    votes(0.95),
    sigma=rule.sigma_answer,
    threshold=rule.threshold,
    sigma_threshold=rule.sigma_threshold,
    delta=1e-5,
    discrete=True,
  )
  assert found.not_publishable == own.not_for_release
