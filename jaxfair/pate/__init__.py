"""PATE: teachers trained on disjoint parts vote, noisy votes label queries, a student learns.

This package names the event of a vote; `accounting` computes what it costs.
"""

from jaxfair.pate._aggregation import NO_ANSWER, gnmax, soft_labels
from jaxfair.pate._answerer import Answerer
from jaxfair.pate._fair import Outcome, fair_events, fair_gnmax
from jaxfair.pate._rules import ConfidentGnMax, GnMax, LaplaceMax, NoisyVotes
from jaxfair.pate._sf_pate import fair_student, fair_teachers
from jaxfair.pate._sf_release import SfPateConfig, private_groups, randomized_groups
from jaxfair.pate._sf_votes import estimators
from jaxfair.pate._student import train_student
from jaxfair.pate._teachers import train_teachers
from jaxfair.pate._votes import predict_votes, vote_counts

__all__ = [
  "NO_ANSWER",
  "Answerer",
  "ConfidentGnMax",
  "GnMax",
  "LaplaceMax",
  "NoisyVotes",
  "Outcome",
  "SfPateConfig",
  "estimators",
  "fair_events",
  "fair_gnmax",
  "fair_student",
  "fair_teachers",
  "gnmax",
  "predict_votes",
  "private_groups",
  "randomized_groups",
  "soft_labels",
  "train_student",
  "train_teachers",
  "vote_counts",
]
