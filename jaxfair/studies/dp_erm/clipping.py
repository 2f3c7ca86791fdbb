"""DP-SGD with different clip bounds: gradient norms and excess risk (figures 3.3, 3.10)."""

import numpy as np

from jaxfair import experiments as ex
from jaxfair._fields import Compared
from jaxfair.experiments import _statistics, _study
from jaxfair.studies.dp_erm import networks
from jaxfair.studies.dp_erm.networks import END


class Config(networks.NetworkConfig):
  """Settings: which clip bounds are compared."""

  clips: Compared[ex.Positive] = (0.01, 0.1, 1.0, 10.0)


def run(config: Config, cell: _study.Cell, context: _study.Context) -> ex.Table:
  """All clip bounds and seeds of one data set in one program."""
  made = networks.set_up(config, cell, context)
  (losses, norms), accuracy = made.train(made.losses_and_norms, config.clips)
  measured = {"gradient_norm": norms.group, networks.PRIVATE: accuracy}
  table = made.rows({"clip": config.clips}, {**made.excess(losses), **measured})
  return networks.with_panels(table, lambda row: f"C = {row['clip']:g}")


FALLING = _statistics.of_points(
  "gradient norm with the largest clip bound over that with the smallest, largest of all groups",
  lambda labels, norm: norm[-1] / norm[0],
  values=("gradient_norm",),
  points=("data", "group", "clip"),
  within=("data", "group"),
  over=np.max,
).at(clip=lambda clips: (min(clips), max(clips)), **END)
TOGETHER = ex.correlation(
  "gradient_norm",
  "excess_risk",
  points=("data", "clip", "group"),
  within=("data", "clip"),
  over=np.min,
).at(**END)

STUDY = networks.study(
  name="dp_erm.clipping",
  summary="What clip bounds do to gradient norms and excess risks",
  config=Config,
  run=run,
  claims={
    "norms fall: Gradient norms at the end of training are smaller with the largest clip bound "
    "than with the smallest, in every group of every data set [Fig. 3.3; Fig. 3.10]": FALLING < 1,
    "larger norms pay: Of two groups, the one with larger gradient norms has the larger excess "
    "risk, on every data set and with every clip bound [Fig. 3.3; Fig. 3.10]": TOGETHER > 0,
  },
  figures=(
    ex.lines(
      "norms: Gradient norms along training",
      "gradient_norm ~ step, role | panel",
      "Mean norm of the people's gradients before clipping.",
      y_title="mean gradient norm",
    ),
    ex.lines(
      "risks: Excess risk along training",
      "excess_risk ~ step, role | panel",
      "Loss above that of plain training.",
      zero=True,
    ),
  ),
  summaries=(
    ex.summary(
      "At the end of training",
      f"gradient_norm, excess_risk, {networks.PRIVATE} ~ data, clip, group",
      END,
    ),
  ),
)
