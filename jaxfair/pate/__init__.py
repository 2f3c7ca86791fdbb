"""PATE: teachers on disjoint parts vote, noisy votes label, a student learns.

Never computes what a vote cost beyond naming the event: that is `accounting`.
"""

from jaxfair.pate._aggregation import (
  NO_ANSWER,
  confident_gnmax,
  gnmax,
  laplace_max,
  plurality,
  project_to_simplex,
  soft_labels,
)
from jaxfair.pate._answer_log import AnswerLogError
from jaxfair.pate._answerer import Answerer, Answers
from jaxfair.pate._attribute import Protection, vote_guarantee, vote_sigma
from jaxfair.pate._fair import FairAnswers, Outcome, fair_events, fair_gnmax, papers_unsound_events
from jaxfair.pate._fair_grid import FairGrid, FairSettings, fair_query_grid
from jaxfair.pate._rules import ConfidentGnMax, GnMax, LaplaceMax, NoisyVotes, Rule
from jaxfair.pate._sf_pate import SfPate, fair_student, fair_teachers
from jaxfair.pate._sf_release import (
  SfPateConfig,
  SfRelease,
  private_groups,
  private_labels,
  randomized_groups,
)
from jaxfair.pate._sf_votes import estimators
from jaxfair.pate._student import train_student, weighted
from jaxfair.pate._teachers import MissingClassWarning, train_teachers
from jaxfair.pate._votes import predict_votes, vote_counts

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
