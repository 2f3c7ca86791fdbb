"""PATE: what the student's penalty does to deviation, gap and accuracy."""

from jaxfair.studies.pate.sweep import figures, sweep, trend_on_each
from jaxfair.studies.protocol import Claim

SOURCE = "Fig. 2, 8; thesis 4.3, 4.10"


STUDY = sweep(
  "pate.penalty",
  "PATE students against the penalty on their parameters",
  claims=(
    Claim(
      "deviation",
      "A larger penalty moves the student less",
      trend_on_each("deviation", "penalty", rises=False, other="teachers"),
      SOURCE,
    ),
    Claim(
      "gap",
      "A larger penalty narrows the gap of excess risks",
      trend_on_each("gap", "penalty", rises=False, other="teachers"),
      SOURCE,
    ),
    Claim(
      "accuracy",
      "A larger penalty costs accuracy",
      trend_on_each("accuracy", "penalty", rises=False, other="teachers"),
      SOURCE,
    ),
  ),
  figures=figures("penalty", "teachers", log_x=True),
)
