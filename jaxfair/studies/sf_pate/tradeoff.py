"""SF-PATE and its rivals: accuracy and violation over epsilon (Figure 2)."""

from typing import Annotated

from jaxfair import _fields, checks
from jaxfair import experiments as ex
from jaxfair.experiments import _claims as claims_module
from jaxfair.experiments import _study
from jaxfair.studies.sf_pate import common
from jaxfair.studies.sf_pate.common import FAIR, M_CORRECTED, METHODS, PF_LD, PLAIN, SF_S, SF_T, M

FAIRNESS = "the largest difference of a group from everybody"
DISTANCE = "the largest Wasserstein distance between two groups' scores"


class Config(common.Config):
  """Settings.

  Attributes:
    methods: which to compare; all but the corrected M by default.
  """

  methods: ex.Sweep[Annotated[str, _fields.OneOf(tuple(METHODS))]] = tuple(
    name for name in METHODS if name != M_CORRECTED
  )

  def check(self) -> None:
    """PF-LD has no ResNet."""
    super().check()
    checks.require(
      PF_LD not in self.methods or not self.network.startswith("resnet"),
      "methods has PF-LD, which clips every person's gradient in one scan; leave it out for a "
      "resnet, as the paper does",
    )


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All methods at every epsilon, on every split."""
  tables = []
  for seed, bare in enumerate(common.splits(config, cell, context)):
    split = bare.started()
    for name in config.methods:
      own, axes = {**cell, "method": name, "seed": seed}, {"epsilon": config.epsilons}
      tables.append(ex.Table.from_arrays(own, axes, split.measure(split.train(name))))
  return ex.Table.concat(tables)


def _notes(config: Config) -> list[str]:
  notion = config.notion.replace("_", " ")
  told = DISTANCE if config.notion == common.GENERALIZED else FAIRNESS
  return [
    f"The notion is {notion}; the violation is {told}, on test people and their own groups; "
    f"{config.tolerance:g} is asked for on training people, of groups as the method knows them.",
    "Epsilon is for the group of one person changed, features and labels public, at delta "
    f"{config.delta:g} (M: 0). It does not protect features, labels, who takes part, or groups "
    "that can be guessed.",
    f"SF-PATE has {config.num_teachers} teachers and asks about {config.queries} people; the "
    "others train on everybody. All start from theta* (plain), the model without groups, and "
    "train the same network.",
    "Measured without noise: for those who hold the data.",
  ]


def _difference(value: str, first: str, second: str) -> claims_module.Statistic:
  """Of two methods, averaged over epsilon."""
  return ex.difference(value, {"method": first}, {"method": second})


def _claims(ours: str) -> dict[str, claims_module.Check]:
  """A way of SF-PATE against its rivals, in every set."""
  smaller, told = f"{ours} has smaller violations than", {}
  for rival in (M, PF_LD):
    right = f"{ours} is more accurate than {rival}"
    violation = _difference("violation", rival, ours) > 0
    told[f"{ours} is fairer than {rival}: {smaller} {rival} [Fig. 2]"] = violation
    told[f"{right}: {right} [Fig. 2]"] = _difference("accuracy", ours, rival) > 0
  told |= {
    f"{ours} within two points: {ours} is within 2 points of the accuracy of fair training without "
    "privacy [Section 6.1]": _difference("accuracy", ours, FAIR) > -0.02,
    f"{ours} is fairer than theta*: {smaller} the model without groups": (
      _difference("violation", PLAIN, ours) > 0
    ),
  }
  return {name: check.in_each("data") for name, check in told.items()}


STUDY = common.study(
  "sf_pate.tradeoff",
  "fair models with private groups: SF-PATE, M, PF-LD over epsilon",
  Config,
  run,
  notes=_notes,
  summaries=(ex.summary("Accuracy and violation", "accuracy, violation ~ data, method, epsilon"),),
  claims=_claims(SF_S) | _claims(SF_T),
  figures=(
    ex.lines("violation: Fairness violation", "violation ~ epsilon, method | data", log="x"),
    ex.lines("accuracy: Accuracy", "accuracy ~ epsilon, method | data", log="x"),
  ),
)
