import jax
import numpy as np
import pytest

from jaxfair import fairness
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _confusion

# Three groups by two classes, from appendix H.2 of the FairPATE paper.
H2 = np.array([[324, 287], [420, 274], [445, 250]])


def brute_force(counts, notion, z, k):
  rows = [(g, c) for g, row in enumerate(counts) for c, m in enumerate(row) for _ in range(int(m))]

  def rate(keep):
    chosen = [c for g, c in rows if keep(g)]
    return np.mean([c == k for c in chosen]) if chosen else np.nan

  own = rate(lambda g: g == z)
  if notion == "rest":
    return own - rate(lambda g: g != z)
  if notion == "overall":
    return own - rate(lambda g: True)
  others = [rate(lambda g, other=other: g == other) for other in range(len(counts))]
  return max(abs(own - other) for other in others)


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["rest", "pairwise", "overall"])
@pytest.mark.parametrize("counts", [H2, np.array([[3, 0, 5, 1], [2, 2, 0, 0], [0, 7, 1, 1]])])
def test_agrees_with_counting_people(counts, notion):
  disparity = fairness.demographic_disparity(counts, notion=notion)
  for z, row in enumerate(counts):
    for k in range(len(row)):
      np.testing.assert_allclose(
        disparity[z, k], brute_force(counts, notion, z, k), rtol=1e-5, atol=1e-7
      )


def test_two_groups_rest_is_pairwise_up_to_sign():
  counts = np.array([[3, 1], [5, 7]])
  rest = fairness.demographic_disparity(counts)
  pairwise = fairness.demographic_disparity(counts, notion="pairwise")
  np.testing.assert_allclose(np.abs(rest), pairwise, rtol=1e-6)
  np.testing.assert_allclose(rest[0], [3 / 4 - 5 / 12, 1 / 4 - 7 / 12], rtol=1e-6)


def test_signs_cancel_over_the_classes():
  for notion in ("rest", "overall"):
    disparity = fairness.demographic_disparity(H2, notion=notion)
    np.testing.assert_allclose(disparity.sum(axis=1), 0, atol=1e-6)


def test_its_largest_pairwise_entry_is_the_demographic_parity_difference(people):
  y_true, y_pred, group, _ = people(0, num_classes=3)
  counts = _confusion.prediction_counts(y_pred, sensitive_features=group)
  np.testing.assert_allclose(
    fairness.demographic_disparity(counts, notion="pairwise").max(),
    fairness.demographic_parity_difference(y_true, y_pred, sensitive_features=group),
    rtol=1e-6,
  )


def test_an_empty_side_is_nan():
  counts = np.array([[3, 1], [0, 0], [2, 2]])
  rest = fairness.demographic_disparity(counts)
  assert np.isnan(rest[1]).all()
  np.testing.assert_allclose(rest[[0, 2], 0], [0.25, -0.25])
  assert np.isnan(fairness.demographic_disparity(counts, notion="pairwise")).all()
  skipped = fairness.demographic_disparity(counts, notion="pairwise", skip_empty=True)
  np.testing.assert_allclose(skipped[[0, 2], 0], [0.25, 0.25])
  assert np.isnan(skipped[1]).all()
  alone = fairness.demographic_disparity(np.array([[3, 1], [0, 0]]))
  assert np.isnan(alone).all()  # nobody to compare with
  assert np.isnan(fairness.demographic_disparity(np.zeros((2, 2)), notion="overall")).all()


def test_a_few_people_beside_millions_are_still_compared():
  counts = np.array([[3e7, 0.0], [1.0, 2.0]], np.float32)
  rest = fairness.demographic_disparity(counts)
  np.testing.assert_allclose(rest[0], [2 / 3, -2 / 3], rtol=1e-6)


@pytest.mark.slow
def test_soft_counts_jit_and_vmap():
  soft = np.random.default_rng(0).random((4, 3, 2)).astype(np.float32)
  for notion in ("rest", "pairwise", "overall"):
    one = lambda c, notion=notion: fairness.demographic_disparity(  # noqa: E731
      c, notion=notion
    )
    np.testing.assert_allclose(jax.jit(jax.vmap(one))(soft), [one(c) for c in soft], atol=1e-6)


def test_bad_counts_are_refused():
  with pytest.raises(ArgumentError, match="counts=-1"):
    fairness.demographic_disparity([[1, -1], [2, 2]])
  with pytest.raises(ArgumentError, match="decisions by group and class"):
    fairness.demographic_disparity([1, 2])
  with pytest.raises(ArgumentError, match="did you mean pairwise"):
    fairness.demographic_disparity(H2, notion="pair_wise")
