"""Train to a privacy budget by any method, and see what it costs every group."""

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import _fields, _schema, accounting, checks, data, methods, tree
from jaxfair import experiments as ex
from jaxfair.accounting import Budget
from jaxfair.data import Dataset
from jaxfair.experiments import Count, Positive, _study
from jaxfair.experiments._claims import Claim
from jaxfair.experiments._figures import Summary
from jaxfair.experiments._measures import EVERYONE, GAPS, GroupMeasures, paired_costs
from jaxfair.experiments._people import dataset_ledger
from jaxfair.experiments._population import Buy, Parted, Scaling, dry, load_public, part_people
from jaxfair.methods import Plan, _recipe
from jaxfair.methods._buying import PLACE, buy_once, seeded_bits
from jaxfair.methods._evaluation import evaluate
from jaxfair.studies.reasons import reasons_of, with_reasons
from jaxfair.types import Examples

PLAIN, RELEASED = "without privacy", "released model"
MethodName = Annotated[str, _fields.OneOf(tuple(methods.METHODS))]


class Config(ex.Settings):
  """Settings of a comparison of private and plain training.

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
    methods: names in `methods.METHODS`.
    epsilons: budgets.
    delta: delta of every budget; None takes the largest power of ten below a tenth of 1 / n.
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
  public_fraction: Annotated[float, _fields.Within(0.0, 0.9)] = 0.0
  public_csv: str | None = None
  scaling: Scaling = "auto"
  test_fraction: Annotated[float, _fields.Within(0.05, 0.9)] = 0.25
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
    checks.require(
      self.public_csv is None or not self.public_fraction,
      "public_csv and public_fraction are both set; public people are one or the other",
    )
    for name in self.settings:
      checks.one_of("settings", name, methods.METHODS)
    for name in ("plain", *self.methods, self.released_method):
      self.method_settings(name)
    checks.require(
      self.release_epsilon is None or methods.get(self.released_method).protects is not None,
      f"{self.released_method} is a baseline with no guarantee and cannot be released; choose a "
      "private method, such as dp_sgd",
    )

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

  def with_public(self, people: Dataset) -> tuple[Dataset | None, Dataset]:
    """People of the public file, if there is one, and the private ones encoded as they are."""
    if self.public_csv is None:
      return None, people
    return load_public(self.data, self.public_csv)

  def parted(
    self, people: Dataset, name: str, epsilon: float, *, key: jax.Array, buy: Buy | None = None
  ) -> tuple[Parted, Plan]:
    """People of a method, and what it will do to them at this budget.

    Args:
      people: all of them.
      name: name of the method.
      epsilon: epsilon of the budget.
      key: for the split.
      buy: how a scaler is bought; None for a study, with noise from the key.
    """
    method, (public, people) = methods.get(name), self.with_public(people)
    budget = None
    if method.protects is not None:
      budget = Budget(epsilon, self.delta or _recipe.default_delta(people.size))
      checks.require(
        budget.delta <= 1 / people.size,
        f"delta={budget.delta:g} lets a mechanism publish whole records of {people.size} people; "
        f"use at most {_recipe.default_delta(people.size):g}, or leave it out",
      )
    split_key, own_key = jax.random.split(key)
    parted = part_people(
      people,
      method,
      budget,
      fractions=self.fractions,
      public=public,
      scaling=self.scaling,
      buy=buy or (lambda plan, x: plan.buy(x, source=seeded_bits(own_key))),
      key=split_key,
    )
    settings = self.method_settings(name)
    return parted, method.plan(settings, parted.population.sizes, parted.budget)


def _precheck(config: Config, people: Dataset) -> None:
  """Every method can work with these people, and every budget can be met."""
  for cell in _cells(config):
    config.parted(
      people, cell["method"], cell.get("epsilon", math.inf), key=jax.random.key(0), buy=dry
    )


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


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
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
  measured, why = tree.stack(found)
  return with_reasons(
    ex.group_table(setting, measured, people.group_names), why, people.group_names
  )


def _trained(
  config: Config, people: Dataset, setting: dict[str, Any], seed: int, context: _study.Context
) -> tuple[GroupMeasures, dict[str, Any]]:
  logits, test, why = _logits(config, people, setting, seed, context)
  return ex.measure_groups(logits, test, people), why


def _logits(
  config: Config, people: Dataset, setting: dict[str, Any], seed: int, context: _study.Context
) -> tuple[jax.Array, Examples, dict[str, Any]]:
  """Of a model that is trained for the study, on its test people, and why groups pay."""
  parted, plan = config.parted(
    people, setting["method"], setting["epsilon"], key=_split_key(context, seed)
  )
  key = jax.random.fold_in(context.key, seed)
  fitted = methods.get(plan.method).fit(plan, parted.population, key=key)
  scaler, test = parted.population.scaler, parted.test
  scaled = jnp.asarray(test.x if scaler is None else scaler.apply(test.x))
  if plan.row_norm is not None:
    scaled = data.bound_rows(scaled, plan.row_norm)
  why = reasons_of(plan, fitted, parted.population, test._replace(x=scaled))
  return plan.model.apply(fitted.params, scaled), test, why


def _released(
  config: Config, people: Dataset, setting: dict[str, Any], seed: int, context: _study.Context
) -> tuple[GroupMeasures, dict[str, Any]]:
  """Releases one model into the run directory, and measures it.

  What may be published is in `release`, which appears complete or not at all.
  """
  book = dataset_ledger(config.data) if config.dataset_ledger and context.for_release else None
  key = None if context.for_release else context.key
  own = functools.partial(
    buy_once,
    folder=context.folder,
    budget=Budget(setting["epsilon"], config.delta or _recipe.default_delta(people.size)),
    name=people.name,
    ledger=book,
    key=None if key is None else jax.random.fold_in(key, 1),
  )
  parted, plan = config.parted(
    people, setting["method"], setting["epsilon"], key=_split_key(context, seed), buy=own
  )
  population = dataclasses.replace(parted.population, ledger=book, intended_use=config.intended_use)
  model = methods.get(plan.method).release(plan, population, folder=context.folder, key=key)
  context.say(f"release: {model.guarantee.guarantee}")
  told = "This model is not entered in the ledger of its data set."
  context.say(told if book is None else book.told(model.guarantee.guarantee.delta))
  if key is not None:
    context.say('this model was made with a fixed seed; seed = "os" releases')
  logits = jnp.log(jnp.asarray(model.scores(parted.test.x)))
  without = {"method": "plain", "epsilon": math.inf}
  plain = jnp.argmax(_logits(config, people, without, seed, context)[0], -1)
  evaluate(model, parted.test, plain=np.asarray(plain), key=jax.random.key(0)).write(context.folder)
  return ex.measure_groups(logits, parted.test, people), {}


def _split_key(context: _study.Context, seed: int) -> jax.Array:
  return jax.random.fold_in(context.shared_key, seed)


def _require_affordable(config: Config, people: Dataset, context: _study.Context) -> None:
  """Raises if the data set's budget does not cover the release.

  Before any cell is computed; a release that has begun is charged already.
  """
  begun = any((context.folder / name).exists() for name in ("work", PLACE))
  if config.release_epsilon is None or not config.dataset_ledger or begun:
    return
  parted, plan = config.parted(
    people, config.released_method, config.release_epsilon, key=_split_key(context, 0), buy=dry
  )
  if plan.event is not None and plan.guarantee is not None:
    spent = (plan.event,) if parted.spent is None else (parted.spent, plan.event)
    relation = plan.guarantee.guarantee.relation
    dataset_ledger(config.data).require_affordable(accounting.Composed(spent), relation=relation)


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
  elif config.public_csv:
    yield "The features were scaled by what is known of other people, who are public."
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
  keeps_files=True,
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
