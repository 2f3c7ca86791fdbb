"""Queries chosen by released answers: which, at what price, and again after a stop."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import accounting, checks, methods, pate
from jaxfair.methods import _chosen_queries
from jaxfair.types import Examples

BUDGET = accounting.Budget(10.0, 1e-4)
SETTINGS = {
  "num_teachers": 8,
  "queries": 13,
  "teacher_steps": 10,
  "student_steps": 10,
  "learning_rate": 0.1,
}
METHOD = methods.get("pate")
KEY = jax.random.key(0)


def easy(size, seed):
  rng = np.random.default_rng(seed)
  y = (rng.random(size) < 0.5).astype(np.int32)
  x = rng.normal(size=(size, 2)) + 2.0 * y[:, None]
  return Examples(x.astype(np.float32), y, np.zeros(size, np.int32))


PEOPLE = methods.Population(easy(96, 1), ("no", "yes"), ("a", "b"), public=easy(40, 2))


def plan_of(**settings):
  return METHOD.plan(METHOD.settings(**SETTINGS | settings), PEOPLE.sizes, BUDGET)


CHOSEN = plan_of(choose="uncertain", rounds=3)


@pytest.fixture(scope="module")
def votes():
  return METHOD.votes(CHOSEN, PEOPLE, key=KEY)


def test_least_sure_rows_are_found_and_mapped_over():
  logits = jnp.array([[3.0, 0, 0], [0.1, 0, -5], [0, 0, 9], [1, 1, 0], [0.2, 0, -9]])
  none = np.zeros(5, bool)
  assert _chosen_queries.least_sure(logits, none, 3).tolist() == [3, 1, 4]
  assert _chosen_queries.least_sure(logits, none.copy() | [0, 0, 0, 1, 0], 2).tolist() == [1, 4]
  asked = jnp.eye(5, dtype=bool)
  many = jax.vmap(lambda one: _chosen_queries.least_sure(logits, one, 1))(asked)
  assert many[:, 0].tolist() == [3, 3, 3, 1, 3]


def test_the_price_does_not_depend_on_the_choice():
  first = plan_of()
  assert CHOSEN.event == first.event
  assert CHOSEN.config.rule == first.config.rule
  assert "chosen among 40 in 3 rounds" in CHOSEN.says[0]
  assert "chosen" not in first.says[0]
  with pytest.raises(checks.ArgumentError, match="rounds=14"):
    plan_of(choose="uncertain", rounds=14)
  with pytest.raises(checks.ArgumentError, match="known beforehand"):
    METHOD.settings(choose="uncertain", sanitized_epsilon=1.0)


@pytest.mark.slow
def test_rounds_ask_those_whom_the_student_so_far_is_least_sure_about(votes):
  labels = METHOD.labels(CHOSEN, PEOPLE, votes, key=KEY)
  asked = labels != pate.NO_ANSWER
  assert asked.sum() == 13
  assert asked[:5].all()  # rounds of 5, 4 and 4
  begun = np.where(np.arange(40) < 5, labels, pate.NO_ANSWER)
  params = jax.tree.map(lambda a: a[0], METHOD.students([CHOSEN], PEOPLE, begun, key=KEY))
  inside = CHOSEN.bounded(PEOPLE).public.x
  scores = np.sort(jax.nn.softmax(CHOSEN.model.apply(params, inside)))
  second = [row for row in np.argsort(scores[:, 1] - scores[:, 0]) if row >= 5][:4]
  assert asked[second].all()
  # Nobody's answer depends on who else is asked about, and votes on others are not read.
  other = np.where(asked[:, None], votes, votes[:, ::-1])
  np.testing.assert_array_equal(METHOD.labels(CHOSEN, PEOPLE, other, key=KEY), labels)
  fitted = METHOD.fit(CHOSEN, PEOPLE, key=KEY)
  np.testing.assert_array_equal(fitted.trace.labels, labels[asked])
  np.testing.assert_array_equal(fitted.trace.counts, votes[asked])


@pytest.mark.slow
def test_first_is_pate_as_it_was(votes):
  plan = plan_of()
  base = super(_chosen_queries.ChoosingPate, METHOD)
  labels = METHOD.labels(plan, PEOPLE, votes[:13], key=KEY)
  np.testing.assert_array_equal(labels, base.labels(plan, PEOPLE, votes[:13], key=KEY))
  fitted, before = METHOD.fit(plan, PEOPLE, key=KEY), base.fit(plan, PEOPLE, key=KEY)
  jax.tree.map(np.testing.assert_array_equal, fitted, before)


@pytest.mark.slow
def test_a_release_stopped_between_rounds_asks_about_the_same(tmp_path, monkeypatch):
  answer, stops = pate.Answerer.answer, [2]

  def stopping(self, counts, *, first):
    stops[0] -= 1
    if stops[0] < 0:
      raise KeyboardInterrupt
    return answer(self, counts, first=first)

  monkeypatch.setattr(pate.Answerer, "answer", stopping)
  with pytest.raises(KeyboardInterrupt):
    METHOD.release(CHOSEN, PEOPLE, folder=tmp_path)
  folder = tmp_path / "work" / "answers"
  begun = json.loads((folder / "queries.json").read_text())
  log = (folder / "answers.jsonl").read_text()
  assert [len(rows) for rows in begun] == [5, 4, 4]  # the last was chosen and not answered
  stops[0] = 3
  # The rounds that were chosen are not chosen again, even if a student would now choose others.
  monkeypatch.setattr(_chosen_queries, "least_sure", None)
  made = METHOD.release(CHOSEN, PEOPLE, folder=tmp_path)
  assert json.loads((folder / "queries.json").read_text()) == begun
  assert (folder / "answers.jsonl").read_text().startswith(log)
  assert len({row for rows in begun for row in rows}) == 13
  right = made.predict(PEOPLE.public.x) == PEOPLE.public.y
  assert right.mean() > 0.7
  spent = accounting.Ledger.open(folder / "ledger.jsonl")
  with spent:
    assert spent.guarantee().epsilon <= BUDGET.epsilon
