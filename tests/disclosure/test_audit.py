"""Leakage by group, against a hand count."""

import numpy as np
import pytest

from jaxfair import disclosure


@pytest.mark.slow
def test_groups_and_everyone_are_counted():
  groups, everyone = disclosure.audit(
    count=np.array([0, 2, 4, 1]),
    label=np.array([0, 1, 1, 0]),
    full_label=np.array([0, 1, 0, 1]),
    y=np.array([0, 1, 0, 0]),
    group=np.array([0, 0, 1, 1]),
    num_questions=4,
    num_groups=3,
  )
  np.testing.assert_allclose(groups.leakage, [1.0, 2.5, np.nan])
  np.testing.assert_allclose(groups.share, [0.25, 0.625, np.nan])
  np.testing.assert_allclose(groups.nothing, [0.5, 0.0, np.nan])
  np.testing.assert_allclose(groups.accuracy, [1.0, 0.5, np.nan])
  np.testing.assert_allclose(groups.accuracy_lost, [0.0, 0.0, np.nan])
  np.testing.assert_allclose(groups.agreement, [1.0, 0.0, np.nan])
  assert groups.count.tolist() == [2, 2, 0]
  assert float(everyone.leakage) == 1.75
  assert float(everyone.agreement) == 0.5
  assert int(everyone.count) == 4
