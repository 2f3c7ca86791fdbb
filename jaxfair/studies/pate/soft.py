"""PATE: hard labels against noisy shares of the votes, over epsilon."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, pate
from jaxfair.experiments.measures import EVERYONE
from jaxfair.experiments.table import Table
from jaxfair.studies import protocol
from jaxfair.studies.claims import Check, difference_above, in_each
from jaxfair.studies.pate.ensembles import (
  EnsembleConfig,
  cells,
  model_of,
  repetitions,
)
from jaxfair.studies.pate.students import (
  compare,
  comparison_rows,
  hard_labels,
  majority_weights,
  soft_labels,
  students,
)
from jaxfair.studies.protocol import Claim, Figure, Summary

HARD, SOFT, PROJECTED = "hard labels", "raw shares", "projected shares"
ALL = {"group": EVERYONE}


@dataclasses.dataclass(frozen=True)
class Config(EnsembleConfig):
  """Settings.

  Attributes:
    epsilons: of all labels of one student together.
    delta: in (0, 1).
    penalty: lambda of lambda ||theta||^2 beside the sum of the losses.
  """

  epsilons: tuple[float, ...] = (1.0, 3.0, 10.0)
  delta: float = 1e-5
  penalty: float = 1.0

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.positive("epsilons", self.epsilons)
    checks.positive("penalty", self.penalty)
    checks.number(
      "delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True
    )

  @property
  def sigmas(self) -> list[float]:
    """The noise that pays for all labels, for each epsilon.

    Every label or histogram moves by sqrt(2) with one vote, so all of them
    together by sqrt(2 m).
    """
    return [
      accounting.discrete_gaussian_sigma(
        epsilon=epsilon,
        delta=self.delta,
        sensitivity=math.sqrt(2 * self.queries),
      )
      for epsilon in self.epsilons
    ]


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """Students of all kinds and epsilons, on every split."""
  people, made = repetitions(config, cell, context)
  model = model_of(config, people)
  sigmas = config.sigmas
  kinds = (HARD, SOFT, PROJECTED)
  settings = [
    {**cell, "labels": kind, "epsilon": epsilon, "sigma": sigma}
    for kind in kinds
    for epsilon, sigma in zip(config.epsilons, sigmas, strict=True)
  ]
  tables = []
  for seed, ensemble in made:
    key_hard, key_soft = jax.random.split(ensemble.key_noise)
    hard = hard_labels(ensemble, sigmas, config.draws, key=key_hard)
    soft = soft_labels(ensemble, sigmas, config.draws, key=key_soft)
    shares = jnp.asarray(ensemble.counts / ensemble.counts.sum(1)[:, None])
    clean = [majority_weights(ensemble), shares, shares]
    trained = students(
      config,
      model,
      ensemble,
      jnp.repeat(jnp.stack(clean), len(sigmas), axis=0),
      jnp.concatenate([hard, soft, pate.project_to_simplex(soft)]),
      [config.penalty] * len(settings),
    )
    found = compare(model, trained, ensemble.test, people.num_groups)
    tables.append(
      comparison_rows(
        settings, found, seed=seed, group_names=people.group_names
      )
    )
  return Table.concat(tables)


def _notes(config: Config) -> list[str]:
  return [
    f"epsilon is that of all {config.queries} labels together at delta "
    f"{config.delta:g}, for one person replaced by another, whatever the "
    "votes: it may be published. Labels and shares of the votes cost the "
    "same; projecting shares to the simplex is free.",
    "Excess risk and deviation are against the student of the same kind "
    "without noise. Raw shares may be negative, and then the loss has no "
    "lower bound. Measured without noise: for those who hold the data.",
    f"Intervals are over {config.splits} splits with their own teachers; each "
    f"value is a mean over {config.draws} draws of noise.",
  ]


def _better(value: str, *, larger: str, smaller: str) -> Check:
  """Paired over splits and for each set, a kind has the larger value."""
  return in_each(
    "data",
    difference_above(
      value,
      first=ALL | {"labels": larger},
      second=ALL | {"labels": smaller},
    ),
  )


def _at(pick: str, check: Check) -> Check:
  """The check with the fewest or the most teachers."""

  def chosen(table: Table) -> protocol.Finding:
    if "teachers" not in table:
      return protocol.Finding("", why="the table has no column teachers")
    count = {"fewest": min, "most": max}[pick](table["teachers"])
    return check(table.where(teachers=count))

  return chosen


def _claims(pick: str, source: str) -> list[Claim]:
  """Shares against labels: raw ones as in the papers, then projected ones."""
  claims = []
  for kind, figures in (
    (SOFT, f"Fig. 7, 15, 16; thesis {source}"),
    (PROJECTED, ""),
  ):
    told = kind.capitalize()
    less = {"larger": HARD, "smaller": kind}
    for name, statement, check in (
      (
        "deviation",
        f"{told}: noise moves the student less than with labels",
        _better("deviation", **less),
      ),
      (
        "gap",
        f"{told}: the gap of excess risks is narrower than with labels",
        _better("gap", **less),
      ),
      (
        "accuracy",
        f"{told}: the student is more accurate than with labels",
        _better("accuracy", larger=kind, smaller=HARD),
      ),
    ):
      claims.append(
        Claim(
          f"{name}, {kind}, {pick} teachers",
          f"{statement} ({pick} teachers)",
          _at(pick, check),
          figures,
        )
      )
  return claims


def _figure(
  name: str, title: str, y_title: str, reference: float | None = None
) -> Figure:
  return Figure(
    name,
    title,
    x="epsilon",
    y=name,
    mark="line",
    color="labels",
    facet="panel",
    y_title=y_title,
    log_x=True,
    where=ALL,
    reference=reference,
  )


def _named(table: Table) -> Table:
  """Adds names of panels and lines, and the excess of groups alone."""
  if "labels" not in table:
    return table
  panels = zip(table["data"], table["teachers"], strict=True)
  lines = zip(table["labels"], table["group"], strict=True)
  return table.plus(
    panel=[f"{name}, {count:g} teachers" for name, count in panels],
    line=[f"{kind}, {group}" for kind, group in lines],
    group_excess=np.where(
      table["group"] == EVERYONE, np.nan, table["excess_errors"]
    ),
  )


STUDY = protocol.Study(
  name="pate.soft",
  summary="PATE students of labels and of noisy shares, over epsilon",
  config=Config,
  cells=cells,
  run=run,
  derive=_named,
  notes=_notes,
  summaries=(
    Summary(
      "What noise does",
      by=("data", "teachers", "labels", "epsilon"),
      values=("accuracy", "gap"),
      where=ALL,
    ),
  ),
  claims=(*_claims("fewest", "4.7, 4.16"), *_claims("most", "4.17")),
  figures=(
    Figure(
      "groups",
      "Errors that noise adds to each group",
      x="epsilon",
      y="group_excess",
      y_title="excess errors",
      mark="line",
      color="line",
      facet="panel",
      log_x=True,
      where={"labels": (HARD, SOFT)},
      reference=0.0,
    ),
    _figure("gap", "Gap of excess risks between groups", "gap (errors)", 0.0),
    _figure("accuracy", "Accuracy of the student", ""),
    _figure("deviation", "How far noise moves the student", "E ||d||"),
  ),
)
