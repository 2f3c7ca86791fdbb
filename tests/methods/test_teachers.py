"""What answers cost beside what was planned; stopped releases go on."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, methods, pate
from jaxfair.accounting import Budget, _composition
from jaxfair.methods import _vote_rules
from jaxfair.types import Examples

BUDGET = Budget(10.0, 1e-4)
SETTINGS = {
  "num_teachers": 8,
  "queries": 12,
  "teacher_steps": 10,
  "student_steps": 10,
  "learning_rate": 0.1,
}


def easy(size, seed):
  rng = np.random.default_rng(seed)
  y = (rng.random(size) < 0.5).astype(np.int32)
  group = (rng.random(size) < 0.5).astype(np.int32)
  x = rng.normal(size=(size, 2)) + 2.0 * y[:, None]
  return Examples(x.astype(np.float32), y, group)


PEOPLE = methods.Population(easy(96, 1), ("no", "yes"), ("a", "b"), public=easy(15, 2))


def plan_of(name, budget=BUDGET, **settings):
  method = methods.get(name)
  made = method.settings(**{**SETTINGS, **settings})
  return method, method.plan(made, PEOPLE.sizes, budget)


@pytest.mark.parametrize("name", ["pate", "confident_pate", "fairpate"])
def test_all_that_can_be_asked_fits_into_the_event(name):
  method, plan = plan_of(name)
  rule, queries = plan.config.rule, plan.config.queries
  events = [accounting.Repeated(rule.answer, queries)]
  if rule.test is not None:
    events.append(accounting.Repeated(rule.test, queries))
  spent, charged = (
    _composition.composed_epsilon(list_, delta=BUDGET.delta, relation=method.relation)
    for list_ in (events, [plan.event])
  )
  assert spent <= charged * (1 + 1e-6)
  assert charged <= BUDGET.epsilon * (1 + 1e-9)
  assert spent > 0.8 * BUDGET.epsilon  # and the budget is used


def test_a_plan_names_its_noise_in_words():
  rule = pate.ConfidentGnMax(threshold=30.0, sigma_threshold=61.429029, sigma_answer=20.476343)
  told = _vote_rules.describe_rule(rule)
  assert told == (
    "confident-gnmax with threshold 30, sigma threshold 61.43, sigma answer 20.48 (in votes)"
  )


def test_fewer_answers_mean_less_noise_on_each():
  _, all_of_them = plan_of("confident_pate")
  _, few = plan_of("confident_pate", answers=3)
  assert few.config.rule.sigma_answer < all_of_them.config.rule.sigma_answer
  assert few.event == all_of_them.event


@pytest.mark.slow
def test_fairpate_stops_at_the_event_that_is_charged(monkeypatch):
  method, plan = plan_of("fairpate", answers=2, max_gap=0.9, min_count=1)
  found = []
  ask = pate.fair_gnmax

  def asking(*args, **options):
    found.append(ask(*args, **options))
    return found[-1]

  monkeypatch.setattr(pate, "fair_gnmax", asking)
  method.fit(plan, PEOPLE, key=jax.random.key(0))
  [event] = pate.fair_events(found[0])
  assert event.rho <= plan.event.rho


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pate", "confident_pate", "pate_s_pre"])
def test_a_release_stopped_after_its_answers_learns_from_the_same(name, tmp_path, monkeypatch):
  method, plan = plan_of(name)
  taught, teach = [], pate.train_student

  def stopped(model, loss, x, labels, *args, **options):
    taught.append(np.asarray(labels))
    if len(taught) == 1:
      raise KeyboardInterrupt
    return teach(model, loss, x, labels, *args, **options)

  monkeypatch.setattr(pate, "train_student", stopped)
  with pytest.raises(KeyboardInterrupt):
    method.release(plan, PEOPLE, folder=tmp_path)
  method.release(plan, PEOPLE, folder=tmp_path)
  np.testing.assert_array_equal(*taught)
  answers = accounting.Ledger.read(tmp_path / "work" / "answers/ledger.jsonl")
  told = plan.guarantee.guarantee
  assert 0 < answers.guarantee().epsilon <= told.epsilon * (1 + 1e-9)
  kept = [path.name for path in (tmp_path / "work" / "private").iterdir()]
  assert kept == ["run.json"]


@pytest.mark.parametrize(
  ("name", "settings", "message"),
  [
    ("pate", {"num_teachers": 50}, "num_teachers=50 leaves 1 people"),
    ("pate", {"queries": 16}, "queries"),
    ("sf_pate_s", {"num_teachers": 50}, "num_teachers=50 leaves 1 people"),
    ("sf_pate_t", {"queries": 97}, "queries"),
  ],
)
def test_too_many_teachers_or_queries_are_refused(name, settings, message):
  method = methods.get(name)
  own = {"num_teachers": 8, "queries": 12, **settings}
  with pytest.raises(checks.ArgumentError, match=message):
    method.plan(method.settings(**own), PEOPLE.sizes, BUDGET)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fairpate", "pate_s_in"])
def test_stages_shared_by_several_plans_are_those_of_fit(name):
  method, first = plan_of(name)
  _, second = plan_of(name, budget=Budget(20.0, 1e-4))
  key = jax.random.key(2)
  votes = method.votes(first, PEOPLE, key=key)
  plans = [first, second]
  labels = np.stack([method.labels(plan, PEOPLE, votes, key=key) for plan in plans])
  together = method.students(plans, PEOPLE, labels, key=key)
  alone = method.fit(second, PEOPLE, key=key)
  np.testing.assert_array_equal(alone.trace.labels, labels[1])
  for both, own in zip(*map(jax.tree.leaves, (together, alone.params)), strict=True):
    np.testing.assert_allclose(both[1], own, atol=1e-4)


@pytest.mark.slow
def test_budgets_and_weights_of_dp_sgd_are_trained_together():
  method, settings = methods.get("fair_dp_sgd"), {"steps": 4, "batch_size": 30}
  plans = [
    method.plan(method.settings(**settings, lam=lam), PEOPLE.sizes, Budget(epsilon, 1e-4))
    for epsilon, lam in ((2.0, 0.0), (8.0, 5.0))
  ]
  key = jax.random.key(3)
  together = method.fit_many(plans, PEOPLE, key=key).params
  alone = method.fit(plans[1], PEOPLE, key=key).params
  for both, own in zip(*map(jax.tree.leaves, (together, alone)), strict=True):
    np.testing.assert_allclose(both[1], own, atol=1e-5)
    assert not np.allclose(both[0], own)


ODDS = {"notion": "equalized_odds"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fairpate", "pate_s_pre", "pate_s_in", "fair_dp_sgd"])
def test_notions_read_public_labels_which_are_named_as_public(name, tmp_path):
  method = methods.get(name)
  own = {"steps": 4, "batch_size": 30, "lam": 5.0} if name == "fair_dp_sgd" else SETTINGS
  own = own | ODDS | ({"lam": 5.0} if name == "pate_s_in" else {})
  own |= {} if "lam" in own else {"max_gap": 0.05, "min_count": 0}
  plan = method.plan(method.settings(**own), PEOPLE.sizes, BUDGET)
  plain = method.plan(
    method.settings(**{**own, "notion": "demographic_parity"}), PEOPLE.sizes, BUDGET
  )
  assert plan.event == plain.event
  assert plan.abstention is None
  assert ("not for predictions" in plan.says[0]) == ("max_gap" in own)
  assert "not for predictions" not in plain.says[0]
  assert "labels of the public people" in " ".join(plan.guarantee.not_protected)
  assert "labels of the public people" not in " ".join(plain.guarantee.not_protected)
  # All of one class are compared; where classes are groups, there is nobody to compare with.
  public, key = PEOPLE.public, jax.random.key(0)
  told = [
    dataclasses.replace(PEOPLE, public=public._replace(y=y))
    for y in (np.zeros_like(public.y), public.group)
  ]
  if name == "fair_dp_sgd":
    found = [repr(method._config(plan, people)) for people in told]
    assert "equalized_odds" in found[0]
  else:
    found = [str(jax.tree.leaves(method.fit(plan, people, key=key).params)) for people in told]
  assert found[0] != found[1]
  unknown = dataclasses.replace(PEOPLE, public=public._replace(y=np.full(15, -1, np.int32)))
  with pytest.raises(checks.ArgumentError, match=r"are missing; give them, or use notion="):
    method.release(plan, unknown, folder=tmp_path / "release")
  assert not (tmp_path / "release").exists()


@pytest.mark.parametrize("name", ["pate_s_in", "fair_dp_sgd"])
def test_a_margin_for_predictions_reads_no_labels(name):
  with pytest.raises(checks.ArgumentError, match="nobody knows then; leave max_gap out"):
    methods.get(name).settings(max_gap=0.1, **ODDS)
