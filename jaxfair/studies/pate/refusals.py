"""PATE: whose queries the consensus test of Confident-GNMax refuses."""

import numpy as np
from scipy import stats

from jaxfair import _fields
from jaxfair import experiments as ex
from jaxfair.experiments import Positive, _study
from jaxfair.experiments._measures import EVERYONE, beside_constant
from jaxfair.studies.pate import ensembles as es

RARE, OTHERS = "rarest class", "other classes"
LITTLE = 0.02  # a difference of two points of coverage


class Config(es.EnsembleConfig):
  """Settings; `queries` are the people that are asked about."""

  thresholds: ex.Sweep[_fields.Share] = (0.6, 0.75, 0.9)  # T as a share of the teachers
  sigma_threshold: Positive = 50.0  # noise on the test, in votes


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """How likely people of each group and class are answered, on every split."""
  people, made = es.repetitions(config, cell, context)
  rows = []
  for seed, own in enumerate(made):
    y, group = np.asarray(own.public.y), np.asarray(own.public.group)
    voted, most = np.asarray(own.majority), own.counts.max(axis=1)
    rare = y == np.bincount(y, minlength=people.num_classes).argmin()
    parts = {name: group == i for i, name in enumerate(people.group_names)}
    parts |= {RARE: rare, OTHERS: ~rare, EVERYONE: np.ones(len(y), bool)}
    learnt = beside_constant(own.public.y, own.majority, people.num_classes)
    for share in config.thresholds:
      # Pr[max_c n_c + N(0, sigma^2) >= T], exact for these votes.
      chance = stats.norm.cdf((most - share * int(cell["teachers"])) / config.sigma_threshold)
      for name, inside in parts.items():
        told = {**cell, "threshold": share, "seed": seed, "group": name}
        told |= {"coverage": _mean(chance, inside), "accuracy": _mean(voted == y, inside)}
        told["answered_accuracy"] = _mean(voted == y, chance * inside)
        if name == EVERYONE:
          told |= {measure: float(value) for measure, value in learnt.items()}
        rows.append(told)
  return ex.Table.from_rows(rows)


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
  return float(np.average(values, weights=weights)) if weights.sum() > 0 else float("nan")


def _notes(config: Config) -> list[str]:
  return [
    f"{config.queries} public people are asked about. A query is answered if the largest count of "
    f"votes, with Gaussian noise of {config.sigma_threshold:g} votes, reaches the threshold; "
    "coverage is the probability of that, exact for these votes.",
    "accuracy is that of the plurality label without noise; answered_accuracy weights people by "
    "how likely they are answered. Computed from private votes: for those who hold the data.",
  ]


APART = ex.difference("coverage", {"group": OTHERS}, {"group": RARE})
GAIN = ex.mean("gain") > 0
STUDY = es.study(
  "pate.refusals",
  "PATE: whose queries the consensus test refuses",
  Config,
  run,
  derive=lambda table: table.plus(gain=table["answered_accuracy"] - table["accuracy"]),
  notes=_notes,
  summaries=(
    ex.summary(
      "Who is answered", "coverage, accuracy, answered_accuracy ~ data, teachers, threshold, group"
    ),
  ),
  claims={
    f"groups: The test can refuse one group more often than another, by more than {LITTLE:g} "
    "(largest threshold) [Section 9; Section 4.9]": (ex.spread("coverage", "group") > LITTLE)
    .at(group=ex.but(EVERYONE, RARE, OTHERS), threshold=max)
    .in_some("data"),
    "classes: The test refuses people of the rarest class more often than others (largest "
    "threshold)": (APART > 0).at(threshold=max).in_each("data"),
    "selection: The answers that the test lets through are more often right than all would be "
    "(largest threshold)": GAIN.at(group=EVERYONE, threshold=max).in_each("data"),
  },
  figures=(
    ex.lines(
      "coverage: How likely people of each group are answered",
      "coverage ~ threshold, group | data",
      x_title="threshold, as a share of the teachers",
    ),
  ),
)
