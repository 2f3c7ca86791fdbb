"""A gate in front of a deployed model."""

import threading

import numpy as np
import pytest

from jaxfair import fairness
from jaxfair.checks import ArgumentError

RULE = fairness.CounterRule(0.05, 20)
SIZES = {"num_groups": 2, "num_classes": 2}


def stream(size=512):
  rng = np.random.default_rng(0)
  groups = rng.integers(0, 2, size)
  return (rng.random(size) < 0.3 + 0.3 * groups).astype(int), groups


@pytest.mark.slow
def test_batches_and_single_people_are_judged_alike():
  labels, groups = stream()
  whole, pieces = (fairness.Abstainer(RULE, **SIZES) for _ in range(2))
  shown = whole.answer(labels, groups)
  parts = [pieces.answer(labels[:256], groups[:256])]
  parts += [
    pieces.answer(int(k), int(z)) for k, z in zip(labels[256:260], groups[256:260], strict=True)
  ]
  parts += [pieces.answer(labels[260:], groups[260:])]
  np.testing.assert_array_equal(shown, np.hstack(parts))
  np.testing.assert_array_equal(whole.counters, pieces.counters)
  assert set(shown) == {-1, 0, 1}
  assert whole.gap < 0.05
  answered = [(shown[groups == z] >= 0).mean() for z in (0, 1)]
  np.testing.assert_allclose(whole.coverage, answered)


def test_a_saved_gate_goes_on_where_it_stopped(tmp_path):
  labels, groups = stream()
  whole = fairness.Abstainer(RULE, **SIZES)
  shown = whole.answer(labels, groups)
  first = fairness.Abstainer(RULE, **SIZES)
  begun = first.answer(labels[:256], groups[:256])
  first.save(tmp_path / "gate.json")
  second = fairness.Abstainer.restore(tmp_path / "gate.json")
  assert second.rule == RULE
  rest = second.answer(labels[256:], groups[256:])
  np.testing.assert_array_equal(shown, np.append(begun, rest))
  np.testing.assert_array_equal(second.coverage, whole.coverage)
  assert [path.name for path in tmp_path.iterdir()] == ["gate.json"]


def test_a_gate_with_a_plan_goes_on_where_it_stopped(tmp_path):
  labels, groups = stream()
  targets = np.array([0.6, 0.4])
  whole = fairness.Abstainer(RULE, **SIZES, targets=targets)
  shown = whole.answer(labels, groups)
  first = fairness.Abstainer(RULE, **SIZES, targets=targets)
  begun = first.answer(labels[:201], groups[:201])
  first.save(tmp_path / "gate.json")
  second = fairness.Abstainer.restore(tmp_path / "gate.json")
  rest = second.answer(labels[201:], groups[201:])
  np.testing.assert_array_equal(shown, np.append(begun, rest))
  np.testing.assert_array_equal(second.coverage, whole.coverage)
  rates = whole.counters[:, 1] / whole.counters.sum(axis=1)
  np.testing.assert_allclose(rates, 0.4, atol=0.06)
  assert "targets" not in fairness.Abstainer(RULE, **SIZES)._state()
  with pytest.raises(ArgumentError, match=r"targets has shape \(3,\)"):
    fairness.Abstainer(RULE, **SIZES, targets=[0.5, 0.25, 0.25])
  with pytest.raises(ArgumentError, match="sum to 1"):
    fairness.Abstainer(RULE, **SIZES, targets=targets * 2)
  with pytest.raises(ArgumentError, match="offered must hold"):
    fairness.Abstainer(RULE, **SIZES, targets=targets, offered=[1, 2])


def test_threads_share_one_gate():
  labels, groups = stream()
  gate = fairness.Abstainer(RULE, **SIZES)
  shown = [None] * 8

  def work(i):
    rows = slice(64 * i, 64 * (i + 1))
    shown[i] = [
      gate.answer(labels[rows][j : j + 16], groups[rows][j : j + 16]) for j in range(0, 64, 16)
    ]

  workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
  for worker in workers:
    worker.start()
  for worker in workers:
    worker.join()
  given = np.hstack([np.hstack(part) for part in shown])
  table = np.zeros((2, 2), int)
  np.add.at(table, (groups[given >= 0], given[given >= 0]), 1)
  np.testing.assert_array_equal(gate.counters, table)
  assert gate.gap < 0.05


def test_threads_that_save_at_once_leave_a_whole_file(tmp_path):
  labels, groups = stream(64)
  gate, path = fairness.Abstainer(RULE, **SIZES), tmp_path / "gate.json"
  told = []

  def work(i):
    try:
      for _ in range(5):
        gate.answer(labels[8 * i : 8 * i + 8], groups[8 * i : 8 * i + 8])
        gate.save(path)
        fairness.Abstainer.restore(path)
    except Exception as error:
      told.append(error)

  workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
  for worker in workers:
    worker.start()
  for worker in workers:
    worker.join()
  assert told == []
  saved = fairness.Abstainer.restore(path)
  np.testing.assert_array_equal(saved.counters, gate.counters)


def test_what_was_not_saved_is_refused(tmp_path):
  with pytest.raises(ArgumentError, match="cannot be read"):
    fairness.Abstainer.restore(tmp_path / "none.json")
  (tmp_path / "other.json").write_text('{"a": 1}')
  with pytest.raises(ArgumentError, match="is not a state of an Abstainer"):
    fairness.Abstainer.restore(tmp_path / "other.json")
  (tmp_path / "part.json").write_text('{"format": "jaxfair-abstainer-1"}')
  with pytest.raises(ArgumentError, match=r"part.json is damaged \('counters'\)"):
    fairness.Abstainer.restore(tmp_path / "part.json")
  with pytest.raises(ArgumentError, match="none below what was answered"):
    fairness.Abstainer(RULE, **SIZES, counters=[[1, 0], [0, 0]], asked=[0, 0])
  with pytest.raises(ArgumentError, match="labels has ids from 2 to 2"):
    fairness.Abstainer(RULE, **SIZES).answer(2, 0)


def test_what_is_no_rule_and_no_label_is_refused():
  with pytest.raises(ArgumentError, match="pass CounterRule"):
    fairness.Abstainer(0.05, **SIZES)
  gate = fairness.Abstainer(RULE, **SIZES)
  with pytest.raises(ArgumentError, match="not logits"):
    gate.answer([[0.2, 0.8]], [0])
  assert gate.counters.sum() == 0


def test_nobody_asked():
  gate = fairness.Abstainer(RULE, **SIZES)
  assert gate.answer([], []).shape == (0,)
  assert np.isnan(gate.coverage).all()
  assert np.isnan(gate.gap)
