"""What the frontier study draws: figures 7 to 9, and the penalty's place."""

from typing import Any

from jaxfair.studies.fairpate.claims import PLACEMENTS
from jaxfair.studies.protocol import Figure


def _figure(name: str, title: str, y: str, **more: Any) -> Figure:
  return Figure(
    name, title, x="epsilon", y=y, mark="line", color="method",
    facet="margin", log_x=True,
    caption="Of a method with several weights lam: the mean over them.", **more,
  )  # fmt: skip


def _over_margins(name: str, title: str, y: str, caption: str) -> Figure:
  return Figure(
    name, title, x="max_gap", y=y, mark="line", color="method",
    facet="epsilon", caption=caption,
  )  # fmt: skip


def _placements(name: str, title: str, y: str) -> Figure:
  return Figure(
    name, title, x="lam", y=y, mark="line", color="method", facet="epsilon",
    where={"method": PLACEMENTS},
    caption="FairDP-SGD with its penalty after the noise and inside the clip, "
    "everybody answered.",
  )  # fmt: skip


FIGURES = (
  _figure("accuracy", "Accuracy of those answered", "accuracy"),
  _figure("coverage", "Share of people answered", "coverage"),
  _figure("gap", "Disparity of those answered", "gap", reference=0.0),
  _figure("raw_accuracy", "Accuracy without abstention", "raw_accuracy"),
  _figure("raw_gap", "Disparity without abstention", "raw_gap"),
  _over_margins(
    "margin",
    "Disparity over the margin, without abstention",
    "raw_gap",
    "Of everybody: above the margin the labels kept it and the student "
    "does not.",
  ),
  _over_margins(
    "margin_kept",
    "Disparity over the margin, with abstention",
    "gap",
    "Of those answered: below the margin, unless the cold start broke it.",
  ),
  _placements("lam_accuracy", "Accuracy over the penalty", "raw_accuracy"),
  _placements("lam_gap", "Disparity over the penalty", "raw_gap"),
)
