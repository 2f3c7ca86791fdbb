"""PATE: what the number of teachers does to flips, students and groups."""

from jaxfair import experiments as ex
from jaxfair.studies.pate import ensembles, penalty

SOURCE = "Fig. 4, 10; thesis 4.3, 4.12"
STUDY = ensembles.study(
  "pate.teachers",
  "PATE students against the number of teachers",
  penalty.Config,
  penalty.run,
  notes=penalty.notes,
  summaries=(penalty.SUMMARY,),
  claims=penalty.trends(
    "teachers",
    {"penalty": min},
    {
      "flips: Labels of more teachers are flipped less often [Fig. 3, 9; thesis 4.4, 4.11]": (
        "flip_probability",
        "falls",
      ),
      f"deviation: With more teachers noise moves the student less [{SOURCE}]": (
        "deviation",
        "falls",
      ),
      f"gap: More teachers narrow the gap of excess risks [{SOURCE}]": ("gap", "falls"),
      "accuracy: More teachers make the student more accurate [Fig. 4]": ("accuracy", "rises"),
    },
  ),
  figures=(
    ex.lines(
      "flips: How likely noise flips a label",
      "flip_probability ~ teachers, data",
      "Mean over the public people, exact for their votes.",
      where=penalty.ALL,
    ),
    *penalty.lines("teachers", "penalty"),
  ),
)
