"""PATE: teachers on disjoint parts vote, noisy votes label, a student learns.

Never computes what a vote cost beyond naming the event: that is `accounting`.
"""

from jaxfair.pate.aggregation import (
  NO_ANSWER,
  confident_gnmax,
  gnmax,
  laplace_max,
  plurality,
  project_to_simplex,
  soft_labels,
)
from jaxfair.pate.answer_log import AnswerLogError
from jaxfair.pate.answerer import Answerer, Answers
from jaxfair.pate.attribute import Protection, vote_guarantee, vote_sigma
from jaxfair.pate.fair import FairAnswers, Outcome, fair_events, fair_gnmax, papers_unsound_events
from jaxfair.pate.fair_grid import FairGrid, FairSettings, fair_query_grid
from jaxfair.pate.rules import ConfidentGnMax, GnMax, LaplaceMax, NoisyVotes, Rule
from jaxfair.pate.sf_pate import SfPate, fair_student, fair_teachers
from jaxfair.pate.sf_release import (
  SfPateConfig,
  SfRelease,
  private_groups,
  private_labels,
  randomized_groups,
)
from jaxfair.pate.sf_votes import estimators
from jaxfair.pate.student import train_student, weighted
from jaxfair.pate.teachers import MissingClassWarning, train_teachers
from jaxfair.pate.votes import predict_votes, vote_counts

__all__ = [
  "NO_ANSWER",
  "AnswerLogError",
  "Answerer",
  "Answers",
  "ConfidentGnMax",
  "FairAnswers",
  "FairGrid",
  "FairSettings",
  "GnMax",
  "LaplaceMax",
  "MissingClassWarning",
  "NoisyVotes",
  "Outcome",
  "Protection",
  "Rule",
  "SfPate",
  "SfPateConfig",
  "SfRelease",
  "confident_gnmax",
  "estimators",
  "fair_events",
  "fair_gnmax",
  "fair_query_grid",
  "fair_student",
  "fair_teachers",
  "gnmax",
  "laplace_max",
  "papers_unsound_events",
  "plurality",
  "predict_votes",
  "private_groups",
  "private_labels",
  "project_to_simplex",
  "randomized_groups",
  "soft_labels",
  "train_student",
  "train_teachers",
  "vote_counts",
  "vote_guarantee",
  "vote_sigma",
  "weighted",
]
