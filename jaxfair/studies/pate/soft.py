"""PATE: hard labels against noisy shares of the votes, over epsilon."""

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting
from jaxfair import experiments as ex
from jaxfair.experiments import Positive, _study
from jaxfair.experiments import _claims as claims_module
from jaxfair.experiments._measures import EVERYONE
from jaxfair.pate import _aggregation
from jaxfair.studies.pate import ensembles as es
from jaxfair.studies.pate import students as st
from jaxfair.studies.pate.penalty import ALL, lines
from jaxfair.types import Model

HARD, SOFT, PROJECTED = "hard labels", "raw shares", "projected shares"


class Config(es.EnsembleConfig):
  """Settings."""

  epsilons: ex.Sweep[Positive] = (1.0, 3.0, 10.0)  # of all labels of one student together
  delta: ex.Probability = 1e-5
  penalty: Positive = 1.0  # lambda of lambda ||theta||^2 beside the sum of the losses

  @property
  def sigmas(self) -> list[float]:
    """The noise that pays for all labels, for each epsilon.

    Every label or histogram moves by sqrt(2) with one vote, so all of them
    together by sqrt(2 m).
    """
    return [
      accounting.discrete_gaussian_sigma(
        epsilon=epsilon, delta=self.delta, sensitivity=math.sqrt(2 * self.queries)
      )
      for epsilon in self.epsilons
    ]


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """Students of all kinds and epsilons, on every split."""
  sigmas = config.sigmas
  settings = [
    {"labels": kind, "epsilon": epsilon, "sigma": sigma}
    for kind in (HARD, SOFT, PROJECTED)
    for epsilon, sigma in zip(config.epsilons, sigmas, strict=True)
  ]

  def train(model: Model, own: es.Ensemble) -> Iterator[st.Compared]:
    key_hard, key_soft = jax.random.split(own.key_noise)
    hard = st.hard_labels(own, sigmas, config.draws, key=key_hard)
    soft = st.soft_labels(own, sigmas, config.draws, key=key_soft)
    noisy = jnp.concatenate([hard, soft, _aggregation.project_to_simplex(soft)])
    shares = jnp.asarray(own.counts / own.counts.sum(1)[:, None])
    clean = jnp.stack([st.majority_weights(own), shares, shares])
    clean = jnp.repeat(clean, len(sigmas), axis=0)
    penalties = [config.penalty] * len(settings)
    trained = st.students(config, model, own, clean, noisy, penalties)
    yield settings, trained, own.test

  return st.compare_on_splits(config, cell, context, train)


def _notes(config: Config) -> list[str]:
  return [
    f"epsilon is that of all {config.queries} labels together at delta {config.delta:g}, for one "
    "person replaced by another, whatever the votes: it may be published. Labels and shares of "
    "the votes cost the same; projecting shares to the simplex is free.",
    "Excess risk and deviation are against the student of the same kind without noise. Raw "
    "shares may be negative, and then the loss has no lower bound. Measured without noise: for "
    "those who hold the data.",
    f"Intervals are over {config.splits} splits with their own teachers; each value is a mean "
    f"over {config.draws} draws of noise.",
  ]


def _claims() -> dict[str, claims_module.Check]:
  """Shares against labels: raw ones as in the papers, then projected ones."""
  statements = (
    ("deviation", "noise moves the student less than with labels", 1),
    ("gap", "the gap of excess risks is narrower than with labels", 1),
    ("accuracy", "the student is more accurate than with labels", -1),
  )
  made = {}
  for which, pick, thesis in (("fewest", min, "4.7, 4.16"), ("most", max, "4.17")):
    for kind in (SOFT, PROJECTED):
      source = f" [Fig. 7, 15, 16; thesis {thesis}]" if kind == SOFT else ""
      for value, statement, sign in statements:
        larger, smaller = ({"labels": one} for one in (HARD, kind)[::sign])
        check = (ex.difference(value, larger, smaller) > 0).at(**ALL, teachers=pick)
        name = f"{value}, {kind}, {which} teachers"
        told = f"{kind.capitalize()}: {statement} ({which} teachers)"
        made[f"{name}: {told}{source}"] = check.in_each("data")
  return made


def _named(table: ex.Table) -> ex.Table:
  """Adds names of panels and lines, and the excess of groups alone."""
  panels = zip(table["data"], table["teachers"], strict=True)
  lines = zip(table["labels"], table["group"], strict=True)
  everyone = table["group"] == EVERYONE
  return table.plus(
    panel=[f"{name}, {count:g} teachers" for name, count in panels],
    line=[f"{kind}, {group}" for kind, group in lines],
    group_excess=np.where(everyone, np.nan, table["excess_errors"]),
  )


STUDY = es.study(
  "pate.soft",
  "PATE students of labels and of noisy shares, over epsilon",
  Config,
  run,
  derive=_named,
  notes=_notes,
  summaries=(
    ex.summary("What noise does", "accuracy, gap ~ data, teachers, labels, epsilon", ALL),
  ),
  claims=_claims(),
  figures=(
    ex.lines(
      "groups: Errors that noise adds to each group",
      "group_excess ~ epsilon, line | panel",
      y_title="excess errors",
      log="x",
      where={"labels": (HARD, SOFT)},
      zero=True,
    ),
    *lines("epsilon", "labels", facet="panel", log="x"),
  ),
)
