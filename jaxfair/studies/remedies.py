"""Remedies for a rare class under DP-SGD, each at its own best learning rate.

One class is thinned out. Every method trains at every rate. Its best rate is the one whose models
are best on training people who were held out; claims are about test people at that rate.
"""

import dataclasses
from typing import Annotated, Any

import jax
import numpy as np

from jaxfair import _fields, _schema, accounting, data, methods, models
from jaxfair import experiments as ex
from jaxfair.experiments import _study
from jaxfair.types import Examples, Params

MethodName = Annotated[str, _fields.OneOf(tuple(methods.METHODS))]
BEST = {"best_rate": "yes"}


class Config(ex.Settings):
  """Settings."""

  data: ex.People = ex.People("mnist", features="scattering")
  rare_class: Annotated[int, _fields.Within(0)] = 8
  rare_share: ex.Probability = 0.09  # of its training people, who are kept
  methods: ex.Sweep[MethodName] = ("dp_sgd", "dp_sgd_global", "dp_sgd_f")
  rates: ex.Sweep[ex.Positive] = (2.0, 8.0, 32.0)
  settings: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)  # of each method
  epsilon: ex.Positive = 5.9
  delta: ex.Probability = 1e-6
  held_out: ex.Probability = 0.15  # share of the training people by whom rates are compared
  seeds: ex.Count = 5


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All rates and seeds of one method."""
  people, method = context.load(config.data), methods.get(str(cell["method"]))
  budget, rows = accounting.Budget(config.epsilon, config.delta), []
  plans: list[methods.Plan] = []
  for seed in range(config.seeds):
    private, held, test = _parts(config, people, seed)
    everybody = methods.Population(private, people.class_names, people.class_names, public=test)
    if not plans:  # all seeds have the same sizes
      own = [{**config.settings.get(method.name, {}), "learning_rate": r} for r in config.rates]
      made = [_schema.build(method.settings, one, where="settings.") for one in own]
      plans = [method.plan(settings, everybody.sizes, budget) for settings in made]
    for number, (rate, plan) in enumerate(zip(config.rates, plans, strict=True)):
      key = jax.random.fold_in(jax.random.fold_in(context.key, seed), number)
      params = method.fit(plan, everybody, key=key).params
      asked = plan.bounded(dataclasses.replace(everybody, private=held))
      chosen, shown = (_recalls(plan, params, part) for part in (asked.private, asked.public))
      at = {**cell, "rate": rate, "seed": seed, "held_out_accuracy": chosen.mean()}
      told = {"rare_accuracy": shown[config.rare_class], "balanced_accuracy": shown.mean()}
      rows.append(at | told)
  return ex.Table.from_rows(rows)


def _parts(config: Config, people: data.Dataset, seed: int) -> tuple[Examples, Examples, Examples]:
  """Private people and held-out ones, without most of the rare class, and the test part.

  The test part is the publisher's, or a drawn quarter of the people.
  """
  rng = np.random.default_rng(seed)
  test = people.test_rows
  if test is None:
    test = rng.permutation(people.size) < people.size // 4
  order = rng.permutation(np.flatnonzero(~test))
  rare = np.asarray(people.examples.y)[order] == config.rare_class
  kept = order[~rare | (np.cumsum(rare) <= round(config.rare_share * rare.sum()))]
  kept = rng.permutation(kept)  # those of the rare class were among the first
  size = round(config.held_out * len(kept))

  def part(rows: np.ndarray) -> Examples:
    own = people.examples.take(np.sort(rows))
    return own._replace(x=np.asarray(own.x).reshape(len(rows), -1), group=own.y)

  return part(kept[size:]), part(kept[:size]), part(np.flatnonzero(test))


def _recalls(plan: methods.Plan, params: Params, people: Any) -> np.ndarray:
  """[C] the share of each class that is found."""
  right = np.asarray(models.predict(plan.model, params, people.x)) == people.y
  each = [right[np.asarray(people.y) == label] for label in range(plan.sizes.classes)]
  return np.array([own.mean() for own in each])


def _derive(table: ex.Table) -> ex.Table:
  """Marks the rows at the rate of a method that is best on held-out people."""
  best = {}
  for (method,), rows in table.split("method"):
    means = {rate: own["held_out_accuracy"].mean() for (rate,), own in rows.split("rate")}
    best[method] = max(means, key=lambda rate: means[rate])
  return table.plus(
    best_rate=["yes" if row["rate"] == best[row["method"]] else "no" for row in table.rows()]
  )


STUDY = ex.Study(
  name="remedies",
  summary="Do remedies for a rare class help once every method has its own best rate?",
  config=Config,
  cells=ex.grid(method="methods"),
  run=run,
  derive=_derive,
  claims={
    "found: At its best rate every method finds 65% of the rare class, as Global-Adapt did "
    "(Esipova et al. 2023: 65.5, DP-SGD 26.3)": (ex.mean("rare_accuracy") > 0.65)
    .at(**BEST)
    .in_each("method")
  }
  | {
    f"{name}: At best rates {name} finds more of the rare class than DP-SGD ({source})": (
      ex.difference("rare_accuracy", {"method": name, **BEST}, {"method": "dp_sgd", **BEST}) > 0
    )
    for name, source in (
      ("dp_sgd_global", "Esipova et al. 2023"),
      ("dp_sgd_f", "Xu, Du and Wu 2020"),
    )
  },
  figures=(
    ex.lines(
      "rates: The rare class at every rate",
      "rare_accuracy ~ rate, method",
      "Share of the test people of the rare class who are found.",
      log="x",
    ),
  ),
  summaries=(
    ex.summary("At best rates", "rare_accuracy, balanced_accuracy ~ method, rate", BEST),
    ex.summary("At all rates", "held_out_accuracy, rare_accuracy ~ method, rate"),
  ),
)
