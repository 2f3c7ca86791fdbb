"""FairPATE that judges before it pays: who is asked, at what price, and again after a stop."""

import json

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, fairness, methods, pate
from jaxfair.methods import _fair_queries
from jaxfair.types import Examples

BUDGET = accounting.Budget(10.0, 1e-4)
SETTINGS = {
  "num_teachers": 8,
  "queries": 12,
  "teacher_steps": 10,
  "student_steps": 10,
  "learning_rate": 0.1,
  "max_gap": 0.2,
  "min_count": 3,
}
METHOD = methods.get("fairpate")
KEY = jax.random.key(0)


def unequal(size, seed):
  rng = np.random.default_rng(seed)
  group = (rng.random(size) < 0.5).astype(np.int32)
  y = (rng.random(size) < 0.3 + 0.4 * group).astype(np.int32)
  x = rng.normal(size=(size, 2)) + 2.0 * y[:, None]
  return Examples(x.astype(np.float32), y, group)


PEOPLE = methods.Population(unequal(96, 1), ("no", "yes"), ("a", "b"), public=unequal(60, 2))


def plan_of(**settings):
  return METHOD.plan(METHOD.settings(**SETTINGS | settings), PEOPLE.sizes, BUDGET)


CHOSEN = plan_of(choose="admissible", rounds=3)


@pytest.fixture(scope="module")
def votes():
  return METHOD.votes(CHOSEN, PEOPLE, key=KEY)


def test_rows_that_the_rule_would_admit_come_first_in_order_of_doubt():
  # Both groups are warm. Group 0 has 2 of 4 answers "yes", group 1 has 3 of 4: at a margin of 0.3
  # another "yes" for group 1 would make it 4 of 5 against 2 of 4, exactly at the margin.
  rule = fairness.CounterRule(max_gap=0.3, min_count=4)
  counters = np.array([[2, 2], [1, 3]])
  logits = np.array([[0.0, 2], [0, 1], [3, 0], [0, 0.5], [0, 4]])
  groups = np.array([1, 1, 1, 0, 0])
  found = _fair_queries.admissible_first(logits, groups, np.arange(5), rule, counters)
  # Doubt: 3, 1, 0, 2, 4. Row 3 is admitted (3 of 5 of group 0) and makes room for row 1 (4 of 5);
  # row 0 would be 5 of 6 against 3 of 5, below the margin too; so are rows 2 and 4.
  assert found.tolist() == [3, 1, 0, 2, 4]
  found = _fair_queries.admissible_first(logits, groups, np.array([0, 1, 2]), rule, counters)
  # Without row 3, rows 1 and 0 are at the margin until row 2, a "no", was answered; they are last.
  assert found.tolist() == [2, 1, 0]
  before = logits.copy()
  wider = fairness.CounterRule(max_gap=0.9, min_count=4)
  found = _fair_queries.admissible_first(before, groups, np.array([4, 2, 0]), wider, counters)
  assert found.tolist() == [0, 2, 4]


def test_admission_of_another_notion_reads_the_public_labels():
  rule = fairness.CounterRule(max_gap=0.3, min_count=1, notion="accuracy_parity")
  counters = np.array([[[1, 1], [0, 2]]])  # group 0 is right half of the time, group 1 always
  logits = np.array([[0.0, 1], [0, 2]])
  groups, rows = np.array([1, 1]), np.arange(2)
  first = _fair_queries.admissible_first(
    logits, groups, rows, rule, counters, truth=np.array([1, 0])
  )
  # Row 0 would be right, which keeps group 1 ahead by a half; row 1 would be wrong.
  assert first.tolist() == [1, 0]


def test_the_price_does_not_depend_on_the_choice():
  first = plan_of()
  assert CHOSEN.event == first.event
  assert CHOSEN.config == first.config
  assert "chosen among 60 in rounds of 4" in CHOSEN.says[0]
  assert "chosen" not in first.says[0]
  with pytest.raises(checks.ArgumentError, match="rounds=13"):
    plan_of(choose="admissible", rounds=13)
  with pytest.raises(checks.ArgumentError, match="known beforehand"):
    METHOD.settings(choose="admissible", sanitized_epsilon=1.0)


@pytest.mark.slow
def test_rounds_are_those_of_the_answers_so_far_until_the_budget_is_spent(votes):
  rows = []

  def watching(number, choice):
    rows.append(choice())
    return rows[-1]

  order, labels = METHOD._in_rounds(CHOSEN, PEOPLE, votes, KEY, watching)
  assert rows[0].tolist() == [0, 1, 2, 3]
  assert np.concatenate(rows).tolist() == order.tolist()
  assert len(set(order)) == len(order) >= 12
  noise, rule = CHOSEN.config.rule, CHOSEN.abstention
  groups, inside = PEOPLE.public.group, CHOSEN.bounded(PEOPLE).public.x

  def phase(asked):
    return pate.fair_gnmax(
      votes,
      groups,
      num_groups=2,
      threshold=noise.threshold,
      sigma_threshold=noise.sigma_threshold,
      sigma_answer=noise.sigma_answer,
      max_rho=CHOSEN.config.max_rho,
      key=_fair_queries.named_keys(KEY)["noise"],
      order=asked,
      **vars(rule),
    )

  # Every round is the choice by the answers to the rounds before, computed from them alone.
  for number in range(1, len(rows)):
    asked = np.concatenate(rows[:number])
    found = phase(asked)
    if (np.asarray(found.labels) >= 0).any():
      student = METHOD.students([CHOSEN], PEOPLE, np.asarray(found.labels), key=KEY)
      logits = CHOSEN.model.apply(jax.tree.map(lambda a: a[0], student), inside)
      left = np.setdiff1d(np.arange(60), asked)
      wanted = _fair_queries.admissible_first(logits, groups, left, rule, found.counters)
      assert rows[number].tolist() == wanted[:4].tolist()
    assert not (np.asarray(found.outcome)[asked] == pate.Outcome.NOT_ASKED).any()
  last = phase(order)
  np.testing.assert_array_equal(last.labels, labels)
  spent = (np.asarray(last.outcome)[order] == pate.Outcome.NOT_ASKED).any()
  assert spent or len(order) == 60
  cost = last.tested.sum() * 0.5 / noise.sigma_threshold**2
  cost += last.chosen.sum() / noise.sigma_answer**2
  assert cost <= CHOSEN.config.max_rho
  # Votes on those who are not asked about are not read.
  other = votes.copy()
  never = np.setdiff1d(np.arange(60), order)
  other[never] = other[never, ::-1]
  np.testing.assert_array_equal(METHOD.labels(CHOSEN, PEOPLE, other, key=KEY), labels)
  fitted = METHOD.fit(CHOSEN, PEOPLE, key=KEY)
  np.testing.assert_array_equal(fitted.trace.labels, labels[order])
  np.testing.assert_array_equal(fitted.trace.counts, votes[order])


@pytest.mark.slow
def test_first_is_fairpate_as_it_was(votes):
  plan = plan_of()
  base = super(_fair_queries.ChoosingFairPate, METHOD)
  labels = METHOD.labels(plan, PEOPLE, votes[:12], key=KEY)
  np.testing.assert_array_equal(labels, base.labels(plan, PEOPLE, votes[:12], key=KEY))
  fitted, before = METHOD.fit(plan, PEOPLE, key=KEY), base.fit(plan, PEOPLE, key=KEY)
  jax.tree.map(np.testing.assert_array_equal, fitted, before)


@pytest.mark.slow
def test_a_release_stopped_between_rounds_asks_about_the_same(tmp_path, monkeypatch):
  answer, stops = _fair_queries.fair_answers, [2]

  def stopping(*given):
    stops[0] -= 1
    if stops[0] < 0:
      raise KeyboardInterrupt
    return answer(*given)

  monkeypatch.setattr(_fair_queries, "fair_answers", stopping)
  with pytest.raises(KeyboardInterrupt):
    METHOD.release(CHOSEN, PEOPLE, folder=tmp_path)
  path = tmp_path / "work" / "answers" / "queries.json"
  begun = json.loads(path.read_text())
  assert [len(rows) for rows in begun] == [4, 4, 4]  # the last was chosen and not answered
  stops[0] = 100
  # The rounds that were chosen are not chosen again, even if a student would now choose others.
  turned = _fair_queries.admissible_first
  monkeypatch.setattr(_fair_queries, "admissible_first", lambda *a, **k: turned(*a, **k)[::-1])
  made = METHOD.release(CHOSEN, PEOPLE, folder=tmp_path)
  asked = json.loads(path.read_text())
  assert asked[:3] == begun
  rows = [row for some in asked for row in some]
  assert len(set(rows)) == len(rows) >= 12
  right = made.predict(PEOPLE.public.x) == PEOPLE.public.y
  assert right.mean() > 0.6
  assert made.guarantee.guarantee.epsilon <= BUDGET.epsilon
