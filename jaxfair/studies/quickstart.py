"""How does a plain model treat the groups of a real data set?"""

import dataclasses

import jax

from jaxfair import checks, models
from jaxfair.studies import protocol
from jaxfair.studies.claims import difference_above, mean_above
from jaxfair.studies.measures import GAPS, group_table, measure_groups
from jaxfair.studies.people import People, load_people
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.repeats import repeat
from jaxfair.studies.table import Table
from jaxfair.training import FitConfig, fit


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the quickstart."""

  data: People = dataclasses.field(default_factory=People)
  models: tuple[str, ...] = ("logistic", "mlp")
  hidden: tuple[int, ...] = (64, 64)
  seeds: int = 20
  steps: int = 1000
  batch_size: int = 256
  learning_rate: float = 1e-3
  test_fraction: float = 0.25

  def __post_init__(self) -> None:
    for name in self.models:
      checks.one_of("models", name, ("logistic", "mlp"))
    for width in self.hidden:
      checks.integer("hidden", width, low=1)
    for name in ("seeds", "steps", "batch_size"):
      checks.integer(name, getattr(self, name), low=1)
    checks.positive("learning_rate", self.learning_rate)
    checks.number("test_fraction", self.test_fraction, low=0.05, high=0.95)


def cells(config: Config) -> list[protocol.Settings]:
  """One cell per model."""
  load_people(config.data)  # a missing file is found before any work
  return [{"model": name} for name in config.models]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All seeds of one model in one program: train, predict, measure."""
  people, note = load_people(config.data)
  context.say(note)
  mlp = models.mlp(config.hidden, people.num_classes)
  linear = models.logistic(people.num_classes)
  model = linear if cell["model"] == "logistic" else mlp
  settings = FitConfig(
    learning_rate=config.learning_rate,
    steps=config.steps,
    batch_size=config.batch_size,
  )

  def measure(parts: protocol.Parts, key: jax.Array) -> object:
    train, test = parts
    fitted = fit(model, models.cross_entropy, train, settings, key=key)
    return measure_groups(model.apply(fitted.params, test.x), test, people)

  share = (1 - config.test_fraction, config.test_fraction)
  measured = repeat(
    measure,
    people,
    seeds=config.seeds,
    key=context.key,
    split_key=context.shared_key,
    fractions=share,
  )
  return group_table(
    {"data": people.name, **cell}, measured, people.group_names
  )


EVERYONE = {"group": "everyone"}
RATES = ("true_positive_rate", "false_positive_rate")

STUDY = protocol.Study(
  name="quickstart",
  summary="How does a plain model treat the groups of a data set?",
  config=Config,
  cells=cells,
  run=run,
  summaries=(
    Summary(
      "By group",
      by=("model", "group"),
      values=("accuracy", "loss", "selection_rate", *RATES),
    ),
    Summary("Gaps between groups", by=("model",), values=GAPS, where=EVERYONE),
  ),
  claims=(
    Claim(
      "accuracy gap",
      "The model is less accurate for one group than for another, by more "
      "than one point",
      mean_above("accuracy_parity_difference", 0.01, where=EVERYONE),
    ),
    Claim(
      "selection gap",
      "The model gives the positive label to the groups at rates more than "
      "five points apart",
      mean_above("demographic_parity_difference", 0.05, where=EVERYONE),
    ),
    Claim(
      "capacity",
      "The network is more accurate than logistic regression",
      difference_above(
        "accuracy",
        first={"group": "everyone", "model": "mlp"},
        second={"group": "everyone", "model": "logistic"},
      ),
    ),
  ),
  figures=(
    Figure(
      "accuracy",
      "Accuracy by group",
      x="group",
      y="accuracy",
      colour="model",
      caption="Share of correct predictions on people held out of training.",
    ),
    Figure(
      "selection",
      "Who is given the positive label",
      x="group",
      y="selection_rate",
      colour="model",
      caption="Share of each group that the model labels positive.",
    ),
    Figure(
      "errors",
      "False positives against true positives",
      x="false_positive_rate",
      y="true_positive_rate",
      colour="group",
      facet="model",
      mark="point",
      caption="One point per seed. Groups that lie apart are treated "
      "differently even where their true labels agree.",
    ),
  ),
)
