"""PATE: hard labels against noisy shares of the votes, over epsilon."""

import math
from collections.abc import Iterator
from typing import Any

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
from jaxfair.studies.pate.penalty import ALL, CLEAN, EACH, LEARNT, SOME, claims, if_learnt, lines
from jaxfair.types import Model

HARD, SOFT, PROJECTED = "hard labels", "raw shares", "projected shares"


class Config(es.EnsembleConfig):
  """Settings."""

  epsilons: ex.Sweep[Positive] = (1.0, 3.0, 10.0)  # of all labels of one student together
  delta: ex.Probability = 1e-5
  penalties: ex.Sweep[Positive] = (1.0, 100.0)  # lambda ||theta||^2 beside the sum of losses

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
    {"labels": kind, "epsilon": epsilon, "sigma": sigma, "penalty": penalty}
    for penalty in config.penalties
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
    clean, noisy = (jnp.concatenate([a] * len(config.penalties)) for a in (clean, noisy))
    penalties = np.repeat(config.penalties, len(settings) // len(config.penalties)).tolist()
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


COMPARABLE = -0.01  # a student that is at most a point less accurate
# Shares against labels: what is compared, with which sign, and when it counts.
COMPARED = {
  "deviation": (1, 0.0, "noise moves the student less than with labels"),
  "gap": (1, 0.0, "the gap of excess risks is narrower than with labels"),
  "accuracy": (-1, COMPARABLE, "the student is as accurate as with labels, or loses a point"),
}


def _check(value: str, kind: str, **at: Any) -> claims_module.Check:
  sign, bar, _ = COMPARED[value]
  larger, smaller = ({"labels": one} for one in (HARD, kind)[::sign])
  check = (ex.difference(value, larger, smaller) > bar).at(**(ALL | at))
  return if_learnt(check, at | CLEAN)


def _claims() -> dict[str, claims_module.Check]:
  """Raw shares as in the papers, with few and many teachers; then projected ones."""
  made: dict[str, claims_module.Check] = {}
  figure_7 = {
    "deviation": {"parkinsons": "Fig. 7", "credit": "Fig. 4.7"},
    "gap": {SOME: "Fig. 7, gap; Fig. 4.7, gap"},
    "accuracy": {EACH: "Fig. 7, accuracy; Fig. 4.7, accuracy"},
  }
  for which, pick, place in (
    ("fewest", min, "Fig. 15; Fig. 4.16"),
    ("most", max, "Fig. 16; Fig. 4.17"),
  ):
    for value, (_, _, statement) in COMPARED.items():
      at = {"teachers": pick, "penalty": min}
      told = f"Raw shares: {statement} ({which} teachers)"
      places = {**figure_7[value]} if which == "most" else {}
      if value != "deviation":
        places[EACH] = "; ".join([*places.get(EACH, "").split("; "), place]).lstrip("; ")
      made |= claims([(f"{value}, {which} teachers", _check(value, SOFT, **at), told, places)])
      name, told = f"{value}, projected, {which} teachers", told.replace("Raw", "Projected")
      made[f"{name}: {told}"] = _check(value, PROJECTED, **at).in_each("data")
  for value, (_, _, statement) in COMPARED.items():
    told = f"Raw shares: {statement} (largest penalty)"
    check = _check(value, SOFT, penalty=max)
    made |= claims([(f"{value}, largest penalty", check, told, figure_7[value])])
  return made


def _named(table: ex.Table) -> ex.Table:
  """Adds names of panels and lines, and the excess of groups alone."""
  everyone = table["group"] == EVERYONE
  return table.plus(
    panel="{data}, k {teachers:g}, penalty {penalty:g}",
    line="{labels}, {group}",
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
    ex.summary(
      "What noise does",
      "accuracy, balanced_accuracy, gap ~ data, teachers, labels, penalty, epsilon, votes",
      {"group": EVERYONE},
    ),
  ),
  plain=CLEAN,
  reference=LEARNT,
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
