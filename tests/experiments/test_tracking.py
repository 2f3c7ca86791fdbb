"""Trackers: what they are told, and what is kept from them."""

import dataclasses
import types
from typing import ClassVar

import numpy as np
import pytest

from jaxfair import accounting, checks, experiments
from jaxfair.experiments import _runs, _trackers, _tracking
from jaxfair.pate._attribute import Protection


class Recorder:
  """Remembers what it is told."""

  def __init__(self):
    self.cells, self.rows, self.releases = [], [], []

  def on_cell(self, name, settings):
    self.cells.append((name, dict(settings)))

  def on_row(self, settings, figures):
    self.rows.append((settings, figures))

  def on_release(self, facts):
    self.releases.append(facts)


class NonPrivateNumber(float):
  """Not to be published."""


def executed(toy, folder, tracker, **options):
  told = []
  made = _runs.plan(toy.study, {"seeds": 2})
  table = experiments.execute(made, folder, say=told.append, track=tracker, **options)
  return table, " ".join(told)


def test_cells_are_told_and_rows_are_kept(toy, tmp_path):
  tracker = Recorder()
  table, told = executed(toy, tmp_path, tracker)
  assert [settings for _, settings in tracker.cells] == [{"mean": m} for m in (0.0, 1.0, 2.0)]
  assert all(name.startswith(str(settings["mean"])) for name, settings in tracker.cells)
  assert tracker.rows == tracker.releases == []
  assert f"not sent the {len(table)} rows of results (value)" in told
  assert "--track-non-private" in told


def test_rows_are_told_if_that_is_allowed(toy, tmp_path):
  tracker = Recorder()
  table, told = executed(toy, tmp_path, tracker, track_non_private=True)
  assert "not sent" not in told
  assert len(tracker.rows) == len(table) == 12
  for (settings, figures), row in zip(tracker.rows, table.rows(), strict=True):
    assert {**settings, **figures} == row
    assert sorted(settings) == ["group", "mean", "seed"]


def test_cells_that_were_there_are_not_told_again(toy, tmp_path):
  executed(toy, tmp_path, Recorder())
  again = Recorder()
  executed(toy, tmp_path, again)
  assert again.cells == []


def test_values_that_must_not_be_published_are_refused_by_their_type(toy):
  hidden = (NonPrivateNumber(0.5), accounting.DataDependentEpsilon(0.1, 1e-5))
  for value in hidden:
    strict, open_ = Recorder(), Recorder()
    with pytest.raises(checks.ArgumentError, match=r"loss is a .*computed from people"):
      _tracking.Guard(strict, print).on_cell("a", {"loss": value})
    assert strict.cells == []
    _tracking.Guard(open_, print, allow_non_private=True).on_cell("a", {"loss": value})
    assert open_.cells == [("a", {"loss": value})]


def test_a_release_tells_its_guarantee(toy):
  promise = accounting.PrivacyGuarantee(
    1.0, 1e-5, accounting.Relation.REPLACE_ONE, "one person", "PLD"
  )
  released = types.SimpleNamespace(
    method="pate",
    network=types.SimpleNamespace(name="mlp"),
    guarantee=Protection(promise, (), (), for_release=True),
  )
  tracker = Recorder()
  _tracking.Guard(tracker, print).on_release(released)
  assert tracker.releases == [
    {
      "method": "pate",
      "network": "mlp",
      "epsilon": 1.0,
      "delta": 1e-5,
      "relation": "replace-one",
      "unit": "one person",
      "for_release": True,
    }
  ]


ROW = ({"mean": 1.0, "group": "a & b", "seed": 3.0}, {"value": 0.25})
FACTS = {"epsilon": 1.0, "delta": 1e-5, "method": "pate"}


def tell_everything(name, folder):
  with _trackers.opened(name, "toy", folder) as tracker:
    tracker.on_cell("1.0-abc", {"mean": 1.0})
    tracker.on_row(*ROW)
    tracker.on_release(FACTS)


def test_mlflow_keeps_a_run_with_nested_runs(tmp_path, monkeypatch):
  """In a local store of files; mlflow-skinny takes 40 MB, so it is in no other extra."""
  tracking = pytest.importorskip("mlflow.tracking", reason="mlflow is in the extra 'track'")
  monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
  monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
  tell_everything("mlflow", tmp_path / "run")
  client = tracking.MlflowClient()
  found = client.search_runs([client.get_experiment_by_name("toy").experiment_id])
  runs = {run.info.run_name: run for run in found}
  assert sorted(runs) == ["1.0-abc", "run"]
  child, parent = runs["1.0-abc"], runs["run"]
  assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
  assert child.data.params == {"mean": "1.0"}
  [metric] = client.get_metric_history(child.info.run_id, "value.a _ b")
  assert (metric.value, metric.step) == (0.25, 3)
  assert parent.data.params["release.epsilon"] == "1.0"
  assert {run.info.status for run in found} == {"FINISHED"}


class Client:
  """The calls of `MlflowClient` that are used, as they were made."""

  calls: ClassVar = []

  def __getattr__(self, name):
    def call(*args, **more):
      self.calls.append((name, *args))
      run = types.SimpleNamespace(info=types.SimpleNamespace(run_id=f"id{len(self.calls)}"))
      return run if name == "create_run" else None

    return call


def test_mlflow_is_called_as_it_documents(tmp_path, monkeypatch):
  monkeypatch.setattr(Client, "calls", [])
  fake = types.SimpleNamespace(MlflowClient=Client)
  monkeypatch.setattr(_trackers, "_imported", lambda module, install: fake)
  tell_everything("mlflow", tmp_path / "run")
  names = [call[0] for call in Client.calls]
  assert names[:3] == ["get_experiment_by_name", "create_experiment", "create_run"]
  assert names.count("create_run") == 2  # the row belongs to the cell's run
  assert ("log_metric", "id4", "value.a _ b", 0.25) in Client.calls
  assert names[-2:] == ["set_terminated", "set_terminated"]


def test_weights_and_biases_is_called_as_it_documents(tmp_path, monkeypatch):
  logged, summary, ended = [], {}, []
  run = types.SimpleNamespace(log=logged.append, summary=summary, finish=lambda: ended.append(True))
  given = {}

  def init(**more):
    given.update(more)
    return run

  fake = types.SimpleNamespace(init=init)
  monkeypatch.setattr(_trackers, "_imported", lambda module, install: fake)
  tell_everything("wandb", tmp_path / "run")
  # The terminal, which has warnings about people, is not sent; nor are files.
  off = {"console": "off", "disable_code": True, "disable_git": True}
  assert given == {"project": "jaxfair-toy", "name": "run", "settings": off}
  assert logged[0] == {"cells": 1, "cell/mean": 1.0}
  assert logged[1]["value/a & b"] == 0.25
  assert summary["release/epsilon"] == 1.0
  assert ended == [True]


def test_tensorboard_writes_scalars(tmp_path, monkeypatch):
  written = []
  writer = types.SimpleNamespace(
    add_scalar=lambda tag, value, step: written.append((tag, value, step)),
    close=lambda: written.append("closed"),
  )
  fake = types.SimpleNamespace(Writer=lambda folder: writer)
  monkeypatch.setattr(_trackers, "_imported", lambda module, install: fake)
  tell_everything("tensorboard", tmp_path / "run")
  assert written == [
    ("cells", 1, 1),
    ("mean=1.0/value/a & b", 0.25, 3),
    ("release/epsilon", 1.0, 0),
    ("release/delta", 1e-5, 0),
    "closed",
  ]


def test_tensorboard_itself_takes_them(tmp_path):
  pytest.importorskip("tensorboard.summary", reason="tensorboard is in no extra")
  tell_everything("tensorboard", tmp_path / "run")
  [events] = (tmp_path / "run" / "tensorboard").iterdir()
  assert b"release/epsilon" in events.read_bytes()


def test_a_tracker_is_closed_when_the_run_fails(tmp_path, monkeypatch):
  closed = []
  made = types.SimpleNamespace(close=lambda: closed.append(True))
  monkeypatch.setitem(_trackers.TRACKERS, "mlflow", lambda study, run: made)
  with pytest.raises(KeyError), _trackers.opened("mlflow", "toy", tmp_path):
    raise KeyError("stopped")
  assert closed == [True]


def test_trackers_that_are_not_there_are_told(tmp_path):
  unknown = pytest.raises(checks.ArgumentError, match=r"track='mlfow' .*mlflow")
  with unknown, _trackers.opened("mlfow", "toy", tmp_path):
    pass
  with pytest.raises(checks.ArgumentError, match="pip install no-such-package"):
    _trackers._imported("no_such_module", "no-such-package")


def test_settings_columns_of_any_kind_are_no_figures(toy):
  table = experiments.Table(
    {"mean": [1.0], "label": ["x"], "seed": [0], "group": ["a"], "value": [2.0], "no": [np.nan]}
  )
  tracker = Recorder()
  study = dataclasses.replace(toy.study, figures=(), summaries=())
  _tracking.Guard(tracker, print, allow_non_private=True).on_table(study, ["mean"], table)
  [(settings, figures)] = tracker.rows
  assert sorted(settings) == ["group", "label", "mean", "seed"]
  assert figures == {"value": 2.0}
