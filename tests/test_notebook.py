"""Frames and short HTML of tables, group reports, guarantees and releases."""

import sys

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, fairness
from jaxfair.analysis import _by_group
from jaxfair.experiments import Table
from jaxfair.methods._evaluation import NonPrivateEvaluation
from jaxfair.pate._attribute import Protection

TRUE = np.array([0, 1, 1, 0, 1, 1])
PRED = np.array([0, 1, 0, 0, 1, 1])
GROUP = np.array([0, 0, 0, 1, 1, 1])
PROMISE = accounting.PrivacyGuarantee(
  1.0, 1e-5, accounting.Relation.REPLACE_ONE, "one person", "PLD"
)


def test_a_table_becomes_a_frame():
  table = Table({"group": ["a", "b"], "gap": [0.5, np.nan]})
  frame = table.to_pandas()
  assert list(frame.columns) == ["group", "gap"]
  assert frame["group"].tolist() == ["a", "b"]
  np.testing.assert_array_equal(frame["gap"], [0.5, np.nan])


def test_a_group_report_becomes_a_frame_with_a_row_for_everyone():
  report = fairness.by_group(TRUE, PRED, TRUE * 1.0, sensitive_features=GROUP)
  frame = report.to_pandas(["young", "old"])
  assert frame.index.tolist() == ["young", "old", "everyone"]
  np.testing.assert_allclose(frame["accuracy"], [2 / 3, 1, 5 / 6], rtol=1e-6)
  np.testing.assert_allclose(frame["loss"], [2 / 3, 2 / 3, 2 / 3], rtol=1e-6)
  assert frame["count"].tolist() == [3, 3, 6]
  assert "loss" not in fairness.by_group(TRUE, PRED, sensitive_features=GROUP).to_pandas()
  with pytest.raises(checks.ArgumentError, match="3 entries for 2 groups"):
    report.to_pandas(["a", "b", "c"])


def test_rates_of_every_class_are_columns_of_their_own():
  frame = fairness.by_group([0, 1, 2], [0, 1, 1], sensitive_features=[0, 0, 1]).to_pandas()
  np.testing.assert_allclose(frame["selection_rate[1]"], [0.5, 1.0, 2 / 3], rtol=1e-6)


def test_a_stack_of_reports_is_refused_with_what_to_do():
  report = fairness.by_group(TRUE, PRED, sensitive_features=GROUP)
  stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), report)
  with pytest.raises(checks.ArgumentError, match=r"leading axes \(2,\); take one"):
    stacked.to_pandas()


def test_statistics_and_evaluations_become_frames():
  found = _by_group.mean_by_group(np.array([1.0, 2, 6]), np.array([0, 0, 1]), 2)
  assert found.to_pandas("risk")["risk"].tolist() == [1.5, 6.0, 3.0]
  figures = {"a": {"accuracy": [0.9, 0.8, 1.0]}, "b": {"accuracy": [0.7, 0.6, 0.8]}}
  own = NonPrivateEvaluation("test", {"a": 5, "b": 7}, {}, figures, None, ())
  frame = own.to_pandas()
  assert frame[frame.group == "b"][["size", "estimate", "high"]].to_numpy().tolist() == [
    [7, 0.7, 0.8]
  ]


def test_html_is_short_and_escaped():
  table = Table({"<b>": ["<script>"] * 40, "x": np.arange(40)})
  text = table._repr_html_()
  assert "<script>" not in text
  assert "&lt;script&gt;" in text
  assert text.count("<tr>") == 11
  assert "10 of 40 rows" in text
  report = fairness.by_group(TRUE, PRED, sensitive_features=GROUP)
  assert "<td>0.6667</td>" in report._repr_html_()
  told = Protection(PROMISE, ("a record",), ("the <number>",), for_release=False)
  assert "epsilon 1.0" in PROMISE._repr_html_()
  for part in ("epsilon 1.0", "a record", "the &lt;number&gt;", "for study only"):
    assert part in told._repr_html_()
  assert str(told).splitlines()[1:] == [
    "protected: a record",
    "NOT protected: the <number>",
    "for study only: the noise came from a seed",
  ]


def test_a_missing_pandas_is_told(monkeypatch):
  monkeypatch.setitem(sys.modules, "pandas", None)
  with pytest.raises(checks.ArgumentError, match=r"jaxfair\[files\]"):
    Table({"x": [1.0]}).to_pandas()
