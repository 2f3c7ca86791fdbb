"""The `[release]` table of a config: from people and a budget to a released model.

    [release]
    method = "fairpate"
    epsilon = 2.0
    public = 0.2
    settings = {max_gap = 0.05, queries = 1000}
    data = {name = "adult", group = "sex"}

One path for every method: planned and priced first, then charged to the ledger of the
data set, computed with randomness of the operating system, written down, measured.
"""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxfair import accounting, checks, methods, models
from jaxfair.accounting import _units
from jaxfair.experiments import _config as configs
from jaxfair.experiments._config import ConfigError
from jaxfair.experiments._folders import RunError
from jaxfair.experiments._frontiers import read_frontier
from jaxfair.experiments._people import dataset_ledger, load_people, set_name
from jaxfair.experiments._population import Buy, Parted
from jaxfair.experiments._reading import read_plan
from jaxfair.experiments._release_config import Anybody, ReleaseConfig
from jaxfair.experiments._stored_people import open_stored
from jaxfair.methods._buying import PLACE, buy_once
from jaxfair.methods._evaluation import NonPrivateEvaluation, evaluate
from jaxfair.methods._method import SCALING
from jaxfair.methods._noisy_figures import FiguresPlan, buy_figures, plan_figures
from jaxfair.methods._preprocessing import PreprocessingPlan
from jaxfair.methods._releasing import WORK
from jaxfair.training import _hosts
from jaxfair.types import Examples

TABLE = "release"


@dataclasses.dataclass(frozen=True)
class PlannedRelease:
  """A release that is priced but not computed.

  Attributes:
    config: what was asked for.
    dataset: all people.
    parted: who of them is public, protected and test; scaled by nothing where scaling is bought.
    plan: of the method.
    ledger: of the data set; None if it is not charged.
    notes: what the reader must be told about the people.
    key: splits the people; None for the seed of the config.
  """

  config: ReleaseConfig
  dataset: Anybody
  parted: Parted
  plan: methods.Plan
  ledger: accounting.DatasetLedger | None
  notes: tuple[str, ...]
  key: jax.Array | None = None

  @property
  def relation(self) -> accounting.Relation:
    """Which data sets count as neighbors."""
    assert self.plan.guarantee is not None
    return self.plan.guarantee.guarantee.relation

  @property
  def delta(self) -> float:
    """Of the whole budget."""
    return self.config.budget(self.dataset).delta

  @property
  def figures(self) -> FiguresPlan | None:
    """The price of figures that may be published, if they were asked for."""
    epsilon = self.config.figures_epsilon
    if epsilon is None:
      return None
    return plan_figures(epsilon=epsilon, delta=self.delta, relation=self.relation)

  @property
  def _figures_event(self) -> accounting.Event | None:
    return None if self.figures is None else self.figures.event

  @property
  def event(self) -> accounting.Event:
    """Everything that is charged."""
    parts = (self.parted.spent, self.plan.event, self._figures_event)
    return accounting.Composed(tuple(part for part in parts if part is not None))

  def require_affordable(self, folder: pathlib.Path) -> None:
    """Raises if the data set's budget does not cover the release.

    A release that has begun in this folder is charged already.
    """
    if self.ledger is not None and not _has_begun(folder):
      self.ledger.require_affordable(self.event, relation=self.relation)

  def priced(self, folder: pathlib.Path) -> list[str]:
    """Sentences on what will be done, and what it costs this data set.

    Args:
      folder: of the release, which may have begun there.
    """
    plan, people = self.plan, self.parted.population
    assert plan.guarantee is not None
    told = [
      *self.notes,
      f"{people.name}: {plan.sizes.private:,} people are protected, {plan.sizes.public:,} are "
      f"public, {len(self.parted.test.y):,} measure the model.",
      *plan.says,
    ]
    for what, event in (
      ("Means and ranges of the features", self.parted.spent),
      ("Figures of test people", self._figures_event),
    ):
      if event is not None:
        told.append(f"{what} are bought: {self._cost([event])}.")
    # How the features are prepared is known better than that it is taken to be public.
    known = bool(people.assumed_public) or self.parted.spent is not None
    said = str(plan.guarantee).splitlines()[1:]
    told += [line for line in said if not (known and line.endswith(SCALING))]
    told += [f"NOT protected: {what}" for what in people.assumed_public]
    if self.ledger is None:
      return [*told, "Not charged to the ledger of the data set: dataset_ledger is false."]
    told.append(self.ledger.told(self.delta))
    if _has_begun(folder):
      return [*told, "This release has begun and is among them."]
    entries = [
      entry.event
      for spent in self.ledger.spent(self.delta)
      if spent.guarantee.relation is self.relation
      for entry in accounting.Ledger.read(spent.path)
    ]
    return [*told, f"With this release: {self._cost([*entries, self.event])}."]

  def _cost(self, events: list[accounting.Event]) -> str:
    try:
      return str(accounting.composed_guarantee(events, delta=self.delta, relation=self.relation))
    except _units.NotCovered:
      return f"no bound at delta {self.delta:g} for all of them together"


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
  data = overrides.get("data", {}).get("name")
  found = read_frontier(folder, data=data)
  checks.integer("point", number, low=0, high=len(found.settings) - 1)
  setting = {**found.settings[number], "method": found.methods[number], "data": data}
  table = made.study.release(made.settings, setting)
  if table is None:
    raise RunError(f"{folder}: {found.methods[number]} has no release; choose another point")
  configs.merge(table, overrides)
  return configs.build(ReleaseConfig, table, where=f"{folder}: {TABLE}.")


def plan_release(config: ReleaseConfig, *, key: jax.Array | None = None) -> PlannedRelease:
  """Loads the people and prices the release; computes nothing, charges nothing.

  Args:
    config: what is released.
    key: splits the people, in place of the seed of the config.
  """
  dataset: Anybody
  if config.data.source is not None:
    dataset, note = open_stored(config.data.source, set_name(config.data)), ""
  else:
    dataset, note = load_people(config.data)
  parted = config.parted(dataset, config.method, key=key)
  plan = config.plan(parted)
  # What a release would refuse is refused here: scaling is bought before the method is called.
  methods.get(config.method).check_people(plan, parted.population)
  config.mesh(plan)
  # Of several processes the first one charges.
  charged = config.dataset_ledger and _hosts.is_first()
  ledger = dataset_ledger(config.data) if charged else None
  notes = (note,) if note else ()
  return PlannedRelease(config, dataset, parted, plan, ledger, notes, key)


def release_model(
  planned: PlannedRelease, folder: pathlib.Path, *, key: jax.Array | None = None
) -> tuple[methods.Released, NonPrivateEvaluation | None, Examples]:
  """Releases into `folder / "release"` and measures into `folder / "evaluation"`.

  The same call continues a release that was stopped.

  Args:
    planned: from `plan_release`.
    folder: where.
    key: makes the release reproducible, and therefore not for release.

  Returns:
    The model, its evaluation, and the test people with features as the model takes them. Of
    several processes, which all make the same call, the first one evaluates.
  """
  config, ledger, dataset = planned.config, planned.ledger, planned.dataset
  mesh = config.mesh(planned.plan)  # which may be refused, before anything is bought
  _hosts.from_first(lambda: planned.require_affordable(folder))
  held: list[methods.Preprocessing] = []  # bought once, for the model and its baseline

  def buy(plan: PreprocessingPlan, people: Any) -> methods.Preprocessing:
    own = None if key is None else jax.random.fold_in(key, 1)
    if not held:
      budget, name = config.budget(dataset), dataset.name
      made = buy_once(plan, people, folder=folder, budget=budget, name=name, ledger=ledger, key=own)
      held.append(made)
    return held[0]

  parted = config.parted(dataset, config.method, buy=buy, key=planned.key)
  plan = config.plan(parted)
  people = dataclasses.replace(
    parted.population, ledger=ledger, intended_use=config.intended_use, mesh=mesh
  )
  released = methods.get(plan.method).release(plan, people, folder=folder, key=key)
  if not _hosts.is_first():
    return released, None, parted.test
  found = evaluate(
    released, parted.test, plain=_plain(planned, buy), work=folder / WORK, key=jax.random.key(0)
  )
  found.write(folder)
  if planned.figures is not None:
    buy_figures(planned.figures, released, parted.test, folder=folder, ledger=ledger)
  return released, found, parted.test


def _has_begun(folder: pathlib.Path) -> bool:
  """Whether a release in this folder is charged already."""
  return any((folder / name).exists() for name in (WORK, PLACE))


def _plain(planned: PlannedRelease, buy: Buy) -> np.ndarray:
  """[n] predictions of the same network, trained without privacy; they are not stored."""
  baseline, network = methods.get("plain"), planned.plan.network
  settings: Any = baseline.settings(
    network=network.name, hidden=network.hidden, width=network.width
  )
  parted = planned.config.parted(planned.dataset, baseline.name, buy=buy, key=planned.key)
  plan = baseline.plan(settings, parted.population.sizes, None)
  fitted = baseline.fit(plan, parted.population, key=jax.random.key(1))
  scaler, x = parted.population.scaler, parted.test.x
  return np.asarray(models.predict(plan.model, fitted.params, scaler.apply(x) if scaler else x))
