"""What a model does to groups, against counting by hand and fairlearn."""

import math

import fairlearn.metrics
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics

from jaxfair import data, fairness
from jaxfair.experiments import _measures, group_table, measure_groups
from jaxfair.types import Examples


def people(group_names):
  rng = np.random.default_rng(0)
  y = rng.integers(0, 2, 60).astype(np.int32)
  group = rng.integers(0, 2, 60).astype(np.int32)
  x = rng.normal(size=(60, 2)).astype(np.float32)
  return data.Dataset(
    "toy", Examples(x, y, group), ("no", "yes"), group_names, ("u", "v"), ("u", "v")
  )


@pytest.fixture
def dataset():
  return people(("a", "b", "none"))


@pytest.fixture
def logits():
  draws = np.random.default_rng(1).normal(size=(3, 60, 2))
  return draws.astype(np.float32)


@pytest.mark.slow
def test_groups_are_counted_as_by_hand(dataset, logits):
  _, y, group = dataset.examples
  found = jax.jit(lambda z: measure_groups(z, dataset.examples, dataset))(logits[0])
  predicted = logits[0].argmax(-1)
  losses = np.log(np.exp(logits[0]).sum(-1)) - logits[0][np.arange(60), y]
  for g in (0, 1):
    rows = group == g
    of = {
      "count": rows.sum(),
      "accuracy": (predicted == y)[rows].mean(),
      "loss": losses[rows].mean(),
      "selection_rate": (predicted == 1)[rows].mean(),
      "true_positive_rate": (predicted == 1)[rows & (y == 1)].mean(),
      "false_positive_rate": (predicted == 1)[rows & (y == 0)].mean(),
    }
    for name, expected in of.items():
      measured = getattr(found.groups, name)[g]
      np.testing.assert_allclose(measured, expected, rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(
      found.groups.balanced_accuracy[g],
      metrics.balanced_accuracy_score(y[rows], predicted[rows]),
      rtol=1e-5,
    )
  np.testing.assert_allclose(found.overall.accuracy, (predicted == y).mean())
  beside = found.constant
  assert beside["majority_accuracy"] == pytest.approx(max(y.mean(), 1 - y.mean()))
  assert beside["majority_balanced_accuracy"] == 0.5
  expected = metrics.balanced_accuracy_score(y, predicted)
  assert beside["balanced_accuracy"] == pytest.approx(expected)
  # Two shares, each of its own people.
  recalls = np.array([(predicted == c)[y == c].mean() for c in (0, 1)])
  variances = recalls * (1 - recalls) / np.bincount(y)
  assert beside["balanced_accuracy_se"] == pytest.approx(math.sqrt(variances.sum()) / 2)


@pytest.mark.slow
def test_an_empty_group_is_missing_not_zero(dataset, logits):
  found = measure_groups(jnp.asarray(logits[0]), dataset.examples, dataset)
  assert found.groups.count[2] == 0
  assert math.isnan(found.groups.accuracy[2])
  # A gap to nobody is not known, and never 0.
  assert all(math.isnan(gap) for gap in found.gaps.values())


@pytest.mark.slow
def test_gaps_agree_with_fairlearn(logits):
  dataset = people(("a", "b"))
  _, y, group = dataset.examples
  found = measure_groups(jnp.asarray(logits[1]), dataset.examples, dataset)
  predicted = logits[1].argmax(-1)
  for name in ("demographic_parity_difference", "equalized_odds_difference"):
    theirs = getattr(fairlearn.metrics, name)(y, predicted, sensitive_features=group)
    assert theirs > 0.01
    np.testing.assert_allclose(found.gaps[name], theirs, rtol=1e-5)


@pytest.mark.slow
def test_the_table_has_a_row_per_seed_and_group_and_one_for_everyone(logits):
  dataset = people(("a", "b"))
  measured = jax.vmap(lambda z: measure_groups(z, dataset.examples, dataset))(jnp.asarray(logits))
  table = group_table({"model": "m"}, measured, dataset.group_names)
  assert len(table) == 3 * (2 + 1)
  assert set(table["model"].tolist()) == {"m"}
  assert table.unique("group") == ["a", "b", "everyone"]
  everyone = table.where(group="everyone")
  np.testing.assert_allclose(
    everyone["equalized_odds_difference"], measured.gaps["equalized_odds_difference"]
  )
  b = table.where(group="b", seed=2)
  assert b["accuracy"].tolist() == [float(measured.groups.accuracy[2, 1])]
  assert np.isnan(b["equalized_odds_difference"]).all()


def test_the_interval_of_a_share_stays_a_share():
  rates = [1.0, 1.0, 0.9]
  found = _measures.seed_interval("selection_rate", rates)
  assert found.high == 1
  assert found.low == fairness.seed_interval(rates).low
  assert _measures.seed_interval("loss", rates).high > 1
  assert _measures.seed_interval("excess_error", [-0.1, 0.0, 0.1]).low < 0
