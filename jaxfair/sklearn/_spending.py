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

from jaxfair.accounting import PrivacyGuarantee, Relation, group_privacy
from jaxfair.accounting._guarantee import round_up


class PrivacySpentWarning(UserWarning):
  """Somebody's record was used by several fits: their epsilons add up.

  Raised by the second fit on the same people, such as in `cross_val_score` or `GridSearchCV`.
  """


# The relations of all methods. A guarantee for one also says something of the later ones; see
# `_restated`.
WEAKER = (Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE, Relation.ATTRIBUTE)


@dataclasses.dataclass(frozen=True)
class _Fit:
  rows: np.ndarray  # sorted digests
  spent: PrivacyGuarantee


class Registry:
  """The fits of a process, as digests of the rows that they read.

  Digests are keyed by a secret of the process, so they tell nothing to anyone who finds them
  without it, and they are never written down.
  """

  def __init__(self) -> None:
    self._fits: list[_Fit] = []
    self._key = secrets.token_bytes(16)
    self._lock = threading.Lock()

  def add(self, x: np.ndarray, y: np.ndarray, spent: PrivacyGuarantee) -> PrivacyGuarantee:
    """Remembers a fit; returns what the person who is in most of them has spent.

    max over rows of (sum of epsilon, sum of delta) over the fits that read this row

    Returns:
      By basic composition (Dwork and Roth 2014, Theorem 3.16), an upper bound that holds however
      the later fits were chosen by looking at the earlier ones. Fits on different people cost the
      largest of their epsilons, not the sum. Fits of several relations are added up for the
      weakest of them. Equal rows of two people count as one person, and a row that was changed in
      between as another: this is a warning, not a proof.
    """
    rows = self._digests(x, y)
    with self._lock:
      # Digests are too far apart for a table of them, which NumPy 2.0 may try and fail at.
      found = [(one.spent, np.isin(rows, one.rows, kind="sort")) for one in self._fits]
      self._fits.append(_Fit(np.unique(rows), spent))
    shared = [(spent, np.ones(len(rows), bool)), *(pair for pair in found if pair[1].any())]
    weakest = max((one.relation for one, _ in shared), key=WEAKER.index)
    epsilon, delta = np.zeros(len(rows)), np.zeros(len(rows))
    for one, there in shared:
      own = _restated(one, weakest)
      epsilon += own.epsilon * there
      delta += own.delta * there
    return dataclasses.replace(
      spent,
      epsilon=float(epsilon.max()),
      delta=min(1.0, float(delta.max())),
      relation=weakest,
      accountant="basic composition",
    )

  def _digests(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[n] 64-bit keyed digests of the rows."""
    joined = np.column_stack([np.asarray(x, np.float32), np.asarray(y, np.float32)])
    lines = (hashlib.blake2b(row.tobytes(), digest_size=8, key=self._key) for row in joined)
    return np.array([int.from_bytes(line.digest(), "big") for line in lines], np.uint64)


def _restated(spent: PrivacyGuarantee, relation: Relation) -> PrivacyGuarantee:
  """The guarantee for neighbors of a weaker relation.

  A person who is replaced is removed and another one is added: two changes, a group of two. A
  person whose attribute changes is replaced by another.
  """
  epsilon, delta = spent.epsilon, spent.delta
  if relation.substitutes and not spent.relation.substitutes:
    epsilon, delta = group_privacy(epsilon=epsilon, delta=delta, size=2)
  return dataclasses.replace(spent, epsilon=epsilon, delta=delta, relation=relation)


FITS = Registry()


def remember(x: np.ndarray, y: np.ndarray, spent: PrivacyGuarantee) -> None:
  """Remembers a fit and warns if earlier ones read some of the same rows."""
  total = FITS.add(x, y, spent)
  if total.epsilon > spent.epsilon:
    warnings.warn(
      f"some of these people were in earlier fits of this process, and together the fits cost "
      f"them epsilon {round_up(total.epsilon)}, delta {round_up(total.delta)} "
      f"({total.accountant}{_other_relation(total, spent)}; this one alone "
      f"{round_up(spent.epsilon)}). Cross-validation and grid search spend on every fit: use "
      "PrivateSearchCV, whose epsilon covers the choice, or public people, or ledger= to enforce "
      "a limit",
      PrivacySpentWarning,
      stacklevel=4,
    )


def _other_relation(total: PrivacyGuarantee, spent: PrivacyGuarantee) -> str:
  if total.relation is spent.relation:
    return ""
  return f", for {total.relation.value} neighbors, whom some of the fits are about"
