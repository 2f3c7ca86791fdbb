"""What methods do with private groups is what they are charged for."""

import jax
import numpy as np
import pytest

from jaxfair import accounting, methods, pate, training
from jaxfair.accounting import Budget
from jaxfair.pate import _attribute
from jaxfair.types import Examples

BUDGET = Budget(0.5, 1e-5)
RNG = np.random.default_rng(4)
PEOPLE = methods.Population(
  Examples(
    RNG.normal(size=(120, 2)).astype(np.float32),
    (RNG.random(120) < 0.5).astype(np.int32),
    (RNG.random(120) < 0.5).astype(np.int32),
  ),
  ("no", "yes"),
  ("a", "b"),
)
SHORT = {"rounds": 2, "steps_per_round": 2, "plain_steps": 2, "batch_size": 50}


class StopError(Exception):
  """Ends a fit where a test has seen enough."""


@pytest.mark.slow
def test_fair_training_sees_reported_groups_at_the_charged_epsilon(monkeypatch):
  method = methods.get("randomized_groups")
  plan = method.plan(method.settings(**SHORT), PEOPLE.sizes, BUDGET)
  respond, seen = pate.randomized_groups, []

  def responding(people, **options):
    assert options["epsilon"] == plan.event.epsilon == BUDGET.epsilon
    assert options["num_groups"] == plan.event.categories
    seen.append(respond(people, **options))
    return seen[-1]

  def training_on(model, loss, examples, config, **options):
    np.testing.assert_array_equal(examples.group, seen[0].examples.group)
    assert 20 < np.sum(examples.group != PEOPLE.private.group) < 80
    raise StopError

  monkeypatch.setattr(pate, "randomized_groups", responding)
  monkeypatch.setattr(training, "lagrangian", training_on)
  with pytest.raises(StopError):
    method.fit(plan, PEOPLE, key=jax.random.key(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["randomized_groups", "private_lagrangian"])
def test_the_model_it_starts_from_knows_no_groups(name, monkeypatch):
  method = methods.get(name)
  plan = method.plan(method.settings(**SHORT), PEOPLE.sizes, BUDGET)

  def fitting(model, loss, examples, config, **options):
    assert not np.any(examples.group)
    raise StopError

  monkeypatch.setattr(training, "fit", fitting)
  with pytest.raises(StopError):
    method.fit(plan, PEOPLE, key=jax.random.key(0))


@pytest.mark.parametrize("name", ["sf_pate_s", "sf_pate_t"])
def test_votes_have_the_noise_that_is_charged(name):
  method = methods.get(name)
  settings = method.settings(**SHORT, num_teachers=6, queries=40)
  plan = method.plan(settings, PEOPLE.sizes, BUDGET)
  told = _attribute.vote_guarantee(
    sigma=plan.config.sigmas, queries=plan.config.queries, delta=BUDGET.delta
  )
  assert plan.guarantee.guarantee.epsilon == told.epsilon


def test_labels_are_protected_only_where_nothing_else_reads_them():
  method = methods.get("sf_pate_t")
  for proximity, hidden in ((0.0, True), (0.1, False)):
    settings = method.settings(**SHORT, num_teachers=6, queries=40, proximity=proximity)
    told = method.plan(settings, PEOPLE.sizes, BUDGET).guarantee
    assert ("their labels" in told.protected) is hidden
    public = [what for what in told.not_protected if "public" in what]
    assert public == [
      "features, which are taken to be public"
      if hidden
      else "features and labels, which are taken to be public"
    ]


def test_output_perturbation_spends_what_is_charged():
  method = methods.get("output_perturbation")
  plan = method.plan(method.settings(), PEOPLE.sizes, BUDGET)
  assert (plan.config.epsilon, plan.config.delta) == BUDGET
  assert plan.event == accounting.ApproxDp(*BUDGET)
  assert plan.row_norm == plan.config.row_norm
