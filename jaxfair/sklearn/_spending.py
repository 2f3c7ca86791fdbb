"""What several fits on the same people cost together, noticed within one process.

Every fit spends its epsilon on everybody it was trained on. Cross-validation and grid search fit
many times: a person who is in three training folds pays three times. No estimator can see those
other fits, so this module remembers, for every fit of the process, which rows it read.
"""

import dataclasses
import hashlib
import secrets
import threading
import warnings

import numpy as np

from jaxfair.accounting import PrivacyGuarantee, Relation
from jaxfair.accounting._guarantee import round_up


class PrivacySpentWarning(UserWarning):
  """Somebody's record was used by several fits: their epsilons add up.

  Raised by the second fit on the same people, such as in `cross_val_score` or `GridSearchCV`.
  """


@dataclasses.dataclass(frozen=True)
class _Fit:
  rows: np.ndarray  # sorted digests
  epsilon: float
  delta: float


class Registry:
  """The fits of a process, by relation, as digests of the rows that they read.

  Digests are keyed by a secret of the process, so they tell nothing to anyone who finds them
  without it, and they are never written down.
  """

  def __init__(self) -> None:
    self._fits: dict[Relation, list[_Fit]] = {}
    self._key = secrets.token_bytes(16)
    self._lock = threading.Lock()

  def add(self, x: np.ndarray, y: np.ndarray, spent: PrivacyGuarantee) -> PrivacyGuarantee:
    """Remembers a fit; returns what the person who is in most of them has spent.

    max over rows of (sum of epsilon, sum of delta) over the fits that read this row

    Returns:
      By basic composition (Dwork and Roth 2014, Theorem 3.16), an upper bound that holds however
      the later fits were chosen by looking at the earlier ones. Fits on different people cost the
      largest of their epsilons, not the sum. Equal rows of two people count as one person, and a
      row that was changed in between as another: this is a warning, not a proof.
    """
    rows = self._digests(x, y)
    with self._lock:
      fits = self._fits.setdefault(spent.relation, [])
      epsilon = np.full(len(rows), spent.epsilon)
      delta = np.full(len(rows), spent.delta)
      for fit in fits:
        # Digests are too far apart for a table of them, which NumPy 2.0 may try and fail at.
        found = np.isin(rows, fit.rows, kind="sort")
        epsilon += fit.epsilon * found
        delta += fit.delta * found
      fits.append(_Fit(np.unique(rows), spent.epsilon, spent.delta))
    return dataclasses.replace(
      spent, epsilon=float(epsilon.max()), delta=float(delta.max()), accountant="basic composition"
    )

  def _digests(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[n] 64-bit keyed digests of the rows."""
    joined = np.column_stack([np.asarray(x, np.float32), np.asarray(y, np.float32)])
    lines = (hashlib.blake2b(row.tobytes(), digest_size=8, key=self._key) for row in joined)
    return np.array([int.from_bytes(line.digest(), "big") for line in lines], np.uint64)


FITS = Registry()


def remember(x: np.ndarray, y: np.ndarray, spent: PrivacyGuarantee) -> None:
  """Remembers a fit and warns if earlier ones read some of the same rows."""
  total = FITS.add(x, y, spent)
  if total.epsilon > spent.epsilon:
    warnings.warn(
      f"some of these people were in earlier fits of this process, and together the fits cost "
      f"them epsilon {round_up(total.epsilon)}, delta {round_up(total.delta)} ({total.accountant}; "
      f"this one alone {round_up(spent.epsilon)}). Cross-validation and grid search spend on "
      "every fit: use PrivateSearchCV, whose epsilon covers the choice, or public people, or "
      "ledger= to enforce a limit",
      PrivacySpentWarning,
      stacklevel=4,
    )
