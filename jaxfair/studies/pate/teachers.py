"""PATE: what the number of teachers does to flips, students and groups."""

from jaxfair.studies.pate.sweep import ALL, figures, sweep, trend_on_each
from jaxfair.studies.protocol import Claim, Figure

SOURCE = "Fig. 4, 10; thesis 4.3, 4.12"


STUDY = sweep(
  "pate.teachers",
  "PATE students against the number of teachers",
  claims=(
    Claim(
      "flips",
      "Labels of more teachers are flipped less often",
      trend_on_each(
        "flip_probability", "teachers", rises=False, other="penalty"
      ),
      "Fig. 3, 9; thesis 4.4, 4.11",
    ),
    Claim(
      "deviation",
      "With more teachers noise moves the student less",
      trend_on_each("deviation", "teachers", rises=False, other="penalty"),
      SOURCE,
    ),
    Claim(
      "gap",
      "More teachers narrow the gap of excess risks",
      trend_on_each("gap", "teachers", rises=False, other="penalty"),
      SOURCE,
    ),
    Claim(
      "accuracy",
      "More teachers make the student more accurate",
      trend_on_each("accuracy", "teachers", rises=True, other="penalty"),
      "Fig. 4",
    ),
  ),
  figures=(
    Figure(
      "flips",
      "How likely noise flips a label",
      x="teachers",
      y="flip_probability",
      mark="line",
      color="data",
      y_title="flip probability",
      where=ALL,
      caption="Mean over the public people, exact for their votes.",
    ),
    *figures("teachers", "penalty"),
  ),
)
