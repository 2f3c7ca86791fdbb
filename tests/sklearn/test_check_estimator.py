"""scikit-learn's own checks, for every estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from jaxfair.sklearn import (
  FairPrivateClassifier,
  PateClassifier,
  PrivateClassifier,
  PrivateSearchCV,
  RangeScaler,
)

WIDE = (-100.0, 100.0)
ESTIMATORS = [
  PrivateClassifier(random_state=0),
  FairPrivateClassifier(random_state=0),
  PateClassifier(random_state=0, bounds=WIDE),
  PrivateSearchCV({"learning_rate": [1.0, 4.0]}, random_state=0),
  RangeScaler(WIDE),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaxfair.sklearn.PrivacySpentWarning")
@pytest.mark.filterwarnings("ignore:fit got no groups")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check, instant):
  check(estimator)
