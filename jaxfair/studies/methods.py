"""Who pays for privacy: methods of the registry beside plain training, group by group.

One of the models may be released.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, fairness, methods, tree
from jaxfair import experiments as ex
from jaxfair.data import Dataset
from jaxfair.experiments import _releases, _study
from jaxfair.experiments._config import plain
from jaxfair.experiments._measures import EVERYONE, GAPS, GroupMeasures, paired_costs
from jaxfair.fairness._counter import REFUSED
from jaxfair.fairness._counter_sequence import admit_in_order
from jaxfair.methods import Plan
from jaxfair.methods._buying import seeded_bits
from jaxfair.methods._sanitized import NonPrivateEpsilons
from jaxfair.methods._teachers import NonPrivateVotes
from jaxfair.methods._vote_epsilons import vote_epsilons
from jaxfair.studies.method_settings import MAJORITY, PLAIN, PRIVATE, RELEASED, SWEPT, Config
from jaxfair.studies.reasons import REASONS, reasons_of, with_reasons
from jaxfair.types import Examples

EPSILONS = tuple(f"epsilon_{name}" for name in NonPrivateEpsilons._fields)


def _precheck(config: Config, people: Dataset) -> None:
  """Every method can work with these people, and every budget can be met."""
  checks.require(
    EVERYONE not in people.group_names,
    f"a group of {people.name} is named {EVERYONE!r}, as are the rows about all people; compare "
    "groups of a column (--group, data.group), or rename the group",
  )
  pairs = [*itertools.product(config.methods, config.epsilons)]
  if config.release_epsilon is not None:
    pairs.append((config.released_method, config.release_epsilon))
  for name, epsilon in pairs:
    for variant in config.variants(name):
      config.parted(people, name, epsilon, variant, key=jax.random.key(0))


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
  at = {"data": people.name, **cell}
  if cell["method"] == RELEASED:
    measured, why = tree.stack([(_released(config, people, context), {})])
    return with_reasons(ex.group_table(at, measured, people.group_names), why, people.group_names)
  swept = {name: math.nan for name, key in SWEPT.items() if getattr(config, key)}
  tables = []
  for variant in config.variants(str(cell["method"])):
    measured, why = _repeated(config, people, cell, context, variant)
    table = ex.group_table({**at, **swept, **variant}, measured, people.group_names)
    tables.append(with_reasons(table, why, people.group_names))
  return ex.Table.concat(tables)


def _repeated(
  config: Config,
  people: Dataset,
  cell: _study.Cell,
  context: _study.Context,
  variant: Mapping[str, float],
) -> tuple[GroupMeasures, dict[str, Any]]:
  """Train, predict, measure on every split; one program where scaler and method allow it."""
  name, epsilon = str(cell["method"]), float(cell["epsilon"])
  method, settings = methods.get(name), config.method_settings(name, variant)

  def measure(
    plan: Plan, own: methods.Population, test: Examples, key: jax.Array
  ) -> tuple[GroupMeasures, dict[str, Any]]:
    fitted = method.fit(plan, own, key=key)
    test = plan.bounded(dataclasses.replace(own, private=test)).private
    logits = plan.model.apply(fitted.params, test.x)
    measured = _with_margin(ex.measure_groups(logits, test, people), logits, test, people, plan)
    if isinstance(fitted.trace, NonPrivateVotes):
      own_key = jax.random.fold_in(key, 1)
      found = vote_epsilons(plan, fitted.trace.counts, key=own_key, compare=True)
      named = dict(zip(EPSILONS, map(jnp.asarray, found), strict=True))
      measured = measured._replace(gaps=measured.gaps | named)
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
      variant,
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


def _with_margin(
  measured: GroupMeasures, logits: jax.Array, test: Examples, people: Dataset, plan: Plan
) -> GroupMeasures:
  """Adds everyone's `gap` and `coverage`; with a margin, accuracy too is that of shown answers.

  Test people ask one after the other, and a margin refuses those who would bring a disparity to it.
  """
  predicted = jnp.argmax(logits, -1)
  shown = jnp.ones(predicted.shape, bool)
  groups, classes = people.num_groups, people.num_classes
  if plan.abstention is not None:
    kept = admit_in_order(
      predicted, test.group, plan.abstention, num_groups=groups, num_classes=classes
    )
    shown = kept.labels != REFUSED
  counts = jnp.zeros((groups, classes)).at[test.group, predicted].add(shown)
  right = jnp.sum(shown & (predicted == test.y)) / jnp.sum(shown)
  gap = jnp.nanmax(fairness.demographic_disparity(counts))
  overall = measured.overall._replace(accuracy=right)
  return measured._replace(
    overall=overall, gaps=measured.gaps | {"gap": gap, "coverage": shown.mean()}
  )


def _planned(config: Config, context: _study.Context) -> _releases.PlannedRelease:
  assert config.release_epsilon is not None
  ledger = config.dataset_ledger and context.for_release
  own = config.priced(config.released_method, config.release_epsilon, ledger=ledger)
  own = dataclasses.replace(own, devices=config.devices)
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
  missing = [name for name in (*REASONS, *EPSILONS) if name not in found]
  return found.plus(**{name: np.full(len(found), np.nan) for name in missing})


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
    "gap is the largest demographic disparity (a group's rate of a class minus that of everybody "
    "else). Where a method shows predictions within a margin, everyone's accuracy and gap are "
    "those of the answers shown, and coverage is their share."
  )
  yield (
    "The figures on this page are measured on held-out people without noise: they are for those "
    "who hold the data, not for release."
  )
  yield f"Intervals are over {config.seeds} splits of the people, each with its own noise."


def _release(config: Config, at: Mapping[str, Any]) -> dict[str, Any]:
  """The `[release]` table of a point."""
  name = str(at["method"])
  variant = {n: float(at[n]) for n in SWEPT if at.get(n) is not None}
  return plain(config.priced(name, float(at["epsilon"]), variant, ledger=config.dataset_ledger))


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
  points={"method": PRIVATE},
  release=_release,
  summaries=(
    ex.summary("Who pays", f"accuracy_cost, accuracy ~ {BY}"),
    ex.summary("Gaps between groups", f"accuracy, {', '.join(GAPS)} ~ method, epsilon", ALL),
    ex.summary("Three epsilons of votes", f"{', '.join(EPSILONS)} ~ method, epsilon", ALL),
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
