"""Who pays for privacy: methods of the registry beside plain training, group by group.

One of the models may be released.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, _schema, checks, methods, tree
from jaxfair import experiments as ex
from jaxfair.data import Dataset
from jaxfair.experiments import _releases, _study
from jaxfair.experiments._config import plain
from jaxfair.experiments._measures import EVERYONE, GAPS, GroupMeasures, paired_costs
from jaxfair.experiments._population import Buy, Parted, Scaling, dry
from jaxfair.methods import Plan
from jaxfair.methods._buying import seeded_bits
from jaxfair.studies.reasons import REASONS, reasons_of, with_reasons
from jaxfair.types import Examples

PLAIN, MAJORITY, RELEASED = "plain", "majority_class", "released model"
PRIVATE = tuple(name for name, method in methods.METHODS.items() if method.protects)
MethodName = Annotated[str, _fields.OneOf(tuple(methods.METHODS))]


class Config(ex.Settings):
  """Settings of a comparison of methods.

  Attributes:
    data: the people.
    public_fraction: share of them who are taken to be public: the scaler is fitted on them, and
      methods that need public people ask about them.
    public_csv: a file of public people with the same columns, in place of a share.
    scaling: where means and ranges of the features come from. Fitted on the private part they
      would move everybody's features when one person changes, and no epsilon would hold. "public"
      people, "declared" ranges, or "private": what is not declared is bought from the budget.
      "auto" takes public people if there are any, else "private".
    test_fraction: share of them who are held out to measure on.
    methods: names in the registry; the plain model and the majority class come along.
    epsilons: budgets of every method.
    delta: delta of every budget; None takes the largest power of ten below a tenth of 1 / n.
    network: of all methods, and of the model without privacy.
    hidden: widths of its dense layers.
    settings: of single methods, by name; what is left out is chosen by the method's recipe.
    release_method: of the model that is released; the first of `methods` if None.
    release_epsilon: its budget; None releases nothing.
    seeds: splits of the people, each with noise of its own.
    dataset_ledger: whether a release is charged to the ledger of its data set, too.
    intended_use: of the released model, in your words, for its card.
  """

  data: ex.People = ex.People()
  public_fraction: Annotated[float, _fields.Within(0.0, 0.9)] = 0.0
  public_csv: str | None = None
  scaling: Scaling = "auto"
  test_fraction: Annotated[float, _fields.Within(0.05, 0.9)] = 0.25
  methods: ex.Sweep[MethodName] = ("dp_sgd",)
  epsilons: ex.Sweep[ex.Positive] = (1.0,)
  delta: ex.Probability | None = None
  network: str = "logistic"
  hidden: tuple[ex.Count, ...] = (64,)
  settings: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
  release_method: MethodName | None = None
  release_epsilon: ex.Positive | None = None
  seeds: ex.Count = 20
  dataset_ledger: bool = True
  intended_use: str = ""

  def check(self) -> None:
    """Somebody is left to train on, and every method knows its settings."""
    checks.positive(
      "1 - public_fraction - test_fraction", self.fractions[1], remedy="leave people to train on"
    )
    for name in (*self.methods, self.released_method):
      checks.require(
        name in PRIVATE,
        f"{name} is a baseline with no guarantee, and cannot be released; choose a private "
        "method, such as dp_sgd",
      )
    for name in self.settings:
      checks.one_of("settings", name, (*PRIVATE, PLAIN))
    for name in (PLAIN, *self.methods, self.released_method):
      self.method_settings(name)
    self.priced(self.released_method, 1.0)

  @property
  def fractions(self) -> tuple[float, float, float]:
    """Public, private and test part."""
    rest = 1 - self.public_fraction - self.test_fraction
    return self.public_fraction, rest, self.test_fraction

  @property
  def released_method(self) -> str:
    """The method of the released model."""
    return self.release_method or self.methods[0]

  @property
  def scaled_by_share(self) -> bool:
    """Whether the features of all methods are scaled by the public share of the people."""
    return self.public_fraction > 0 and self.scaling in ("auto", "public")

  def method_settings(self, name: str) -> Any:
    """The settings of a method, checked."""
    own = {"network": self.network, "hidden": list(self.hidden), **self.settings.get(name, {})}
    return _schema.build(methods.get(name).settings, own, where=f"settings.{name}.")

  def priced(self, name: str, epsilon: float, *, ledger: bool = False) -> _releases.ReleaseConfig:
    """The release of a private method at this budget."""
    return _releases.ReleaseConfig(
      epsilon=epsilon,
      method=name,
      delta=self.delta,
      settings=plain(self.method_settings(name)),
      data=self.data,
      public=self.public_fraction,
      public_csv=self.public_csv,
      scaling=self.scaling,
      test=self.test_fraction,
      intended_use=self.intended_use,
      dataset_ledger=ledger,
    )

  def parted(
    self, people: Dataset, name: str, epsilon: float, *, key: jax.Array, buy: Buy = dry
  ) -> tuple[Parted, Plan]:
    """People of a method, scaled as its guarantee allows, and what it will do to them."""
    own = self.priced(name, epsilon) if name in PRIVATE else self.priced(self.methods[0], 1.0)
    parted = own.parted(people, name, buy=buy, key=key)
    settings, sizes = self.method_settings(name), parted.population.sizes
    return parted, methods.get(name).plan(settings, sizes, parted.budget)


def _precheck(config: Config, people: Dataset) -> None:
  """Every method can work with these people, and every budget can be met."""
  pairs = [*itertools.product(config.methods, config.epsilons)]
  if config.release_epsilon is not None:
    pairs.append((config.released_method, config.release_epsilon))
  for name, epsilon in pairs:
    config.parted(people, name, epsilon, key=jax.random.key(0))


def _cells(config: Config) -> list[_study.Cell]:
  """The baselines, one cell per method and epsilon, and the model that is released."""
  listed: list[_study.Cell] = [
    {"method": MAJORITY, "epsilon": 0.0},
    {"method": PLAIN, "epsilon": math.inf},
  ]
  pairs = itertools.product(config.methods, config.epsilons)
  listed += [{"method": method, "epsilon": epsilon} for method, epsilon in pairs]
  if config.release_epsilon is not None:
    listed.append({"method": RELEASED, "epsilon": config.release_epsilon})
  return listed


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one method at one budget; the released model is on the split of the first."""
  people = context.load(config.data)
  if config.release_epsilon is not None and context.for_release:
    _planned(config, context).require_affordable(context.folder)  # before any cell is computed
  if cell["method"] == RELEASED:
    measured, why = tree.stack([(_released(config, people, context), {})])
  else:
    measured, why = _repeated(config, people, cell, context)
  table = ex.group_table({"data": people.name, **cell}, measured, people.group_names)
  return with_reasons(table, why, people.group_names)


def _repeated(
  config: Config, people: Dataset, cell: _study.Cell, context: _study.Context
) -> tuple[GroupMeasures, dict[str, Any]]:
  """Train, predict, measure on every split; one program where scaler and method allow it."""
  name, epsilon = str(cell["method"]), float(cell["epsilon"])
  method, settings = methods.get(name), config.method_settings(name)

  def measure(
    plan: Plan, own: methods.Population, test: Examples, key: jax.Array
  ) -> tuple[GroupMeasures, dict[str, Any]]:
    fitted = method.fit(plan, own, key=key)
    test = plan.bounded(dataclasses.replace(own, private=test)).private
    measured = ex.measure_groups(plan.model.apply(fitted.params, test.x), test, people)
    return measured, {} if name == MAJORITY else reasons_of(plan, fitted, own, test)

  def on_parts(parts: _study.Parts, key: jax.Array) -> Any:
    public, private, test = parts
    own = methods.Population(private, people.class_names, people.group_names, public=public)
    budget = config.priced(name, epsilon).budget(people) if name in PRIVATE else None
    return measure(method.plan(settings, own.sizes, budget), own, test, key)

  def on_split(seed: int) -> Any:
    key_fit, key_buy = jax.random.split(jax.random.fold_in(context.key, seed))
    parted, plan = config.parted(
      people,
      name,
      epsilon,
      key=jax.random.fold_in(context.shared_key, seed),
      buy=lambda plan, x: plan.buy(x, source=seeded_bits(key_buy)),
    )
    scaler, test = parted.population.scaler, parted.test
    x = jnp.asarray(test.x if scaler is None else scaler.apply(test.x))
    return measure(plan, parted.population, test._replace(x=x), key_fit)

  if not config.scaled_by_share:
    return tree.stack([on_split(seed) for seed in range(config.seeds)])
  if not method.traceable:  # teachers get their parts and are trained from the host
    split = ex.splits(people, config.fractions, config.seeds, context)
    return tree.stack([on_parts(parts, key) for parts, key in split])
  found: tuple[GroupMeasures, dict[str, Any]] = ex.repeat(
    on_parts,
    people,
    seeds=config.seeds,
    key=context.key,
    split_key=context.shared_key,
    fractions=config.fractions,
  )
  return found


def _planned(config: Config, context: _study.Context) -> _releases.PlannedRelease:
  assert config.release_epsilon is not None
  ledger = config.dataset_ledger and context.for_release
  own = config.priced(config.released_method, config.release_epsilon, ledger=ledger)
  return _releases.plan_release(own, key=jax.random.fold_in(context.shared_key, 0))


def _released(config: Config, people: Dataset, context: _study.Context) -> GroupMeasures:
  """Releases one model into the run directory, and measures it."""
  planned, key = _planned(config, context), None if context.for_release else context.key
  model, _, test = _releases.release_model(planned, context.folder, key=key)
  context.say(f"release: {model.guarantee.guarantee}")
  told = "This model is not entered in the ledger of its data set."
  context.say(told if planned.ledger is None else planned.ledger.told(planned.delta))
  if key is not None:
    context.say('this model was made with a fixed seed; seed = "os" releases')
  return ex.measure_groups(jnp.log(jnp.asarray(model.scores(test.x))), test, people)


def _derive(table: ex.Table) -> ex.Table:
  found = paired_costs(table, "method", PLAIN, without=(MAJORITY,))
  return found.plus(**{name: np.full(len(found), np.nan) for name in REASONS if name not in found})


def _notes(config: Config) -> Iterator[str]:
  rule = "Delta is the largest power of ten that is at most a tenth of 1 / n."
  yield rule if config.delta is None else f"Every epsilon is at delta {config.delta:g}."
  for name in config.methods:
    method = methods.get(name)
    if method.relation is not None:
      yield (
        f"{name} protects a person's {method.protects}; neighbors: {method.relation.value}. "
        "Epsilon covers the model's parameters."
      )
  if config.public_fraction or config.public_csv:
    share = f"{100 * config.public_fraction:g}% of the people, who are taken to be public"
    whom = "other people, who are public" if config.public_csv else share
    yield f"The features were scaled by what is known of {whom}."
  yield (
    "The figures on this page are measured on held-out people without noise: they are for those "
    "who hold the data, not for release."
  )
  yield f"Intervals are over {config.seeds} splits of the people, each with its own noise."


ALL, AT_METHODS = {"group": EVERYONE}, {"method": PRIVATE}
LEAST = AT_METHODS | {"epsilon": min}
BY = "method, epsilon, group"

STUDY = ex.Study(
  name="methods",
  summary="Who pays for privacy? Private methods beside the plain model, group by group",
  config=Config,
  cells=_cells,
  run=run,
  keeps_files=lambda config: config.release_epsilon is not None,
  precheck=_precheck,
  derive=_derive,
  notes=lambda config: tuple(_notes(config)),
  plain={"method": PLAIN},
  summaries=(
    ex.summary("Who pays", f"accuracy_cost, accuracy ~ {BY}"),
    ex.summary("Gaps between groups", f"accuracy, {', '.join(GAPS)} ~ method, epsilon", ALL),
    ex.summary("Why", f"{', '.join(REASONS)} ~ {BY}", AT_METHODS),
  ),
  claims={
    "privacy costs accuracy: At the smallest budget private models are less accurate than the "
    "plain one": (ex.mean("accuracy_cost") > 0).at(**LEAST, **ALL),
    "who pays: At the smallest budget one group loses more accuracy to privacy than another": (
      ex.spread("accuracy_cost", "group") > 0
    ).at(**LEAST, group=ex.but(EVERYONE)),
    "selection gap: The plain model gives the positive label to the groups at rates over five "
    "points apart": (ex.mean("demographic_parity_difference") > 0.05).at(**ALL, method=PLAIN),
  },
  figures=(
    ex.bars(
      "cost: Who pays for privacy",
      "accuracy_cost ~ group, epsilon | method",
      "Accuracy of the plain model minus that of the private one, on the same people; above 0 the "
      "group pays. Bars are means over splits with 95% intervals.",
      where=AT_METHODS,
      zero=True,
    ),
    ex.lines(
      "accuracy: Accuracy of every method",
      "accuracy ~ epsilon, method | group",
      "Share of correct predictions on held-out people; bands are 95% intervals.",
      where=AT_METHODS,
      log="x",
    ),
    ex.lines(
      "gap: Gap between groups in who is given the positive class",
      "demographic_parity_difference ~ epsilon, method",
      "Largest difference between groups in the share that is given the positive class.",
      where=ALL | AT_METHODS,
      log="x",
    ),
  ),
)
