"""New people are answered within the margin, and the counters are kept."""

import json

import numpy as np
import pytest

from jaxfair import checks
from jaxfair.fairness import CounterRule
from jaxfair.methods._serving import serve

from .test_released import released

X = np.random.default_rng(1).normal(5.0, 20.0, (60, 3)).astype(np.float32)
PARAMS = {"w": np.float32([[-1, 1], [1, -1], [0, 0]]), "b": np.zeros(2, np.float32)}
RULE = CounterRule(0.05, 3)


def model(**changes):
  changes = {"params": PARAMS, "abstention": RULE, "group_names": ("a", "b"), **changes}
  return released("logistic", **changes)


def test_without_a_margin_all_predictions_are_shown(tmp_path):
  own = model(abstention=None)
  found = serve(own, X)
  np.testing.assert_array_equal(found.labels, own.predict(X))
  assert found.coverage is None
  assert found.notes == ()
  with pytest.raises(checks.ArgumentError, match="no state"):
    serve(own, X, state=tmp_path / "state.json")


def test_batches_with_one_state_are_one_batch(tmp_path):
  own, state = model(), tmp_path / "state.json"
  labels = own.predict(X)
  assert 0 < labels.sum() < len(labels)
  group = labels.copy()  # as far apart as can be: the rule must abstain
  group[::7] = 1 - group[::7]
  whole = serve(own, X, group)
  parts = [serve(own, X[rows], group[rows], state=state) for rows in np.split(np.arange(60), 6)]
  shown = np.concatenate([part.labels for part in parts])
  np.testing.assert_array_equal(shown, whole.labels)
  assert parts[-1].coverage == whole.coverage
  assert (shown == -1).any()
  assert np.isnan(whole.scores[shown == -1]).all()
  assert np.array_equal(whole.scores[shown >= 0], own.scores(X)[shown >= 0])
  answers = np.array(json.loads(state.read_text())["counters"])
  shares = answers[:, 1] / answers.sum(axis=1)
  assert abs(shares[0] - shares[1]) < 0.05 or (answers.sum(axis=1) <= 3).any()
  assert "not saved" in whole.notes[-1]
  assert not any("not saved" in note for note in parts[-1].notes)


def test_it_says_when_the_margin_cannot_be_kept():
  own = model()
  found = serve(own, X[:5], np.zeros(5, int))
  assert any(
    "not kept for b: it has 0 answers, and the rule applies from 3 on" in n for n in found.notes
  )
  assert any("only one group" in note for note in found.notes)
  assert np.isnan(found.coverage["b"])
  with pytest.raises(checks.ArgumentError, match="group of each person is needed"):
    serve(own, X)


def test_people_of_unknown_groups_are_not_answered():
  found = serve(model(), X[:4], np.array([0, -1, 1, -1]))
  assert (found.labels[[1, 3]] == -1).all()
  assert "2 people of groups that the model does not know" in found.notes[0]


def test_a_state_is_that_of_its_release(tmp_path):
  state = tmp_path / "state.json"
  serve(model(), X, np.zeros(60, int), state=state)
  with pytest.raises(checks.ArgumentError, match="another rule"):
    serve(model(abstention=CounterRule(0.5, 3)), X, np.zeros(60, int), state=state)
  with pytest.raises(checks.ArgumentError, match="an existing folder"):
    serve(model(), X, np.zeros(60, int), state=tmp_path / "no" / "state.json")
