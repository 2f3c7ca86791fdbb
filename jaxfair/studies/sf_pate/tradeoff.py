"""SF-PATE and its rivals: accuracy and violation over epsilon (Figure 2)."""

import dataclasses

from jaxfair import checks
from jaxfair.experiments.people import set_name
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check, difference_above, in_each
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.sf_pate import common, methods


@dataclasses.dataclass(frozen=True)
class Config(common.Config):
  """Settings.

  Attributes:
    methods: which to compare; all but the corrected M by default.
  """

  methods: tuple[str, ...] = (
    methods.SF_S, methods.SF_T, methods.M, methods.PF_LD, methods.PLAIN,
    methods.FAIR,
  )  # fmt: skip

  def __post_init__(self) -> None:
    super().__post_init__()
    for name in self.methods:
      checks.one_of("methods", name, methods.METHODS)
    checks.require(bool(self.methods), "methods is empty; name at least one")
    private = methods.PF_LD in self.methods
    checks.require(
      not (private and self.model == "resnet"),
      "methods has PF-LD, which clips every person's gradient in one scan; "
      "leave it out for a resnet, as the paper does",
    )


def cells(config: Config) -> list[protocol.Settings]:
  """One cell per data set."""
  for one in config.sets:
    common.sizes(config, common.load_set(config, set_name(one))[0])
  return [{"data": set_name(one)} for one in config.sets]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All methods at every epsilon, on every split."""
  people, note = common.load_set(config, cell["data"])
  context.say(note)
  model = common.model_of(config, people)
  tables = []
  for seed, split in enumerate(common.repetitions(config, people, context)):
    for name in config.methods:
      trained = methods.METHODS[name](config, people, split)
      measured = common.measure(config, people, model, trained, split.test)
      tables.append(
        Table.from_arrays(
          {**cell, "method": name},
          {"seed": [seed], "epsilon": config.epsilons},
          {key: values[None] for key, values in measured.items()},
        )
      )
  return Table.concat(tables)


def _notes(config: Config) -> list[str]:
  measured = (
    "the largest Wasserstein distance between two groups' scores"
    if config.notion == common.GENERALIZED
    else "the largest difference of a group from everybody"
  )
  return [
    f"The notion is {config.notion}; the violation is {measured}, on test "
    f"people and their own groups; {config.tolerance:g} is asked for on "
    "training people, of groups as the method knows them.",
    "Epsilon is for the group of one person changed, features and labels "
    f"public, at delta {config.delta:g} (M: 0). What it does not protect: "
    "features, labels, who takes part, and groups that can be guessed.",
    f"SF-PATE has {config.teachers} teachers and asks about {config.queries} "
    "people; the others train on everybody. All start from theta* (plain), "
    "the model without groups, and train the same network.",
    "Measured without noise: for those who hold the data.",
  ]


def _beats(value: str, better: str, worse: str, *, larger: bool) -> Check:
  """In every set, a method is better, averaged over epsilon."""
  first, second = ({"method": better}, {"method": worse})
  if not larger:
    first, second = second, first
  return in_each("data", difference_above(value, first=first, second=second))


def _within(name: str, margin: float) -> Check:
  """In every set, accuracy is within a margin of fair training's."""
  return in_each(
    "data",
    difference_above(
      "accuracy", -margin, first={"method": name},
      second={"method": methods.FAIR},
    ),
  )  # fmt: skip


def _claims() -> list[Claim]:
  made = []
  for ours in (methods.SF_S, methods.SF_T):
    for rival in (methods.M, methods.PF_LD):
      made += [
        Claim(
          f"{ours} is fairer than {rival}",
          f"{ours} has smaller violations than {rival}",
          _beats("violation", ours, rival, larger=False),
          "Fig. 2",
        ),
        Claim(
          f"{ours} is more accurate than {rival}",
          f"{ours} is more accurate than {rival}",
          _beats("accuracy", ours, rival, larger=True),
          "Fig. 2",
        ),
      ]
    made.append(
      Claim(
        f"{ours} within two points",
        f"{ours} is within 2 points of the accuracy of fair training without "
        "privacy",
        _within(ours, 0.02),
        "Section 6.1",
      )
    )
    made.append(
      Claim(
        f"{ours} is fairer than theta*",
        f"{ours} has smaller violations than the model without groups",
        _beats("violation", ours, methods.PLAIN, larger=False),
      )
    )
  return made


def _figure(name: str, title: str) -> Figure:
  return Figure(
    name, title, x="epsilon", y=name, mark="line", color="method",
    facet="data", log_x=True,
  )  # fmt: skip


STUDY = protocol.Study(
  name="sf_pate.tradeoff",
  summary="fair models with private groups: SF-PATE, M, PF-LD over epsilon",
  config=Config,
  cells=cells,
  run=run,
  notes=_notes,
  summaries=(
    Summary(
      "Accuracy and violation",
      by=("data", "method", "epsilon"),
      values=("accuracy", "violation"),
    ),
  ),
  claims=_claims(),
  figures=(
    _figure("violation", "Fairness violation"),
    _figure("accuracy", "Accuracy"),
  ),
)
