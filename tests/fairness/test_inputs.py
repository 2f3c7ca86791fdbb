"""Bad input is refused with what to do, before any work starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from jaxfair import fairness
from jaxfair.checks import ArgumentError
from jaxfair.fairness import _confusion, _parity

Y = np.array([0, 1, 1, 0])
G = np.array([0, 0, 1, 1])

LABEL_METRICS = [
  fairness.accuracy,
  fairness.selection_rate,
  fairness.true_positive_rate,
  fairness.false_positive_rate,
  fairness.true_negative_rate,
  fairness.false_negative_rate,
  fairness.demographic_parity_difference,
  _parity.demographic_parity_ratio,
  fairness.equal_opportunity_difference,
  _parity.equal_opportunity_ratio,
  fairness.equalized_odds_difference,
  _parity.equalized_odds_ratio,
  fairness.accuracy_parity_difference,
  _parity.accuracy_parity_ratio,
  fairness.by_group,
  _confusion.confusion_counts,
]


@pytest.mark.parametrize("metric", LABEL_METRICS)
def test_scores_are_refused_with_the_metric_that_takes_them(metric):
  scores = np.array([0.2, 0.9, 0.7, 0.1])
  with pytest.raises(ArgumentError, match=r"y_pred.*wasserstein_disparity"):
    metric(Y, scores, sensitive_features=G)
  traced = jax.jit(lambda s: metric(Y, s, sensitive_features=G, num_classes=2, num_groups=2))
  with pytest.raises(ArgumentError, match="wasserstein_disparity"):
    traced(scores)


@pytest.mark.parametrize("metric", LABEL_METRICS)
def test_counts_must_be_given_inside_jit(metric):
  with pytest.raises(ArgumentError, match=r"num_groups.*num_groups=<"):
    jax.jit(lambda g: metric(Y, Y, sensitive_features=g))(G)
  with pytest.raises(ArgumentError, match=r"num_classes.*num_classes=<"):
    jax.jit(lambda y: metric(Y, y, sensitive_features=G))(Y)
  jax.eval_shape(lambda y, g: metric(y, y, sensitive_features=g, num_classes=2, num_groups=2), Y, G)


def test_strings_are_refused_with_how_to_encode_them():
  names = np.array(["f", "f", "m", "m"])
  with pytest.raises(ArgumentError, match=r"numpy.unique.*return_inverse"):
    fairness.accuracy(Y, Y, sensitive_features=names)
  _, ids = np.unique(names, return_inverse=True)
  np.testing.assert_array_equal(fairness.accuracy(Y, Y, sensitive_features=ids), [1, 1])


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"sensitive_features": G[:3]}, "sensitive_features has 3"),
    ({"sensitive_features": G - 1}, "sensitive_features has ids from -1"),
    ({"num_groups": 1}, "sensitive_features has ids from 0 to 1"),
    ({"num_classes": 2, "y_true": Y + 1}, "y_true has ids from 1 to 2"),
    ({"num_classes": 1}, "num_classes=1 must be at least 2"),
    ({"y_pred": Y[:, None]}, r"y_pred has shape \(4, 1\)"),
    ({"sample_weight": -np.ones(4)}, "sample_weight=-1"),
    ({"sample_weight": np.full(4, np.nan)}, "sample_weight=nan"),
    ({"sample_weight": np.ones(3)}, "sample_weight has 3"),
    ({"sample_weight": np.ones((4, 1))}, "one weight per person"),
    (
      {"y_true": Y[:0], "y_pred": Y[:0], "sensitive_features": G[:0]},
      "has no rows; pass num_groups",
    ),
    ({"sensitive_features": G * 10**8}, "without gaps"),
  ],
)
def test_each_mistake_has_its_message(arguments, message):
  given = {"y_true": Y, "y_pred": Y, "sensitive_features": G, **arguments}
  with pytest.raises(ArgumentError, match=message):
    fairness.accuracy(given.pop("y_true"), given.pop("y_pred"), **given)


def test_no_rows_is_nan_when_the_counts_are_given():
  none = np.zeros(0, int)
  result = fairness.accuracy(none, none, sensitive_features=none, num_classes=2, num_groups=2)
  assert np.isnan(result).all()


@pytest.mark.parametrize(
  ("option", "message"),
  [
    ({"method": "between_group"}, "did you mean between_groups"),
    ({"agg": "worst"}, "use one of worst_case, mean"),
    ({"pos_label": 2}, "pos_label=2 must be at least 0 and at most 1"),
  ],
)
def test_unknown_options_are_named(option, message):
  with pytest.raises(ArgumentError, match=message):
    fairness.equalized_odds_difference(Y, Y, sensitive_features=G, **option)


def test_scores_must_be_finite_numbers():
  with pytest.raises(ArgumentError, match="scores has 1 rows with NaN"):
    fairness.wasserstein_disparity(np.array([0.1, np.nan, 0.2, 0.3]), sensitive_features=G)
  with pytest.raises(ArgumentError, match="not numbers"):
    fairness.wasserstein_disparity(np.array(list("abcd")), sensitive_features=G)
  with pytest.raises(ArgumentError, match="shape"):
    fairness.wasserstein_disparity(np.ones((4, 1, 1)), sensitive_features=G)


@pytest.mark.parametrize("convert", [list, pd.Series, jnp.asarray, tuple])
def test_lists_frames_and_arrays_are_welcome(convert):
  result = fairness.accuracy(convert(Y), convert(1 - Y), sensitive_features=convert(G))
  np.testing.assert_array_equal(result, [0, 0])


def test_booleans_are_two_classes():
  result = fairness.selection_rate(Y == 1, Y == 1, sensitive_features=G == 1)
  np.testing.assert_array_equal(result, [0.5, 0.5])
