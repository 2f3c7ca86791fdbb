"""A figure at the votes is charged before it is drawn, drawn once, and published alone."""

import dataclasses
import json
import math

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, methods, pate
from jaxfair.accounting import Budget
from jaxfair.accounting._guarantee import round_up
from jaxfair.accounting._sanitizing_plan import release_rdp
from jaxfair.methods._evaluation import evaluate
from jaxfair.methods._method import Sizes
from jaxfair.methods._sanitized import noise_of
from jaxfair.methods._teachers import Pate
from jaxfair.types import Examples

BUDGET = Budget(60.0, 1e-4)
OWN = {
  "num_teachers": 60,
  "queries": 40,
  "sanitized_epsilon": 30.0,
  "consensus": 0.97,
  "teacher_steps": 10,
  "student_steps": 10,
}
VOTING = ["pate", "confident_pate", "fairpate", "pate_s_pre", "pate_s_in"]


def easy(size, seed):
  rng = np.random.default_rng(seed)
  y = (rng.random(size) < 0.5).astype(np.int32)
  group = (rng.random(size) < 0.5).astype(np.int32)
  x = rng.normal(size=(size, 2)) + 3.0 * (y[:, None] - 0.5)
  return Examples(x.astype(np.float32), y, group)


PEOPLE = methods.Population(easy(600, 1), ("no", "yes"), ("a", "b"), public=easy(60, 2))


WINNER = 33 + np.arange(40) % 27
VOTES = np.stack([WINNER, 60 - WINNER], axis=1)


@pytest.fixture(autouse=True)
def _cast(monkeypatch):
  """The same votes always; the noise is that of the release."""
  monkeypatch.setattr(Pate, "votes", lambda *_, **__: VOTES)


def planned(name, budget=BUDGET, **settings):
  method = methods.get(name)
  return method, method.plan(method.settings(**{**OWN, **settings}), PEOPLE.sizes, budget)


@pytest.mark.parametrize("name", VOTING)
def test_tests_answers_and_figure_are_all_in_the_event_and_within_the_budget(name):
  _, plan = planned(name)
  rule, figure = plan.config.rule, plan.config.sanitizing
  rho = 40 / getattr(rule, "sigma", getattr(rule, "sigma_answer", None)) ** 2
  if name != "pate":
    rho += 40 / (2 * rule.sigma_threshold**2)
  # By hand, at every order that the figure has a divergence of.
  orders = np.linspace(1.05, 0.98 / (1 - math.exp(-2 * figure.beta)), 400)
  cost = np.array([a * rho + release_rdp(figure, a) for a in orders])
  spent = cost + np.log1p(-1 / orders) - (np.log(BUDGET.delta) + np.log(orders)) / (orders - 1)
  told = plan.guarantee.guarantee.epsilon
  assert spent.min() * (1 - 1e-3) <= told <= BUDGET.epsilon
  alone = accounting.composed_guarantee(
    [accounting.ZCdp(rho)], delta=BUDGET.delta, relation=accounting.Relation.REPLACE_ONE
  )
  assert told > alone.epsilon * 1.001
  assert figure.expected <= 30.0


@pytest.mark.slow
def test_as_many_queries_are_asked_as_the_expected_figure_allows():
  sizes = Sizes(30_000, 5000, (3,), 2, 2)
  method = methods.get("pate")
  found = [
    method.plan(
      method.settings(num_teachers=500, consensus=0.9, sanitized_epsilon=aim),
      sizes,
      Budget(8.0, 1e-6),
    ).config
    for aim in (2.5, 5.0)
  ]
  assert 100 < found[0].queries < found[1].queries <= 5000
  assert found[0].sanitizing.expected <= 2.5 < found[1].sanitizing.expected <= 5.0


@pytest.mark.parametrize(
  ("name", "settings", "message"),
  [
    ("pate", {"sanitized_epsilon": 0.01}, r"0.97 of 60 teachers agree \(.* is, from 40 queries\)"),
    ("pate", {"num_teachers": 8}, "no figure helps"),
    ("confident_pate", {"answers": 3}, "leave answers and sigma_answer out"),
    ("pate_s_in", {"sigma_answer": 3.0}, "leave answers and sigma_answer out"),
    ("fairpate", {"choice": "allowed"}, "argmax over all classes"),
  ],
)
def test_figures_that_do_not_pay_or_do_not_hold_are_refused(name, settings, message):
  with pytest.raises(checks.ArgumentError, match=message):
    planned(name, **settings)


def test_features_that_were_bought_have_no_figure(tmp_path):
  method, plan = planned("pate")
  people = dataclasses.replace(PEOPLE, bought=accounting.ZCdp(0.01))
  with pytest.raises(checks.ArgumentError, match="scale by public people"):
    method.release(plan, people, folder=tmp_path / "release")
  assert not (tmp_path / "release").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pate", "fairpate"])
def test_a_stopped_release_publishes_the_figure_that_it_had_drawn(name, tmp_path, monkeypatch):
  method, plan = planned(name)
  drawn, teach = [], pate.train_student

  def stopped(*args, **options):
    drawn.append(json.loads((tmp_path / "work" / "vote_epsilons.json").read_text()))
    if len(drawn) == 1:
      ledger = accounting.Ledger.read(tmp_path / "work" / "ledger.jsonl")
      assert [entry.event for entry in ledger] == [plan.event]  # before anything was drawn
      raise KeyboardInterrupt
    return teach(*args, **options)

  monkeypatch.setattr(pate, "train_student", stopped)
  with pytest.raises(KeyboardInterrupt):
    method.release(plan, PEOPLE, folder=tmp_path)
  made = method.release(plan, PEOPLE, folder=tmp_path)
  assert drawn[0] == drawn[1]
  figure = made.guarantee.at_votes
  assert (figure.epsilon, figure.delta) == (drawn[0]["sanitized"], BUDGET.delta)
  own = accounting.pate_diagnosis(
    VOTES, delta=BUDGET.delta, discrete=True, **noise_of(plan.config.rule)
  )
  assert drawn[0]["not_publishable"] == own.not_for_release
  assert own.not_for_release < figure.epsilon <= made.guarantee.guarantee.epsilon
  loaded = methods.load(tmp_path / "release")
  assert loaded.guarantee == made.guarantee
  assert "at the votes that were cast" in str(loaded.guarantee)
  # The one without noise is in the evaluation, and nowhere in the release.
  hidden = str(drawn[0]["not_publishable"])[:6]
  for path in (tmp_path / "release").iterdir():
    assert hidden.encode() not in path.read_bytes(), path
  found = evaluate(made, easy(50, 3), work=tmp_path / "work", key=jax.random.key(0))
  found.write(tmp_path)
  page = (tmp_path / "evaluation" / "evaluation.md").read_text()
  assert "without noise (not for release)" in page
  assert f"(not for release) | {round_up(drawn[0]['not_publishable']):g} |" in page
  card = json.loads((tmp_path / "release" / "model_card.json").read_text())
  assert card["privacy"]["at_votes"]["epsilon"] == figure.epsilon
  assert "| sanitized |" in (tmp_path / "release" / "model_card.md").read_text()


@pytest.mark.slow
def test_without_a_figure_the_card_says_so(tmp_path):
  method, plan = planned("pate", sanitized_epsilon=None)
  made = method.release(plan, PEOPLE, folder=tmp_path, key=jax.random.key(0))
  assert made.guarantee.at_votes is None
  told = (tmp_path / "release" / "model_card.md").read_text()
  assert "| sanitized | none was bought |" in told
  kept = json.loads((tmp_path / "work" / "vote_epsilons.json").read_text())
  assert set(kept) == {"any_votes", "not_publishable"}


@pytest.mark.slow
def test_a_key_for_tests_draws_the_figure_again(tmp_path, monkeypatch):
  method, plan = planned("pate")
  agreed = np.full((40, 2), (57, 3))
  monkeypatch.setattr(Pate, "votes", lambda *_, **__: agreed)
  found = [
    method.release(plan, PEOPLE, folder=tmp_path / str(i), key=jax.random.key(seed))
    for i, seed in enumerate((0, 0, 1))
  ]
  figures = [one.guarantee.at_votes.epsilon for one in found]
  assert figures[0] == figures[1] != figures[2]
  assert max(figures) < found[0].guarantee.guarantee.epsilon
