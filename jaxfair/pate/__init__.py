"""PATE: teachers on disjoint parts vote, noisy votes label, a student learns.

Never computes what a vote cost beyond naming the event: that is `accounting`.
"""

from jaxfair.pate.teachers import MissingClassWarning, train_teachers
from jaxfair.pate.votes import predict_votes, vote_counts

__all__ = [
  "MissingClassWarning",
  "predict_votes",
  "train_teachers",
  "vote_counts",
]
