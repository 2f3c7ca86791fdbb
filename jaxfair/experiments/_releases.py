"""The `[release]` table of a config: from people and a budget to a released model.

    [release]
    method = "fairpate"
    epsilon = 2.0
    settings = {max_gap = 0.05, queries = 1000}
    data = {name = "adult", group = "sex"}

One path for every method: planned and priced first, then charged to the ledger of the
data set, computed with randomness of the operating system, written down, measured.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Annotated, Any

import jax
import numpy as np

from jaxfair import accounting, checks, data, methods, models
from jaxfair._fields import Positive, Probability, Settings, Within
from jaxfair.experiments import _config as configs
from jaxfair.experiments._config import ConfigError
from jaxfair.experiments._folders import RunError
from jaxfair.experiments._frontiers import read_frontier
from jaxfair.experiments._people import People, dataset_ledger, load_people
from jaxfair.experiments._reading import read_plan
from jaxfair.methods._evaluation import NonPrivateEvaluation, evaluate
from jaxfair.methods._noisy_figures import FiguresPlan, buy_figures, plan_figures
from jaxfair.types import Examples

TABLE = "release"


class ReleaseConfig(Settings):
  """What is released, from whom, for how much.

  Attributes:
    method: a name in `methods.METHODS`.
    epsilon: what may be spent.
    delta: the same.
    settings: of the method; see its settings class.
    data: the people.
    public: who is taken to be public, as a share of the people (below 1) or as a number: the
      scaler is fitted on them, and methods that need public people get them.
    test: whom the model is measured on, as a share or a number. All others are protected.
    split_seed: decides who is public, protected and test.
    figures_epsilon: buys figures of the test people that may be published, for this much more.
    intended_use: for the model card.
    dataset_ledger: whether the release is charged to the ledger of its data set.
  """

  epsilon: Positive
  method: str = "dp_sgd"
  delta: Probability = 1e-6
  settings: dict[str, Any] = dataclasses.field(default_factory=dict)
  data: People = People()
  public: Positive = 0.2
  test: Positive = 0.2
  split_seed: Annotated[int, Within(0)] = 0
  figures_epsilon: Positive | None = None
  intended_use: str = ""
  dataset_ledger: bool = True

  def check(self) -> None:
    """Raises for a method that cannot be released."""
    checks.one_of("method", self.method, [n for n, m in methods.METHODS.items() if m.protects])

  def parts(self, size: int) -> tuple[int, int, int]:
    """Numbers of public, protected and test people among all."""
    public, test = (round(p * size) if p < 1 else int(p) for p in (self.public, self.test))
    checks.require(
      min(public, test) > 0 and public + test < size,
      f"public={self.public:g} and test={self.test:g} of {size} people leave a part empty; "
      "change them",
    )
    return public, size - public - test, test


@dataclasses.dataclass(frozen=True)
class PlannedRelease:
  """A release that was priced, and has computed nothing.

  Attributes:
    config: what was asked for.
    plan: of the method.
    people: public and private.
    test: people with features as they were recorded.
    notes: what the reader must be told about the people.
  """

  config: ReleaseConfig
  plan: methods.Plan
  people: methods.Population
  test: Examples
  notes: tuple[str, ...]

  @property
  def figures(self) -> FiguresPlan | None:
    """The price of figures that may be published, if they were asked for."""
    epsilon, relation = self.config.figures_epsilon, methods.get(self.plan.method).relation
    if epsilon is None:
      return None
    assert relation is not None
    return plan_figures(epsilon=epsilon, delta=self.config.delta, relation=relation)

  @property
  def event(self) -> accounting.Event:
    """Everything that is charged."""
    assert self.plan.event is not None
    if self.figures is None:
      return self.plan.event
    return accounting.Composed((self.plan.event, self.figures.event))

  def priced(self) -> list[str]:
    """Sentences on what will be done, and what it costs this data set."""
    plan, ledger = self.plan, self.people.ledger
    assert plan.guarantee is not None
    assert plan.budget is not None
    sizes = plan.sizes
    told = [
      *self.notes,
      f"{self.people.name}: {sizes.private:,} people are protected, {sizes.public:,} are taken to "
      f"be public, {len(self.test.y):,} measure the model.",
      *plan.says,
      *([] if self.figures is None else [f"Figures of test people cost {self.figures.guarantee}."]),
      *str(plan.guarantee).splitlines()[1:],
      *(f"NOT protected: {what}" for what in self.people.assumed_public),
    ]
    if ledger is None:
      return [*told, "Not charged to the ledger of the data set: dataset_ledger is false."]
    delta, relation = plan.budget.delta, plan.guarantee.guarantee.relation
    told.append(ledger.told(delta))
    entries = [
      entry.event
      for spent in ledger.spent(delta)
      if spent.guarantee.relation is relation
      for entry in accounting.Ledger.read(spent.path)
    ]
    try:
      after = accounting.composed_guarantee([*entries, self.event], delta=delta, relation=relation)
      told.append(f"With this release: {after}.")
    except accounting.NotCovered:
      told.append(f"With this release: no bound at delta {delta:g} for all of them together.")
    return told


def read_release(path: pathlib.Path, overrides: Mapping[str, Any]) -> ReleaseConfig:
  """The `[release]` table of a TOML file.

  Args:
    path: the file; it holds nothing else, but may extend another.
    overrides: values that replace those of the file, as nested tables.
  """
  values = configs.read(path)
  table = values.pop(TABLE, None)
  if not isinstance(table, dict):
    raise ConfigError(
      f"{path}: has no [release] table; see docs/releasing.md, or run a study with `jaxfair run`"
    )
  if values:
    raise ConfigError(f"{path}: {next(iter(values))}: a config of a release has [release] alone")
  configs.merge(table, overrides)
  return configs.build(ReleaseConfig, table, where=f"{path}: {TABLE}.")


def read_point(folder: pathlib.Path, number: int, overrides: Mapping[str, Any]) -> ReleaseConfig:
  """The release of one setting of a run's frontier.

  Args:
    folder: the run directory.
    number: of the setting on the frontier page, from 0 on.
    overrides: as in `read_release`; its data set is the one that is chosen from.
  """
  made = read_plan(folder)
  if made.study.release is None:
    raise RunError(
      f"{folder}: the study {made.study.name} does not say how its settings are released; name "
      "method, data and epsilon instead (jaxfair release --method ...)"
    )
  found = read_frontier(folder, data=overrides.get("data", {}).get("name"))
  checks.integer("point", number, low=0, high=len(found.settings) - 1)
  setting = {**found.settings[number], "method": found.methods[number]}
  table = made.study.release(made.settings, setting)
  if table is None:
    raise RunError(f"{folder}: {found.methods[number]} has no release; choose another point")
  configs.merge(table, overrides)
  return configs.build(ReleaseConfig, table, where=f"{folder}: {TABLE}.")


def plan_release(config: ReleaseConfig) -> PlannedRelease:
  """Loads the people and prices the release; computes nothing, charges nothing."""
  method = methods.get(config.method)
  settings: Any = configs.build(method.settings, config.settings, where="settings.")
  dataset, note = load_people(config.data)
  parts, key = config.parts(dataset.size), jax.random.key(config.split_seed)
  prepared = data.prepare(dataset, parts, key=key)
  rows = data.split_rows(dataset.size, parts, key=key, unit=dataset.unit)
  ledger = dataset_ledger(config.data) if config.dataset_ledger else None
  people = methods.Population.prepared(prepared, ledger=ledger)
  people = dataclasses.replace(
    people,
    assumed_public=(
      *people.assumed_public,
      f"the records of {len(rows[0]):,} people, drawn at random, who are taken to be public: "
      "features are scaled by theirs",
    ),
    intended_use=config.intended_use,
  )
  budget = accounting.Budget(config.epsilon, config.delta)
  plan = method.plan(settings, people.sizes, budget)
  test = dataset.examples.take(rows[2])
  return PlannedRelease(config, plan, people, test, (note,) if note else ())


def release_model(
  planned: PlannedRelease, folder: pathlib.Path
) -> tuple[methods.Released, NonPrivateEvaluation]:
  """Releases into `folder / "release"` and measures into `folder / "evaluation"`.

  The same call continues a release that was stopped.
  """
  method, plan, people = methods.get(planned.plan.method), planned.plan, planned.people
  if people.ledger is not None and not (folder / "work").exists():
    assert method.relation is not None
    people.ledger.require_affordable(planned.event, relation=method.relation)
  released = method.release(plan, people, folder=folder)
  found = evaluate(released, planned.test, plain=_plain(planned), key=jax.random.key(0))
  found.write(folder)
  if planned.figures is not None:
    buy_figures(planned.figures, released, planned.test, folder=folder, ledger=people.ledger)
  return released, found


def _plain(planned: PlannedRelease) -> np.ndarray:
  """[n] predictions of the same network, trained without privacy; kept nowhere."""
  baseline, network = methods.get("plain"), planned.plan.network
  settings: Any = baseline.settings(
    network=network.name, hidden=network.hidden, width=network.width
  )
  plan = baseline.plan(settings, planned.people.sizes, None)
  fitted = baseline.fit(plan, planned.people, key=jax.random.key(1))
  scaler = planned.people.scaler
  x = planned.test.x if scaler is None else scaler.apply(planned.test.x)
  return np.asarray(models.predict(plan.model, fitted.params, x))
