"""Private and fair classifiers for scikit-learn, as thin shells over `methods`.

    model = make_pipeline(RangeScaler((0, 100)), PrivateClassifier(epsilon=1.0)).fit(x, y)
    model[-1].privacy_  # epsilon, for whom, and what is taken to be public

Needs scikit-learn: `pip install 'jaxfair[sklearn]'`.
"""

import importlib.util

if importlib.util.find_spec("sklearn") is None:
  raise ModuleNotFoundError(
    "jaxfair.sklearn needs scikit-learn; install it with `pip install 'jaxfair[sklearn]'`"
  )

from jaxfair.sklearn._classifiers import FairPrivateClassifier, PateClassifier, PrivateClassifier
from jaxfair.sklearn._ranges import RangeScaler
from jaxfair.sklearn._search import PrivateSearchCV
from jaxfair.sklearn._spending import PrivacySpentWarning

__all__ = [
  "FairPrivateClassifier",
  "PateClassifier",
  "PrivacySpentWarning",
  "PrivateClassifier",
  "PrivateSearchCV",
  "RangeScaler",
]
