"""PATE: what the number of teachers does to flips, students and groups."""

from jaxfair.experiments import Figure
from jaxfair.studies.pate import ensembles, penalty

FLIPS = "Labels of more teachers are flipped less often"
DEVIATION = "With more teachers noise moves the student less"
GAP = "More teachers narrow the gap of excess risks"
ACCURACY = "More teachers make the student more accurate"
SOURCE = "Fig. 4, 10; thesis 4.3, 4.12"

STUDY = ensembles.study(
  "pate.teachers",
  "PATE students against the number of teachers",
  penalty.Config,
  penalty.run,
  notes=penalty.notes,
  summaries=(penalty.SUMMARY,),
  claims=penalty.trend_claims(
    "teachers",
    {"penalty": min},
    (
      ("flips", "flip_probability", "falls", FLIPS, "Fig. 3, 9; thesis 4.4, 4.11"),
      ("deviation", "deviation", "falls", DEVIATION, SOURCE),
      ("gap", "gap", "falls", GAP, SOURCE),
      ("accuracy", "accuracy", "rises", ACCURACY, "Fig. 4"),
    ),
  ),
  figures=(
    Figure(
      "flips",
      "How likely noise flips a label",
      "teachers",
      "flip_probability",
      "line",
      "data",
      where=penalty.ALL,
      caption="Mean over the public people, exact for their votes.",
    ),
    *penalty.lines("teachers", "penalty"),
  ),
)
