"""Who pays for privacy: methods of the registry beside the plain model, group by group."""

import dataclasses
from typing import Annotated, Any

import jax
import numpy as np

from jaxfair import _fields, accounting, checks, data, methods, tree
from jaxfair import experiments as ex
from jaxfair.experiments import Count, Positive, _claims, _figures, _study
from jaxfair.experiments import _config as configs
from jaxfair.experiments._measures import EVERYONE, GAPS, GroupMeasures, paired_costs
from jaxfair.experiments._study import Parts
from jaxfair.methods import _method
from jaxfair.studies.reasons import REASONS, reasons_of, with_reasons

PLAIN, MAJORITY = "plain", "majority_class"
PRIVATE = tuple(name for name, method in methods.METHODS.items() if method.protects)


class Config(ex.Settings):
  """Settings of a comparison of methods.

  Attributes:
    data: the people.
    methods: names in the registry; the plain model and the majority class come along.
    epsilons: budgets of every method.
    delta: delta of every budget.
    settings: by method, what differs from the method's defaults.
    seeds: splits of the people, each with noise of its own.
    public_fraction: of the people, who are taken to be public: features are scaled by them, and
      teachers are asked about them.
    test_fraction: of the people, on whom models are measured.
  """

  data: ex.People = ex.People()
  methods: ex.Sweep[Annotated[str, _fields.OneOf(PRIVATE)]] = ("dp_sgd", "fair_dp_sgd", "pate")
  epsilons: ex.Sweep[Positive] = (0.5, 1.0, 4.0)
  delta: ex.Probability = 1e-5
  settings: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
  seeds: Count = 20
  public_fraction: Annotated[float, _fields.Within(0.01, 0.9)] = 0.15
  test_fraction: Annotated[float, _fields.Within(0.05, 0.9)] = 0.25

  def check(self) -> None:
    """Somebody is left to train on, and every method's settings are possible."""
    checks.positive(
      "1 - public_fraction - test_fraction", self.fractions[1], remedy="leave people to train on"
    )
    for name in self.settings:
      checks.one_of("settings", name, (*PRIVATE, PLAIN))
      self.settings_of(name)

  @property
  def fractions(self) -> tuple[float, float, float]:
    """Public, private and test part."""
    rest = 1 - self.public_fraction - self.test_fraction
    return self.public_fraction, rest, self.test_fraction

  def settings_of(self, method: str) -> Any:
    """The method's own settings."""
    own = self.settings.get(method, {})
    return configs.build(methods.get(method).settings, own, where=f"settings.{method}: ")

  def budget(self, method: str, epsilon: float) -> accounting.Budget | None:
    """What a method may spend; nothing for baselines."""
    return accounting.Budget(epsilon, self.delta) if method in PRIVATE else None


def _precheck(config: Config, people: data.Dataset) -> None:
  """Every method can be planned for these people."""
  sizes = _method.Sizes(
    private=int(config.fractions[1] * people.size),
    public=int(config.fractions[0] * people.size),
    shape=people.examples.x.shape[1:],
    classes=people.num_classes,
    groups=people.num_groups,
  )
  for name in config.methods:
    for epsilon in config.epsilons:
      methods.get(name).plan(config.settings_of(name), sizes, config.budget(name, epsilon))


def _cells(config: Config) -> list[_study.Cell]:
  listed: list[_study.Cell] = [
    {"method": MAJORITY, "epsilon": 0.0},
    {"method": PLAIN, "epsilon": float("inf")},
  ]
  return listed + [{"method": m, "epsilon": e} for m in config.methods for e in config.epsilons]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one method at one budget: train, predict, measure."""
  people = context.load(config.data)
  method = methods.get(str(cell["method"]))
  settings = config.settings_of(method.name)
  budget = config.budget(method.name, float(cell["epsilon"]))

  def measure(parts: Parts, key: jax.Array) -> tuple[GroupMeasures, dict[str, Any]]:
    public, private, test = parts
    own = methods.Population(private, people.class_names, people.group_names, public=public)
    plan = method.plan(settings, own.sizes, budget)
    fitted = method.fit(plan, own, key=key)
    test = plan.bounded(dataclasses.replace(own, private=test)).private
    measured = ex.measure_groups(plan.model.apply(fitted.params, test.x), test, people)
    return measured, {} if method.name == MAJORITY else reasons_of(plan, fitted, own, test)

  if method.traceable:
    measured, why = ex.repeat(
      measure,
      people,
      seeds=config.seeds,
      key=context.key,
      split_key=context.shared_key,
      fractions=config.fractions,
    )
  else:  # teachers get their parts and are trained from the host
    split = ex.splits(people, config.fractions, config.seeds, context)
    measured, why = tree.stack([measure(parts, key) for parts, key in split])
  setting = {"data": people.name, **cell}
  table = ex.group_table(setting, measured, people.group_names)
  return with_reasons(table, why, people.group_names)


def _derive(table: ex.Table) -> ex.Table:
  found = paired_costs(table, "method", PLAIN, without=(MAJORITY,))
  everybody = {name: np.full(len(found), np.nan) for name in REASONS if name not in found}
  return found.plus(**everybody)


def _notes(config: Config) -> list[str]:
  return [
    f"Every epsilon is at delta {config.delta:g} and covers a model's parameters. DP-SGD and "
    "FairDP-SGD protect one person who is added or removed, PATE one who is replaced by another; "
    f"{100 * config.public_fraction:g}% of the people are taken to be public.",
    "The figures on this page are measured on held-out people without noise: they are for those "
    "who hold the data, not for release.",
    f"Intervals are over {config.seeds} splits of the people, each with its own noise.",
  ]


ALL = {"group": EVERYONE}
AT_METHODS = {"method": PRIVATE}

STUDY = ex.Study(
  name="quickstart",
  summary="Who pays for privacy? Private methods beside the plain model, group by group",
  config=Config,
  cells=_cells,
  run=run,
  precheck=_precheck,
  derive=_derive,
  notes=_notes,
  plain={"method": PLAIN},
  summaries=(
    _figures.Summary("Who pays", ("method", "epsilon", "group"), ("accuracy_cost", "accuracy")),
    _figures.Summary("Gaps between groups", ("method", "epsilon"), ("accuracy", *GAPS), ALL),
    _figures.Summary("Why", ("method", "epsilon", "group"), tuple(REASONS), AT_METHODS),
  ),
  claims=(
    _claims.Claim(
      "privacy costs accuracy",
      "At the smallest budget private models are less accurate than the plain one",
      (ex.mean("accuracy_cost") > 0).at(**AT_METHODS, **ALL, epsilon=min),
    ),
    _claims.Claim(
      "who pays",
      "At the smallest budget one group loses more accuracy to privacy than another",
      (ex.spread("accuracy_cost", "group") > 0).at(
        **AT_METHODS, group=ex.but(EVERYONE), epsilon=min
      ),
    ),
    _claims.Claim(
      "selection gap",
      "The plain model gives the positive label to the groups at rates over five points apart",
      (ex.mean("demographic_parity_difference") > 0.05).at(**ALL, method=PLAIN),
    ),
  ),
  figures=(
    _figures.Figure(
      "cost",
      "Who pays for privacy",
      x="group",
      y="accuracy_cost",
      color="epsilon",
      facet="method",
      where=AT_METHODS,
      caption="Accuracy of the plain model minus that of the private one, on the same people; "
      "above 0 the group pays. Bars are means over splits with 95% intervals.",
      reference=0.0,
    ),
    _figures.Figure(
      "accuracy",
      "Accuracy of every method",
      x="epsilon",
      y="accuracy",
      mark="line",
      color="method",
      facet="group",
      log_x=True,
      where=AT_METHODS,
      caption="Share of correct predictions on held-out people; bands are 95% intervals.",
    ),
    _figures.Figure(
      "gap",
      "Gap between groups in who is given the positive class",
      x="epsilon",
      y="demographic_parity_difference",
      mark="line",
      color="method",
      log_x=True,
      where={**ALL, **AT_METHODS},
      caption="Largest difference between groups in the share that is given the positive class.",
    ),
  ),
)
