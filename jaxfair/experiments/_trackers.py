"""Trackers by name: MLflow, Weights & Biases, TensorBoard. Each is imported when it is used."""

import contextlib
import importlib
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jaxfair import checks
from jaxfair.experiments._tracking import Tracker

PARENT = "mlflow.parentRunId"  # the tag by which MLflow nests runs
WHO = ("group", "seed")
_PLAIN = re.compile(r"[^\w .-]")


class Mlflow:
  """One MLflow run for a run directory, with a nested one for every setting.

  Figures are metrics named FIGURE.GROUP, with the seed as their step. Where runs are kept is
  MLflow's own setting ($MLFLOW_TRACKING_URI).
  """

  def __init__(self, study: str, run: pathlib.Path):
    self._client = _imported("mlflow.tracking", "'jaxfair[track]'").MlflowClient()
    known = self._client.get_experiment_by_name(study)
    self._experiment = known.experiment_id if known else self._client.create_experiment(study)
    self._children: dict[tuple[tuple[str, str], ...], str] = {}
    self._parent = self._begun(run.name, {})

  def on_cell(self, name: str, settings: Mapping[str, Any]) -> None:
    """A nested run with the cell's settings as parameters."""
    self._child(settings, name)

  def on_row(self, settings: Mapping[str, Any], figures: Mapping[str, float]) -> None:
    """Metrics of the nested run that has these settings."""
    child = self._child({k: v for k, v in settings.items() if k not in WHO})
    group, step = settings.get("group", ""), int(settings.get("seed", 0))
    for name, value in figures.items():
      self._client.log_metric(child, _PLAIN.sub("_", _joined(name, group, ".")), value, step=step)

  def on_release(self, facts: Mapping[str, Any]) -> None:
    """Parameters "release.*" of the whole run."""
    for name, value in facts.items():
      self._client.log_param(self._parent, f"release.{name}", value)

  def close(self) -> None:
    """Ends all runs."""
    for run in (*self._children.values(), self._parent):
      self._client.set_terminated(run)

  def _child(self, settings: Mapping[str, Any], name: str = "") -> str:
    key = tuple(sorted((k, str(v)) for k, v in settings.items()))
    if key not in self._children:
      words = name or " ".join(f"{k}={v}" for k, v in settings.items())
      self._children[key] = self._begun(words, {PARENT: self._parent})
      for own, value in settings.items():
        self._client.log_param(self._children[key], own, value)
    return self._children[key]

  def _begun(self, name: str, tags: Mapping[str, str]) -> str:
    made = self._client.create_run(self._experiment, run_name=name, tags=dict(tags))
    return str(made.info.run_id)


# What Weights & Biases would send by itself: warnings and errors on the terminal may be about
# people, and so may files of a repository that differ from their last commit.
ONLY_WHAT_IS_TOLD = {"console": "off", "disable_code": True, "disable_git": True}


class Wandb:
  """One run of Weights & Biases for a run directory; figures are logged as FIGURE/GROUP."""

  def __init__(self, study: str, run: pathlib.Path):
    wandb = _imported("wandb", "wandb")
    self._run = wandb.init(
      project=f"jaxfair-{study}", name=run.name, settings=dict(ONLY_WHAT_IS_TOLD)
    )
    self._cells = 0

  def on_cell(self, name: str, settings: Mapping[str, Any]) -> None:
    """The number of cells so far, and the settings of this one."""
    self._cells += 1
    self._run.log({"cells": self._cells, **{f"cell/{k}": v for k, v in settings.items()}})

  def on_row(self, settings: Mapping[str, Any], figures: Mapping[str, float]) -> None:
    """The figures, beside the settings of their row."""
    group = settings.get("group", "")
    named = {_joined(name, group, "/"): value for name, value in figures.items()}
    self._run.log({**{f"cell/{k}": v for k, v in settings.items()}, **named})

  def on_release(self, facts: Mapping[str, Any]) -> None:
    """Part of the run's summary."""
    self._run.summary.update({f"release/{name}": value for name, value in facts.items()})

  def close(self) -> None:
    """Ends the run."""
    self._run.finish()


class TensorBoard:
  """Scalars in `tensorboard/` of the run directory, as SETTINGS/FIGURE/GROUP over seeds."""

  def __init__(self, study: str, run: pathlib.Path):
    del study
    self._writer = _imported("tensorboard.summary", "tensorboard").Writer(str(run / "tensorboard"))
    self._cells = 0

  def on_cell(self, name: str, settings: Mapping[str, Any]) -> None:
    """The number of cells so far."""
    self._cells += 1
    self._writer.add_scalar("cells", self._cells, step=self._cells)

  def on_row(self, settings: Mapping[str, Any], figures: Mapping[str, float]) -> None:
    """One scalar for each figure."""
    words = " ".join(f"{k}={v}" for k, v in settings.items() if k not in WHO)
    group, step = settings.get("group", ""), int(settings.get("seed", 0))
    for name, value in figures.items():
      self._writer.add_scalar(_joined(f"{words}/{name}", group, "/"), value, step=step)

  def on_release(self, facts: Mapping[str, Any]) -> None:
    """The numbers of a guarantee."""
    for name in ("epsilon", "delta"):
      self._writer.add_scalar(f"release/{name}", facts[name], step=0)

  def close(self) -> None:
    """Writes what is left."""
    self._writer.close()


TRACKERS: dict[str, Callable[[str, pathlib.Path], Any]] = {
  "mlflow": Mlflow,
  "wandb": Wandb,
  "tensorboard": TensorBoard,
}


@contextlib.contextmanager
def opened(name: str | None, study: str, run: pathlib.Path) -> Iterator[Tracker | None]:
  """The tracker with this name, closed at the end, however the run ends; None for no name."""
  if name is None:
    yield None
    return
  checks.one_of("--track", name, TRACKERS)
  tracker = TRACKERS[name](study, run)
  try:
    yield tracker
  finally:
    tracker.close()


def _imported(module: str, install: str) -> Any:
  try:
    return importlib.import_module(module)
  except ModuleNotFoundError:
    name = module.partition(".")[0]
    raise checks.ArgumentError(
      f"--track needs {name}; install it with `pip install {install}`"
    ) from None


def _joined(name: str, group: str, mark: str) -> str:
  return f"{name}{mark}{group}" if group else name
