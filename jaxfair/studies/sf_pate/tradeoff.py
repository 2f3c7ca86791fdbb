"""SF-PATE and its rivals: accuracy and violation over epsilon (Figure 2)."""

from typing import Annotated

from jaxfair import _fields, checks
from jaxfair import experiments as ex
from jaxfair.experiments import _claims as claims_module
from jaxfair.experiments import _study
from jaxfair.studies.sf_pate import common
from jaxfair.studies.sf_pate.common import (
  FAIR,
  METHODS,
  PF_LD,
  PF_LD_COARSE,
  PLAIN,
  SF_S,
  SF_S_OWN,
  SF_T,
  SF_T_OWN,
  M,
)

FAIRNESS = "the largest difference of a group from everybody"
DISTANCE = "the largest Wasserstein distance between two groups' scores"
USUAL = (SF_S, SF_T, SF_S_OWN, SF_T_OWN, M, PF_LD, PF_LD_COARSE, PLAIN, FAIR)
SIMILAR = -0.01  # a violation that is larger by at most so much


class Config(common.Config):
  """Settings.

  Attributes:
    methods: which to compare.
  """

  methods: ex.Sweep[Annotated[str, _fields.OneOf(tuple(METHODS))]] = USUAL

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
      own = {**cell, "notion": config.notion, "method": name, "seed": seed}
      axes = {"epsilon": config.epsilons}
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
    '"These votes": the noise has this epsilon by the data-dependent analysis of PATE, which is '
    'computed from private votes: it may not be published, and is not a guarantee. "Coarse": '
    "PF-LD with noise for a sensitivity of 2 C / (0.1 batch) a step.",
    "Measured without noise: for those who hold the data.",
  ]


def _difference(value: str, first: str, second: str) -> claims_module.Statistic:
  """Of two methods, averaged over epsilon."""
  return ex.difference(value, {"method": first}, {"method": second})


def _against(ours: str, rival: str, bar: float = 0.0) -> dict[str, claims_module.Check]:
  """Ours has smaller violations than the rival, or larger by -bar at most, and is more accurate."""
  smaller = "smaller violations than" if bar == 0 else "violations similar to or smaller than"
  return {
    f"{ours} has {smaller} {rival}": _difference("violation", rival, ours) > bar,
    f"{ours} is more accurate than {rival}": _difference("accuracy", ours, rival) > 0,
  }


def _claims() -> dict[str, claims_module.Check]:
  """What the paper says of each notion, as it says it: always, often, or of one set."""
  told: dict[str, claims_module.Check] = {}

  def add(found: dict[str, claims_module.Check], figure: str = "", places: str = "") -> None:
    for statement, check in found.items():
      name = f"{statement}, {figure}" if figure else statement
      told[f"{name}: {statement}" + (f" [{places}]" if places else "")] = check

  for ours in (SF_S, SF_T):
    always = ours == SF_T
    for notion, rival, bar, figure, places in (
      ("demographic_parity", M, 0.0, "Fig. 2(a)", "M"),
      ("demographic_parity", PF_LD, 0.0, "Fig. 2(a)", "PF-LD"),
      ("generalized_demographic_parity", M, 0.0, "Fig. 2(b)", "violation"),
      ("accuracy_parity", M, SIMILAR, "Fig. 2(c)", ""),
    ):
      cases = {name: one.at(notion=notion) for name, one in _against(ours, rival, bar).items()}
      each = always and figure == "Fig. 2(a)"
      own = {k: one.in_each("data") if each else one.in_most("data") for k, one in cases.items()}
      source = "; ".join([figure] + ([f"{figure}, {places}"] if places else []))
      add(own, figure, f"{source}; Fig. 2(a), teachers" if each else source)
    near = (_difference("accuracy", ours, FAIR) > -0.02).at(notion="demographic_parity")
    statement = f"{ours} is within 2 points of the accuracy of fair training without privacy"
    add({f"{statement}, over all sets": near}, places="Section 6.1, 2%")
    gain = (_difference("violation", PLAIN, ours) > 0).in_each("data")
    add({f"{ours} has smaller violations than the model without groups": gain})
  teachers = (_difference("violation", SF_S, SF_T) > 0).in_most("data")
  add({"SF_T-PATE has smaller violations than SF_S-PATE": teachers}, places="Section 6.4")
  for ours, rival in ((SF_S_OWN, M), (SF_T_OWN, M), (SF_S, PF_LD_COARSE), (SF_S_OWN, PF_LD_COARSE)):
    add({name: check.in_most("data") for name, check in _against(ours, rival).items()})
  return told


STUDY = common.study(
  "sf_pate.tradeoff",
  "fair models with private groups: SF-PATE, M, PF-LD over epsilon",
  Config,
  run,
  notes=_notes,
  summaries=(
    ex.summary(
      "Accuracy and violation",
      "accuracy, balanced_accuracy, majority_accuracy, violation ~ data, method, epsilon",
    ),
  ),
  plain={"method": PLAIN},
  claims=_claims(),
  figures=(
    ex.lines("violation: Fairness violation", "violation ~ epsilon, method | data", log="x"),
    ex.lines("accuracy: Accuracy", "accuracy ~ epsilon, method | data", log="x"),
  ),
)
