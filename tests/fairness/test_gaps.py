import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import fairness
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _gaps

RATES = jnp.array([0.2, 0.5, 0.4])
OVERALL = jnp.array(0.4)


@pytest.mark.slow
def test_by_hand():
  np.testing.assert_allclose(fairness.difference(RATES), 0.3, rtol=1e-6)
  np.testing.assert_allclose(
    fairness.difference(RATES, OVERALL, method="to_overall"), 0.2, rtol=1e-6
  )
  np.testing.assert_allclose(_gaps.ratio(RATES), 0.4, rtol=1e-6)
  np.testing.assert_allclose(_gaps.ratio(RATES, OVERALL, method="to_overall"), 0.5, rtol=1e-6)
  np.testing.assert_allclose(  # the group above everybody is the furthest
    _gaps.ratio(jnp.array([0.4, 0.9]), OVERALL, method="to_overall"), 0.4 / 0.9, rtol=1e-6
  )


@pytest.mark.slow
@pytest.mark.parametrize("gap", [fairness.difference, _gaps.ratio])
@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
def test_an_unknown_group_makes_the_gap_unknown_unless_skipped(gap, method):
  with_empty = jnp.append(RATES, jnp.nan)
  assert np.isnan(gap(with_empty, OVERALL, method=method))
  np.testing.assert_allclose(
    gap(with_empty, OVERALL, method=method, skip_empty=True), gap(RATES, OVERALL, method=method)
  )
  nobody = jnp.full(3, jnp.nan)
  assert np.isnan(gap(nobody, jnp.nan, method=method, skip_empty=True))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
def test_equal_groups_and_single_groups_have_no_gap(method):
  for rates in (jnp.full(4, 0.3), jnp.full(1, 0.3)):
    overall = jnp.array(0.3)
    assert fairness.difference(rates, overall, method=method) == 0
    assert _gaps.ratio(rates, overall, method=method) == 1


@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
def test_a_ratio_of_zeros_is_not_known(method):
  assert np.isnan(_gaps.ratio(jnp.zeros(2), jnp.zeros(()), method=method))


def test_a_group_at_zero_has_ratio_zero():
  rates = jnp.array([0.0, 0.4])
  assert _gaps.ratio(rates) == 0
  assert _gaps.ratio(rates, jnp.array(0.2), method="to_overall") == 0


def test_further_axes_are_separate_gaps():
  rates = jnp.stack([RATES, 2 * RATES], axis=1)
  np.testing.assert_allclose(fairness.difference(rates), [0.3, 0.6], rtol=1e-6)


def test_to_overall_needs_the_overall():
  with pytest.raises(ArgumentError, match="pass overall"):
    fairness.difference(RATES, method="to_overall")


def test_the_gradient_of_a_skipped_group_is_clean():
  gradient = jax.grad(lambda r: fairness.difference(r, skip_empty=True))(
    jnp.array([0.2, jnp.nan, 0.5])
  )
  np.testing.assert_allclose(gradient, [-1, 0, 1])
