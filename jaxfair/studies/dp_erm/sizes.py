"""Does it matter how many people of a group there are? (figure 3.12)

People are drawn so that the groups have given ratios of sizes. All trainings have the same number
of people, so they share one program and one noise.
"""

from typing import Annotated

import jax
import numpy as np

from jaxfair import _fields, checks, data
from jaxfair import experiments as ex
from jaxfair.experiments import _claims, _statistics, _study
from jaxfair.studies.dp_erm import common, networks

Ratio = Annotated[float, _fields.Within(0.0, 1.0, open_low=True)]


class Config(networks.NetworkConfig):
  """Settings."""

  ratios: ex.Sweep[Ratio] = (0.1, 0.3, 1.0)  # people of the minority per person of the majority
  people: int = 2000  # drawn for every ratio

  def check(self) -> None:
    """Batches are drawn from the people; ratios are compared."""
    super().check()
    checks.integer("people", self.people, low=self.training.batch_size)
    checks.require(len(self.ratios) > 1, "ratios needs at least two values to compare")


def _precheck(config: Config, *people: data.Dataset) -> None:
  """Every set has two groups, which are large enough for every ratio."""
  for one in people:
    sizes = [*one.group_sizes.values()]
    checks.require(len(sizes) == 2, f"{one.name} has {len(sizes)} groups; this study compares two")
    for ratio in config.ratios:
      major, minor = _sizes(config, ratio)
      checks.require(
        major <= max(sizes) and minor <= min(sizes),
        f"people={config.people} at ratio {ratio:g} needs {major} and {minor} people, but "
        f"{one.name} has {max(sizes)} and {min(sizes)}; ask for fewer people",
      )


def _sizes(config: Config, ratio: float) -> tuple[int, int]:
  """How many of the majority and of the minority."""
  minority = round(config.people * ratio / (1 + ratio))
  return config.people - minority, minority


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All seeds of one data set at one ratio, in one program."""
  choose = _chooser(config, float(cell["ratio"]))
  sample = common.draw(config, cell, context, choose=choose)
  made = networks.set_up(config, cell, context, sample)
  losses, norms = made.train(made.losses_and_norms)
  risk = made.excess(losses)["excess_risk"]
  ends = {"excess_risk": risk[0, :, -1], "gradient_norm": norms.group[0, :, -1]}
  return sample.rows(cell, {"seed": range(config.seeds)}, ends)


def _chooser(config: Config, ratio: float) -> common.Choose:
  """Picks rows so that the sizes of the groups have the ratio."""

  def choose(group: np.ndarray, key: jax.Array) -> np.ndarray:
    order = np.asarray(jax.random.permutation(key, len(group)))
    larger_first = np.argsort(-np.bincount(group, minlength=2), kind="stable")
    rows = [
      order[group[order] == which][:count]
      for which, count in zip(larger_first, _sizes(config, ratio), strict=True)
    ]
    return np.concatenate(rows)

  return choose


def _range(column: str) -> _claims.Statistic:
  """Range of a group's means over the ratios, over their mean."""
  return _statistics.of_points(
    f"range of {column.replace('_', ' ')} over ratios, over its mean, largest of the groups",
    lambda labels, values: np.ptp(values, 0) / np.abs(values.mean(axis=0)),
    values=(column,),
    points=("data", "group", "ratio"),
    within=("data", "group"),
    over=np.max,
  )


STUDY = networks.study(
  name="dp_erm.sizes",
  summary="Does the relative size of a group decide what it pays?",
  config=Config,
  cells=ex.grid(data="sets", ratio="ratios"),
  run=run,
  precheck=_precheck,
  claims={
    "risk: The relative size of the groups hardly moves their excess risk: by less than a quarter "
    "[Fig. 3.12]": _range("excess_risk") < 0.25,
    "norms: The relative size of the groups hardly moves their gradient norms: by less than a "
    "quarter [Fig. 3.12]": _range("gradient_norm") < 0.25,
  },
  figures=tuple(
    ex.lines(told, f"{y} ~ ratio, role | data", "At the end of training.", log="x")
    for told, y in (
      ("norms: Gradient norms and group sizes", "gradient_norm"),
      ("risks: Excess risk and group sizes", "excess_risk"),
    )
  ),
  titles={"ratio": "minority over majority"},
  summaries=(
    ex.summary("At the end of training", "gradient_norm, excess_risk ~ data, ratio, group"),
  ),
)
