import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import fairness
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _groups

RATES = ["selection_rate", "true_positive_rate", "false_positive_rate"]


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("num_classes", [2, 3])
def test_the_report_is_the_metrics(people, num_classes, weighted):
  y_true, y_pred, group, weight = people(0, num_classes=num_classes)
  weight = weight if weighted else None
  losses = np.random.default_rng(1).exponential(size=group.size)
  report = fairness.by_group(y_true, y_pred, losses, sensitive_features=group, sample_weight=weight)
  everybody = np.zeros_like(group)
  for part, ids in ((report.groups, group), (report.overall, everybody)):
    options = {"sensitive_features": ids, "sample_weight": weight}
    shape = np.shape(part.accuracy)
    expected = fairness.accuracy(y_true, y_pred, **options)
    np.testing.assert_allclose(part.accuracy, expected.reshape(shape), rtol=1e-5)
    expected = fairness.mean_loss(losses, **options)
    np.testing.assert_allclose(part.loss, expected.reshape(shape), rtol=1e-5)
    for name in RATES:
      expected = getattr(fairness, name)(y_true, y_pred, **options)
      found = getattr(part, name)
      np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-5)
    expected = _groups.group_counts(ids, ids.max() + 1, weight)
    np.testing.assert_allclose(part.count, expected.reshape(shape), rtol=1e-5)


def test_without_losses_there_is_no_loss(people):
  y_true, y_pred, group, _ = people(1)
  report = fairness.by_group(y_true, y_pred, sensitive_features=group)
  assert report.groups.loss is None
  assert report.overall.loss is None


def test_one_loss_per_person():
  with pytest.raises(ArgumentError, match="losses has shape"):
    fairness.by_group([0, 1], [0, 1], np.ones((2, 3)), sensitive_features=[0, 0])


@pytest.mark.slow
def test_an_absent_group_is_nan_with_count_zero(people):
  y_true, y_pred, group, _ = people(2)
  report = fairness.by_group(
    y_true, y_pred, y_true.astype(float), sensitive_features=group, num_groups=4
  )
  assert report.groups.count[3] == 0
  for value in report.groups[1:]:
    assert np.isnan(value[3])
    assert np.isfinite(value[:3]).all()
  assert all(np.isfinite(value) for value in report.overall)


@pytest.mark.slow
def test_a_hundred_seeds_are_one_compiled_call(people):
  y_true, _, group, _ = people(3)
  predictions = jnp.stack([people(seed)[1] for seed in range(5)])
  losses = jnp.abs(jnp.sin(jnp.arange(predictions.size))).reshape(5, -1)

  @jax.jit
  @jax.vmap
  def report(y_pred, loss):
    return fairness.by_group(
      y_true, y_pred, loss, sensitive_features=group, num_classes=2, num_groups=3
    )

  together = report(predictions, losses)
  for i in range(5):
    alone = fairness.by_group(y_true, predictions[i], losses[i], sensitive_features=group)
    jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, rtol=1e-5), together, alone)
