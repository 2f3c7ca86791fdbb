"""Train to a privacy budget by any method, and see what it costs every group."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _schema, checks, data, methods, tree
from jaxfair import experiments as ex
from jaxfair.accounting import Budget
from jaxfair.experiments import Claim, Count, Positive, Summary
from jaxfair.experiments._measures import EVERYONE, GAPS, GroupMeasures, paired_costs
from jaxfair.experiments._people import dataset_ledger
from jaxfair.methods import Plan, Population, Sizes
from jaxfair.types import Examples

PLAIN, RELEASED = "without privacy", "released model"
MethodName = Annotated[str, ex.OneOf(tuple(methods.METHODS))]


class Config(ex.Settings):
  """Settings of a comparison of private and plain training.

  Attributes:
    data: the people.
    public_fraction: share of them who are taken to be public: the scaler is fitted on them, and
      methods that need public people ask about them. Fitted on the private part it would move
      everybody's features when one person changes, and no epsilon would hold.
    test_fraction: share of them who are held out to measure on.
    methods: names in `methods.METHODS`.
    epsilons: budgets.
    delta: of every budget; None takes the largest power of ten below a tenth of 1 / n.
    network: of all methods, and of the model without privacy.
    hidden: widths of its dense layers.
    settings: of single methods, by name; what is left out is chosen by the method's recipe.
    release_method: of the model that is released; the first of `methods` if None.
    release_epsilon: its budget; None releases nothing.
    seeds: repetitions, each with a split of its own.
    dataset_ledger: whether a release is charged to the ledger of its data set, too.
    intended_use: of the released model, in your words, for its card.
  """

  data: ex.People = ex.People()
  public_fraction: Annotated[float, ex.Within(0.0, 0.9)] = 0.05
  test_fraction: Annotated[float, ex.Within(0.05, 0.9)] = 0.25
  methods: ex.Sweep[MethodName] = ("dp_sgd",)
  epsilons: ex.Sweep[Positive] = (1.0,)
  delta: ex.Probability | None = None
  network: str = "logistic"
  hidden: tuple[Count, ...] = (64,)
  settings: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
  release_method: MethodName | None = None
  release_epsilon: Positive | None = None
  seeds: Count = 20
  dataset_ledger: bool = True
  intended_use: str = ""

  def check(self) -> None:
    """Somebody is left to train on, and every method knows its settings."""
    checks.positive(
      "1 - public_fraction - test_fraction", self.fractions[1], remedy="leave people to train on"
    )
    for name in self.settings:
      checks.one_of("settings", name, methods.METHODS)
    for name in ("plain", *self.methods, self.released_method):
      self.method_settings(name)

  @property
  def fractions(self) -> tuple[float, float, float]:
    """Public, training and test part."""
    rest = 1 - self.public_fraction - self.test_fraction
    return self.public_fraction, rest, self.test_fraction

  @property
  def released_method(self) -> str:
    """The method of the released model."""
    return self.release_method or self.methods[0]

  def method_settings(self, name: str) -> Any:
    """The settings of a method, checked."""
    own = {"network": self.network, "hidden": list(self.hidden), **self.settings.get(name, {})}
    return _schema.build(methods.get(name).settings, own, where=f"settings.{name}.")

  def planned(self, name: str, epsilon: float, sizes: Sizes) -> Plan:
    """What a method will do to these people at this budget."""
    method = methods.get(name)
    budget = None
    if method.protects is not None:
      budget = Budget(epsilon, self.delta or methods.default_delta(sizes.private))
    return method.plan(self.method_settings(name), sizes, budget)


def split_people(
  config: Config, people: data.Dataset, *, key: jax.Array
) -> tuple[Population, Examples, data.Scaler]:
  """Public and private people, scaled, and the test people as they are."""
  checks.require(
    people.unit is None or np.unique(people.unit).size == people.size,
    f"{people.name} has several rows of one person, and methods protect one row; keep one row of "
    "each person",
  )
  rows = data.split_rows(people.size, config.fractions, key=key)
  public, private, test = (people.examples.take(part) for part in rows)
  scaler = data.fit_scaler(public.x)
  population = Population(
    private=private._replace(x=scaler.apply(private.x)),
    public=public._replace(x=scaler.apply(public.x)),
    class_names=people.class_names,
    group_names=people.group_names,
    scaler=scaler,
    name=people.name,
    intended_use=config.intended_use,
  )
  return population, test, scaler


def _precheck(config: Config, people: data.Dataset) -> None:
  """Every method can work with these people, and every budget can be met."""
  population, _, _ = split_people(config, people, key=jax.random.key(0))
  for cell in _cells(config):
    config.planned(cell["method"], cell.get("epsilon", math.inf), population.sizes)


def _cells(config: Config) -> list[dict[str, Any]]:
  """The plain model, one cell per method and epsilon, and the model that is released."""
  listed: list[dict[str, Any]] = [{"training": PLAIN, "method": "plain"}]
  listed += [
    {"training": training_name(config, method, epsilon), "method": method, "epsilon": epsilon}
    for method in config.methods
    for epsilon in config.epsilons
  ]
  if config.release_epsilon is not None:
    own = {"training": RELEASED, "method": config.released_method}
    listed.append({**own, "epsilon": config.release_epsilon})
  return listed


def training_name(config: Config, method: str, epsilon: float) -> str:
  """What a training is called in tables; the method is named where there are several."""
  told = f"epsilon {epsilon:g}"
  return told if len(config.methods) == 1 else f"{method}, {told}"


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All seeds of one cell, each on a split of its own; the released model is on the first."""
  people = context.load(config.data)
  setting = {"data": people.name, "epsilon": np.inf, **cell}
  if context.for_release:
    _require_affordable(config, people, context)
  released = cell["training"] == RELEASED
  measure = _released if released else _trained
  found = [
    measure(config, people, setting, seed, context)
    for seed in range(1 if released else config.seeds)
  ]
  return ex.group_table(setting, tree.stack(found), people.group_names)


def _trained(
  config: Config, people: data.Dataset, setting: dict[str, Any], seed: int, context: ex.Context
) -> GroupMeasures:
  population, test, scaler = _split(config, people, seed, context)
  plan = config.planned(setting["method"], setting["epsilon"], population.sizes)
  key = jax.random.fold_in(context.key, seed)
  fitted = methods.get(plan.method).fit(plan, population, key=key)
  scaled = jnp.asarray(scaler.apply(test.x))
  if plan.row_norm is not None:
    scaled = data.bound_rows(scaled, plan.row_norm)
  return ex.measure_groups(plan.model.apply(fitted.params, scaled), test, people)


def _released(
  config: Config, people: data.Dataset, setting: dict[str, Any], seed: int, context: ex.Context
) -> GroupMeasures:
  """Releases one model into the run directory, and measures it.

  What may leave the house is in `release`, which appears complete or not at all.
  """
  population, test, _ = _split(config, people, seed, context)
  book = dataset_ledger(config.data) if config.dataset_ledger and context.for_release else None
  population = dataclasses.replace(population, ledger=book)
  plan = config.planned(setting["method"], setting["epsilon"], population.sizes)
  key = None if context.for_release else context.key
  model = methods.get(plan.method).release(plan, population, folder=context.folder, key=key)
  context.say(f"release: {model.guarantee.guarantee}")
  told = "This model is not entered in the ledger of its data set."
  context.say(told if book is None else book.told(model.guarantee.guarantee.delta))
  if key is not None:
    context.say('this model was made with a fixed seed; seed = "os" releases')
  logits = jnp.log(jnp.asarray(model.scores(test.x)))
  return ex.measure_groups(logits, test, people)


def _split(
  config: Config, people: data.Dataset, seed: int, context: ex.Context
) -> tuple[Population, Examples, data.Scaler]:
  return split_people(config, people, key=jax.random.fold_in(context.shared_key, seed))


def _require_affordable(config: Config, people: data.Dataset, context: ex.Context) -> None:
  """Refuses a release that the data set's budget does not pay for.

  Before any cell is computed; a release that has begun is charged already.
  """
  begun = (context.folder / "work").exists()
  if config.release_epsilon is None or not config.dataset_ledger or begun:
    return
  population, _, _ = _split(config, people, 0, context)
  plan = config.planned(config.released_method, config.release_epsilon, population.sizes)
  if plan.event is not None and plan.guarantee is not None:
    relation = plan.guarantee.guarantee.relation
    dataset_ledger(config.data).require_affordable(plan.event, relation=relation)


def _notes(config: Config) -> Iterator[str]:
  if config.delta is None:
    yield "Delta is the largest power of ten that is at most a tenth of 1 / n."
  else:
    yield f"Every epsilon is at delta {config.delta:g}."
  for name in config.methods:
    method = methods.get(name)
    if method.relation is not None:
      yield (
        f"{name} protects a person's {method.protects}; neighbors: {method.relation.value}. "
        "Epsilon covers the model's parameters."
      )
  if config.public_fraction:
    yield (
      f"The features were scaled by what is known of {100 * config.public_fraction:g}% of the "
      "people, who are taken to be public."
    )
  yield (
    "The figures on this page are measured on held-out people without noise: they are for those "
    "who hold the data, not for release."
  )


STUDY = ex.Study(
  name="train",
  summary="Private training by any method beside plain training, group by group",
  config=Config,
  cells=_cells,
  run=run,
  precheck=_precheck,
  derive=lambda table: paired_costs(table, "training", PLAIN),
  notes=lambda config: tuple(_notes(config)),
  plain={"training": PLAIN},
  summaries=(
    ex.summary(
      "By group",
      "accuracy, balanced_accuracy, accuracy_cost, loss, loss_cost, selection_rate "
      "~ training, group",
    ),
    Summary("Gaps between groups", ("training",), GAPS, {"group": EVERYONE}),
  ),
  claims=(
    Claim(
      "privacy costs accuracy",
      "Private training is less accurate than plain training",
      (ex.mean("accuracy_cost") > 0).at(group=EVERYONE),
    ),
    Claim(
      "who pays",
      "One group loses more accuracy to privacy than another",
      (ex.spread("accuracy_cost", "group") > 0).at(group=ex.but(EVERYONE)),
    ),
  ),
  figures=(
    ex.bars(
      "accuracy: Accuracy by group",
      "accuracy ~ group, training",
      "Share of correct predictions on held-out people.",
    ),
    ex.bars(
      "cost: Who pays for privacy",
      "accuracy_cost ~ group, training",
      "Accuracy without privacy minus accuracy with it, on the same split; above 0 the group pays.",
      y_title="accuracy lost to privacy",
      zero=True,
    ),
  ),
)
