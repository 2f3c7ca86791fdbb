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


FEW = dict.fromkeys(
  (
    "check_classifier_data_not_an_array",
    "check_estimators_nan_inf",
    "check_fit2d_1feature",
    "check_n_features_in_after_fitting",
  ),
  "fits fewer than twenty people, and two teachers need ten each",
)


def expected_failures(estimator):
  """The list of exceptions in docs/sklearn.md."""
  return FEW if isinstance(estimator, PateClassifier) else {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::jaxfair.sklearn.PrivacySpentWarning")
@pytest.mark.filterwarnings("ignore:fit got no groups")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check, instant):
  check(estimator)
