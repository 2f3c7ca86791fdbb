"""How does a plain model treat the groups of a real data set?"""

from typing import Annotated, Literal

import jax

from jaxfair import experiments as ex
from jaxfair import models
from jaxfair.experiments import Count, Positive
from jaxfair.experiments._measures import GAPS
from jaxfair.training import FitConfig, fit


class Config(ex.Settings):
  """Settings of the quickstart."""

  data: ex.People = ex.People()
  models: ex.Sweep[Literal["logistic", "mlp"]] = ("logistic", "mlp")
  hidden: tuple[Count, ...] = (64, 64)
  seeds: Count = 20
  steps: Count = 1000
  batch_size: Count = 256
  learning_rate: Positive = 1e-3
  test_fraction: Annotated[float, ex.Within(0.05, 0.95)] = 0.25


def run(config: Config, cell: ex.Cell, context: ex.Context) -> ex.Table:
  """All seeds of one model in one program: train, predict, measure."""
  people = context.load(config.data)
  model = models.network(str(cell["model"]), people.num_classes, hidden=config.hidden)
  settings = FitConfig(
    learning_rate=config.learning_rate, steps=config.steps, batch_size=config.batch_size
  )

  def measure(parts: tuple, key: jax.Array) -> object:
    train, test = parts
    fitted = fit(model, models.cross_entropy, train, settings, key=key)
    return ex.measure_groups(model.apply(fitted.params, test.x), test, people)

  share = (1 - config.test_fraction, config.test_fraction)
  measured = ex.repeat(
    measure,
    people,
    seeds=config.seeds,
    key=context.key,
    split_key=context.shared_key,
    fractions=share,
  )
  return ex.group_table({"data": people.name, **cell}, measured, people.group_names)


EVERYONE = {"group": "everyone"}
RATES = ("true_positive_rate", "false_positive_rate")

STUDY = ex.Study(
  name="quickstart",
  summary="How does a plain model treat the groups of a data set?",
  config=Config,
  cells=ex.grid(model="models"),
  run=run,
  summaries=(
    ex.Summary("By group", ("model", "group"), ("accuracy", "loss", "selection_rate", *RATES)),
    ex.Summary("Gaps between groups", ("model",), GAPS, EVERYONE),
  ),
  claims=(
    ex.Claim(
      "accuracy gap",
      "The model is less accurate for one group than for another, by more than one point",
      (ex.mean("accuracy_parity_difference") > 0.01).at(**EVERYONE),
    ),
    ex.Claim(
      "selection gap",
      "The model gives the positive label to the groups at rates more than five points apart",
      (ex.mean("demographic_parity_difference") > 0.05).at(**EVERYONE),
    ),
    ex.Claim(
      "capacity",
      "The network is more accurate than logistic regression",
      (ex.difference("accuracy", {"model": "mlp"}, {"model": "logistic"}) > 0).at(**EVERYONE),
    ),
  ),
  figures=(
    ex.Figure(
      "accuracy",
      "Accuracy by group",
      x="group",
      y="accuracy",
      color="model",
      caption="Share of correct predictions on people held out of training.",
    ),
    ex.Figure(
      "selection",
      "Who is given the positive label",
      x="group",
      y="selection_rate",
      color="model",
      caption="Share of each group that the model labels positive.",
    ),
    ex.Figure(
      "errors",
      "False positives against true positives",
      x="false_positive_rate",
      y="true_positive_rate",
      color="group",
      facet="model",
      mark="point",
      caption="One point per seed. Groups that lie apart are treated differently even where "
      "their true labels agree.",
    ),
  ),
)
