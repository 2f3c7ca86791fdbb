"""Output perturbation: does the group whose loss bends more pay more?

Figures 3.1 and 3.8 of the thesis. A regularised logistic regression is solved
to its optimum and released with noise; the excess risk of every group is held
against the trace of its Hessian (Theorem 3.1).
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, analysis, checks, data, models, training
from jaxfair.experiments.table import Table
from jaxfair.privacy import noise
from jaxfair.studies import protocol
from jaxfair.studies.dp_erm import common
from jaxfair.studies.dp_erm.gaps import RISKS, worst_gaps
from jaxfair.studies.protocol import Claim, Figure, Summary
from jaxfair.studies.resampled import rank_correlation, resampled
from jaxfair.types import Examples, Params


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of output perturbation.

  Attributes:
    sets: data sets.
    epsilons: of the releases.
    delta: likewise.
    weight_decay: lambda, in lambda/2 ||theta||^2.
    row_norm: rows are projected into a ball of this radius, in units of
      sqrt(d), the root mean square norm of standardised rows. The thesis does
      not bound its rows, and without a bound the sensitivity is infinite.
    seeds: repetitions; each is a pair of mirrored noises.
    max_people: at most this many of a set; all of them by default.
  """

  sets: tuple[str, ...] = ("bank", "adult")
  epsilons: tuple[float, ...] = (0.005, 0.02, 0.1, 0.5)
  delta: float = 1e-5
  weight_decay: float = 1.0
  row_norm: float = 2.0
  seeds: int = 100
  max_people: int | None = None

  def __post_init__(self) -> None:
    common.check_sets(self.sets, self.max_people)
    checks.positive("epsilons", self.epsilons)
    checks.positive("weight_decay", self.weight_decay)
    checks.positive("row_norm", self.row_norm)
    checks.integer("seeds", self.seeds, low=1)
    checks.number(
      "delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True
    )

  def release(self, epsilon: float, width: int) -> Any:
    """The mechanism's settings for rows of this many features."""
    return training.OutputPerturbationConfig(
      epsilon=epsilon,
      delta=self.delta,
      weight_decay=self.weight_decay,
      row_norm=self.row_norm * math.sqrt(width),
      tolerance=1e-7,
    )


def cells(config: Config) -> list[dict[str, Any]]:
  """One cell per data set."""
  return common.cells_of(config.sets)


def run(
  config: Config, cell: protocol.Settings, context: protocol.Context
) -> Table:
  """All epsilons and repetitions of one data set around one optimum."""
  sample = common.draw_people(
    str(cell["data"]), config.max_people, key=context.shared_key
  )
  return perturb(config, sample, cell, key=context.key)


def perturb(
  config: Config,
  sample: common.Sample,
  setting: protocol.Settings,
  *,
  key: jax.Array,
) -> Table:
  """Rows of all epsilons, repetitions and groups of these people."""
  size, width = sample.people.x.shape
  first = config.release(config.epsilons[0], width)
  people = sample.people._replace(
    x=data.bound_rows(sample.people.x, first.row_norm)
  )
  key_optimum, key_noise = jax.random.split(key)
  model = models.logistic(sample.dataset.num_classes)
  fitted = training.output_perturbation(
    model, common.LOSS, people, first, key=key_optimum
  )
  optimum = fitted.trace.params
  traces = analysis.hessian_trace(
    model, common.LOSS, optimum, people, num_groups=sample.num_groups
  ).traces
  norms = analysis.mean_by_group(
    jnp.linalg.norm(people.x, axis=1), people.group, sample.num_groups
  )
  sigmas = np.array([
    accounting.gaussian_sigma(
      epsilon=e, delta=config.delta, sensitivity=fitted.trace.sensitivity
    )
    for e in config.epsilons
  ])  # fmt: skip
  excess = _mirrored_excess(
    optimum, people, sample.dataset, sigmas, config.seeds, key_noise
  )
  shape = (len(sigmas), config.seeds, sample.num_groups)
  half = 0.5 * sigmas[:, None, None] ** 2  # R_a is near half Tr(H_a)
  trace, norm = np.asarray(traces.group), np.asarray(norms.group)
  return common.group_rows(
    sample,
    {**setting, "people": size},
    {"epsilon": config.epsilons, "seed": range(config.seeds)},
    {
      "excess_risk": excess.group,
      "excess_risk_of_all": excess.population,
      "trace": np.broadcast_to(trace, shape),
      "input_norm": np.broadcast_to(norm, shape),
      "predicted": np.broadcast_to(half * trace, shape),
      "excess_per_variance": excess.group / half,
      "sigma": sigmas,
    },
  )


def _mirrored_excess(
  optimum: Params,
  people: Examples,
  dataset: data.Dataset,
  sigmas: np.ndarray,
  seeds: int,
  key: jax.Array,
) -> analysis.ByGroup:
  """[epsilons, seeds, G] excess risks, each of a noise and its negative.

  Both have the noise's distribution, so their mean is unbiased; in it the
  groups' own gradients at the optimum, whose mean over noises is 0 but which
  drown all else in a hundred draws, cancel exactly.
  """
  model, count = models.logistic(dataset.num_classes), dataset.num_groups

  @jax.jit
  def of(keys: jax.Array, sigma: jax.Array) -> analysis.ByGroup:
    base = common.group_losses(model, optimum, people, count)

    def one(own: jax.Array) -> analysis.ByGroup:
      zeros = jax.tree.map(jnp.zeros_like, optimum)
      drawn = noise.gaussian(zeros, sigma=sigma, key=own)

      def losses(sign: float) -> analysis.ByGroup:
        moved = jax.tree.map(lambda p, z: p + sign * z, optimum, drawn)
        return common.group_losses(model, moved, people, count)

      both = losses(1.0), losses(-1.0)
      return jax.tree.map(lambda a, b, c: (a + b) / 2 - c, *both, base)

    return jax.lax.map(one, keys, batch_size=8)

  drawn = jax.random.split(key, seeds)
  # The same draws, longer or shorter, for every epsilon.
  found = [of(drawn, jnp.float32(sigma)) for sigma in sigmas]
  return jax.tree.map(lambda *v: np.stack([np.asarray(x) for x in v]), *found)


def notes(config: Config) -> list[str]:
  """What the numbers protect, and where the thesis is corrected."""
  return [
    f"Every epsilon is at delta {config.delta:g}, for one row replaced. The "
    f"rows were projected into a ball of radius {config.row_norm:g} sqrt(d), "
    "which the thesis leaves out and the sensitivity needs; it also has a "
    "factor for the bias.",
    "Groups' losses and Hessians are means over their people. Each repetition "
    "is the mean of a noise and its mirror image.",
    common.SCALING_NOTE,
  ]


POINTS = ("data", "epsilon", "group")


def _worst_error(
  labels: Sequence[tuple[Any, ...]], risk: np.ndarray, predicted: np.ndarray
) -> np.ndarray:
  """Largest relative error of the prediction, at the largest epsilon."""
  epsilons = np.array([label[1] for label in labels])
  rows = epsilons == epsilons.max()
  worst: np.ndarray = np.max(np.abs(predicted / risk - 1)[rows], axis=0)
  return worst


def _gap_falls(
  labels: Sequence[tuple[Any, ...]], *risks: np.ndarray
) -> np.ndarray:
  """The gap at the smallest epsilon over that at the largest: the least."""
  gaps = worst_gaps(labels, *risks)
  found = []
  for name in dict.fromkeys(name for name, _ in gaps):
    epsilons = [e for own, e in gaps if own == name]
    found.append(gaps[name, min(epsilons)] / gaps[name, max(epsilons)])
  return np.min(found, axis=0)


STUDY = protocol.Study(
  name="dp_erm.output",
  summary="Output perturbation: excess risk against the Hessian's trace",
  config=Config,
  cells=cells,
  run=run,
  notes=notes,
  claims=(
    Claim(
      "same order",
      "Of two groups of a data set, the one with the larger Hessian trace has "
      "the larger excess risk",
      rank_correlation(
        "trace", "excess_risk", points=POINTS, within=("data", "epsilon"),
        above=0.0,
      ),
      source="Thm. 3.1, Fig. 3.1 and 3.8",
    ),
    Claim(
      "all groups",
      "Across the groups of all data sets, excess risk per variance of the "
      "noise grows with the Hessian trace",
      rank_correlation(
        "trace", "excess_per_variance", points=POINTS, within=("epsilon",),
        above=0.0,
      ),
      source="Thm. 3.1",
    ),
    Claim(
      "less at larger epsilon",
      "The gap shrinks as epsilon grows, in every data set",
      resampled(
        "gap at the smallest epsilon over gap at the largest, least of sets",
        _gap_falls, values=RISKS, points=POINTS, above=1.0,
      ),
      source="Fig. 3.1",
    ),
    Claim(
      "prediction",
      "At the largest epsilon, half the noise's variance times the trace is "
      "within 10% of every group's excess risk",
      resampled(
        "largest relative error of the prediction", _worst_error,
        values=("excess_risk", "predicted"), points=POINTS, below=0.1,
      ),
      source="Thm. 3.1",
    ),
  ),
  figures=(
    Figure(
      "risk_and_trace",
      "Excess risk against the Hessian's trace",
      x="trace",
      y="excess_risk",
      color="epsilon",
      facet="data",
      mark="line",
      log_y=True,
      x_title="trace of the group's Hessian",
      y_title="excess risk",
      caption="Each line joins the groups of one data set at one epsilon: it "
      "rises if the group whose loss bends more pays more.",
    ),
    Figure(
      "risk_and_epsilon",
      "Excess risk of both groups as privacy is relaxed",
      x="epsilon",
      y="excess_risk",
      color="role",
      facet="data",
      mark="line",
      log_x=True,
      log_y=True,
      caption="Mean over repetitions with its 95% interval.",
    ),
  ),
  summaries=(
    Summary(
      "By group",
      by=("data", "epsilon", "group"),
      values=("trace", "input_norm", "excess_risk", "predicted"),
    ),
  ),
)  # fmt: skip
