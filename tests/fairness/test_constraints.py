"""Differentiable notions, against fairlearn, NumPy and finite differences."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fairlearn import metrics as fairlearn

from jaxfair import checks, models, privacy
from jaxfair.fairness import constraints


def draw(n=300, num_classes=2, num_groups=3, seed=0):
  rng = np.random.default_rng(seed)
  scores = rng.normal(size=(n, num_classes)).astype(np.float32)
  group = rng.integers(0, num_groups, n).astype(np.int32)
  scores[:, 0] -= 0.5 * group  # groups differ
  y = rng.integers(0, num_classes, n).astype(np.int32)
  return scores, y, group


@functools.partial(jax.jit, static_argnums=0)
def look(notion, scores, y, group, weights=None):
  return notion(scores, y, group, weights)


def by_hand(values, keep, group, num_groups):
  """[G] means of groups minus the mean of all, one group after the other."""
  return [values[keep & (group == a)].mean() - values[keep].mean() for a in range(num_groups)]


def softmax(scores):
  odds = np.exp(scores - scores.max(axis=1, keepdims=True))
  return odds / odds.sum(axis=1, keepdims=True)


def test_either_half_may_be_asked_for_alone():
  scores, y, group = draw()
  notion = constraints.equalized_odds(3)
  whole = look(notion, scores, y, group)
  soft, hard = jax.jit(lambda *people: (notion.soft(*people), notion.hard(*people)))(
    scores, y, group
  )
  np.testing.assert_array_equal(soft.value, whole.value)
  np.testing.assert_array_equal(hard.measured, whole.measured)
  for half in (soft, hard):
    np.testing.assert_array_equal(half.people, whole.people)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("notion", "difference"),
  [
    (constraints.demographic_parity(3), fairlearn.demographic_parity_difference),
    (constraints.equalized_odds(3), fairlearn.equalized_odds_difference),
    (constraints.equal_opportunity(3), fairlearn.equal_opportunity_difference),
  ],
)
def test_the_largest_gap_of_decisions_is_fairlearn_s(notion, difference):
  scores, y, group = draw()
  wanted = difference(y, scores.argmax(1), sensitive_features=group, method="to_overall")
  found = jax.jit(notion.largest)(scores, y, group)
  np.testing.assert_allclose(found, wanted, atol=1e-6)
  measured = look(notion, scores, y, group).measured
  np.testing.assert_allclose(np.max(measured), wanted, atol=1e-6)


def test_soft_gaps_are_those_of_probabilities():
  scores, y, group = draw()
  chance = softmax(2 * scores)[:, 1]
  everyone = np.ones(len(y), bool)
  wanted = by_hand(chance, everyone, group, 3)
  notion = constraints.demographic_parity(3, sharpness=2.0)
  found = look(notion, scores, y, group)
  both = np.concatenate([wanted, np.negative(wanted)])
  np.testing.assert_allclose(found.value, both, atol=1e-6)
  notion = constraints.demographic_parity(3, sharpness=2.0, sides="absolute")
  np.testing.assert_allclose(look(notion, scores, y, group).value, np.abs(wanted), atol=1e-6)


@pytest.mark.slow
def test_every_class_and_stratum_is_compared():
  scores, y, group = draw(num_classes=4)
  chance, everyone = softmax(scores), np.ones(len(y), bool)
  odds = look(constraints.equalized_odds(3, 4, sides="absolute"), scores, y, group)
  wanted = [[by_hand(chance[:, k], y == label, group, 3) for k in range(4)] for label in range(4)]
  wanted = np.moveaxis(np.array(wanted), 1, 2)  # strata, groups, classes
  np.testing.assert_allclose(odds.value, np.abs(wanted).ravel(), atol=1e-6)
  assert odds.people.shape == odds.value.shape == odds.measured.shape
  right = chance[np.arange(len(y)), y]
  parity = constraints.accuracy_parity(3, 4, sides="absolute")
  wanted = np.abs(by_hand(right, everyone, group, 3))
  found = look(parity, scores, y, group)
  np.testing.assert_allclose(found.value, wanted, atol=1e-6)
  hard = np.abs(by_hand(scores.argmax(1) == y, everyone, group, 3))
  np.testing.assert_allclose(found.measured, hard, atol=1e-6)
  opportunity = constraints.equal_opportunity(3, 4, sides="absolute")
  wanted = [np.abs(by_hand(right, y == k, group, 3)) for k in range(4)]
  np.testing.assert_allclose(look(opportunity, scores, y, group).value, np.ravel(wanted), atol=1e-6)


def test_moments_and_losses():
  scores, y, group = draw()
  everyone = np.ones(len(y), bool)
  chance = softmax(scores)[:, 1]
  notion = constraints.generalized_demographic_parity(3, moments=2, sides="absolute")
  wanted = [by_hand(chance**h, everyone, group, 3) for h in (1, 2)]
  found = look(notion, scores, y, group)
  np.testing.assert_allclose(found.value, np.abs(np.array(wanted).T.ravel()), atol=1e-6)
  np.testing.assert_array_equal(found.value, found.measured)
  notion = constraints.equal_losses(3, models.cross_entropy, sides="absolute")
  losses = -np.log(softmax(scores)[np.arange(len(y)), y])
  np.testing.assert_allclose(
    look(notion, scores, y, group).value, np.abs(by_hand(losses, everyone, group, 3)), atol=1e-5
  )


@pytest.mark.slow
def test_an_empty_group_contributes_nothing_and_is_counted():
  scores, y, group = draw(num_groups=2)
  three, two = constraints.equalized_odds(3), constraints.equalized_odds(2)

  @functools.partial(jax.jit, static_argnums=1)
  @jax.grad
  def slope(scores, notion):
    return jnp.sum(jnp.square(look(notion, scores, y, group).value))

  found = look(three, scores, y, group)
  count = np.reshape(found.people, (2, 2, 3))  # sides, strata, groups
  assert (count[..., 2] == 0).all()
  assert (count[..., :2] > 0).all()
  assert (np.reshape(found.value, (2, 2, 3))[..., 2] == 0).all()
  found = slope(scores, three)
  np.testing.assert_allclose(found, slope(scores, two), atol=1e-7)
  assert np.abs(found).max() > 0
  nobody = look(three, scores[:0], y[:0], group[:0])
  assert (nobody.value == 0).all()
  assert (nobody.people == 0).all()


def test_the_gradient_is_that_of_differences():
  scores, y, group = draw(n=12)
  notion = constraints.demographic_parity(3, sharpness=3.0)

  @jax.jit
  def first(scores):
    return look(notion, scores, y, group).value[1]

  slope, step = jax.jit(jax.grad(first))(scores), 1e-2
  for i, k in ((0, 0), (5, 1), (11, 0)):
    moved = [scores.copy(), scores.copy()]
    moved[0][i, k] += step
    moved[1][i, k] -= step
    wanted = (first(moved[0]) - first(moved[1])) / (2 * step)
    np.testing.assert_allclose(slope[i, k], wanted, atol=2e-4)


def test_weights_of_zero_leave_rows_out_and_strangers_are_in_no_group():
  scores, y, group = draw()
  keep = np.arange(len(y)) % 3 > 0
  notion = constraints.equalized_odds(3)
  wanted = look(notion, scores[keep], y[keep], group[keep])
  found = look(notion, scores, y, group, keep.astype(np.float32))
  np.testing.assert_allclose(found.value, wanted.value, atol=1e-6)
  stranger = np.where(keep, group, -1)
  found = look(notion, scores, y, stranger)
  np.testing.assert_allclose(found.value, wanted.value, atol=1e-6)


@pytest.mark.slow
def test_known_noise_is_taken_out_again():
  n, epsilon = 400_000, 1.0
  rng = np.random.default_rng(3)
  group = rng.choice(3, n, p=[0.5, 0.3, 0.2]).astype(np.int32)
  y = rng.integers(0, 2, n).astype(np.int32)
  scores = np.zeros((n, 2), np.float32)
  scores[:, 1] = 2 * (rng.random(n) < 0.2 + 0.2 * group) - 1
  reports = privacy.randomized_response(
    group, epsilon=epsilon, num_categories=3, key=jax.random.key(4)
  )
  matrix = privacy.response_matrix(epsilon=epsilon, num_categories=3)
  plain = constraints.demographic_parity(3)
  mended = constraints.corrected(plain, matrix)
  truth = look(plain, scores, y, group).measured[:3]
  # A mean's standard error is below 0.5 / sqrt(n_a), with n_a >= 0.2 n; the
  # inverse has entries below 4.4, and 6 deviations leave 1e-8 to chance.
  error = 6 * 4.4 * 3 * 0.5 / np.sqrt(0.2 * n)
  assert np.abs(look(mended, scores, y, reports).measured[:3] - truth).max() < error
  assert np.abs(look(plain, scores, y, reports).measured[:3] - truth).max() > 0.05
  # Reports without noise: nothing to mend.
  same = constraints.corrected(plain, np.eye(3))
  np.testing.assert_allclose(look(same, scores, y, group).measured[:3], truth)


def test_equal_arguments_give_equal_notions():
  make = constraints.demographic_parity
  assert make(2) == make(2)
  assert hash(make(2)) == hash(make(2))
  assert make(2) != make(2, sharpness=2.0)


def test_what_makes_no_sense_is_refused():
  scores, y, group = draw()
  with pytest.raises(checks.ArgumentError, match="num_groups=0"):
    constraints.demographic_parity(0)
  with pytest.raises(checks.ArgumentError, match="sharpness=0"):
    constraints.demographic_parity(2, sharpness=0)
  with pytest.raises(checks.ArgumentError, match=r"logits \[n, 3\]"):
    constraints.demographic_parity(3, 3)(scores, y, group)
  with pytest.raises(checks.ArgumentError, match="use one of absolute, both"):
    constraints.demographic_parity(2, sides="left")
  with pytest.raises(checks.ArgumentError, match=r"response .* \[3, 3\]"):
    constraints.corrected(constraints.demographic_parity(3), np.eye(2))
