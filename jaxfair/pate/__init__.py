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
from jaxfair.pate.fair import (
  FairAnswers,
  Outcome,
  fair_events,
  fair_gnmax,
  papers_unsound_events,
)
from jaxfair.pate.fair_grid import FairGrid, FairSettings, fair_query_grid
from jaxfair.pate.rules import (
  ConfidentGnMax,
  GnMax,
  LaplaceMax,
  NoisyVotes,
  Rule,
)
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
  "Rule",
  "confident_gnmax",
  "fair_events",
  "fair_gnmax",
  "fair_query_grid",
  "gnmax",
  "laplace_max",
  "papers_unsound_events",
  "plurality",
  "predict_votes",
  "project_to_simplex",
  "soft_labels",
  "train_student",
  "train_teachers",
  "vote_counts",
  "weighted",
]
