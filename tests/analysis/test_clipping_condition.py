"""Theorem 3.3's condition: by hand, and against every batch of small problems."""

import itertools

import numpy as np
import pytest

from jaxfair import analysis, checks
from jaxfair.analysis._clipping_condition import clipping_margin


def test_by_hand():
  """|g| = (40, 1), halves, C = 0.1: 40/8 - 1/4 - 1.625 and 1/8 - 1/4 - 40 * 1.625."""
  found = clipping_margin([40.0, 1.0], [0.5, 0.5], l2_clip=0.1)
  np.testing.assert_allclose(found, [3.125, -65.125], rtol=1e-6)
  # Shares of 0.8 and 0.2: 0.32 * 40 - 0.25 - 1.22; batches that vary by 4: less 4 / 80.
  found = clipping_margin([40.0, 1.0], [0.8, 0.2], l2_clip=0.1, batch_variance=4.0)
  np.testing.assert_allclose(found[0], 12.8 - 0.25 - 1.22 - 0.05, rtol=1e-6)
  step = analysis.StepSettings(0.1, 0.1, 1.0, 0.1)
  np.testing.assert_array_equal(
    step.clipping_margin([40.0, 1.0], [0.8, 0.2], batch_variance=4.0), found
  )
  assert np.isfinite(clipping_margin([1.0, 0.0], [0.5, 0.5], l2_clip=0.1)).all()


@pytest.mark.parametrize("ratio", [12.9, 13.1])
def test_equal_groups_need_thirteen_times_the_gradient(ratio):
  found = clipping_margin([ratio, 1.0], [0.5, 0.5], l2_clip=1e-9)
  assert (found[0] > 0) == (ratio > 13)


def clipping_terms(gradients, group, bends, clip, rate, q):
  """R_a^clip of both groups, the expectations over all Poisson batches written out.

  Person i's loss is quadratic with gradient g_i here and Hessian `bends[group] I`.
  """
  norms = np.linalg.norm(gradients, axis=1, keepdims=True)
  clipped = gradients * np.minimum(1, clip / norms)
  n, second, spread = len(gradients), np.zeros(2), 0.0
  for taken in itertools.product((0, 1), repeat=n):
    chance = np.prod(np.where(taken, q, 1 - q))
    plain, private = (np.array(taken) @ g / (q * n) for g in (gradients, clipped))
    second += chance * np.array(bends) * (private @ private - plain @ plain)
    for own, all_of_them in ((plain, gradients), (private, clipped)):
      spread += chance * np.sum((own - all_of_them.mean(0)) ** 2)
  means = np.array([gradients[group == a].mean(0) for a in (0, 1)])
  slopes = means @ (gradients - clipped).mean(0)
  return rate * slopes + rate**2 / 2 * second, np.linalg.norm(means, axis=1), spread


def problems(count):
  """Small convex problems, most of them with a group whose gradients are far larger."""
  rng = np.random.default_rng(11)
  for _ in range(count):
    sizes = rng.integers(1, 5), rng.integers(1, 3)
    group = np.repeat([0, 1], sizes)
    gradients = rng.normal(size=(len(group), 2)) + rng.normal(size=2)
    gradients[group == 0] *= 10 ** rng.uniform(0, 3)
    bends = rng.uniform(0.1, 2, 2)
    clip, q = 10 ** rng.uniform(-2, 1), rng.choice([0.3, 0.7, 1.0])
    yield gradients, group, bends, clip, 1 / bends.max(), q


def test_the_order_holds_wherever_the_condition_does():
  met = 0
  for gradients, group, bends, clip, rate, q in problems(400):
    terms, norms, spread = clipping_terms(gradients, group, bends, clip, rate, q)
    shares = np.bincount(group) / len(group)
    margin = clipping_margin(norms, shares, l2_clip=clip, batch_variance=spread)
    for a, b in ((0, 1), (1, 0)):
      if margin[a] >= 0:
        met += 1
        assert terms[a] > terms[b]
  assert met > 50


def test_without_the_variance_of_batches_it_would_be_wrong():
  """The thesis's condition: |g_B| does not vary, but g_B does, and the order is the other one."""
  # Four steep people whose gradients nearly cancel, beside one whose gradient is small.
  gradients = np.array([[60.0, 1e3], [60.0, -1e3], [60.0, 1e3], [60.0, -1e3], [0.1, 0.0]])
  group = np.array([0, 0, 0, 0, 1])
  terms, norms, spread = clipping_terms(gradients, group, (2.0, 0.1), 0.1, 0.5, 0.3)
  shares = np.array([0.8, 0.2])
  assert clipping_margin(norms, shares, l2_clip=0.1)[0] > 0
  assert clipping_margin(norms, shares, l2_clip=0.1, batch_variance=spread)[0] < 0
  assert terms[0] < terms[1]


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"gradient_norms": [1.0, 2.0, 3.0]}, "two groups"),
    ({"shares": [30, 70]}, "divide the groups' sizes"),
    ({"l2_clip": 0.0}, "l2_clip"),
    ({"batch_variance": -1.0}, "batch_variance"),
  ],
)
def test_refuses(change, told):
  given = {"gradient_norms": [1.0, 2.0], "shares": [0.3, 0.7], "l2_clip": 0.1, **change}
  with pytest.raises(checks.ArgumentError, match=told):
    clipping_margin(given.pop("gradient_norms"), given.pop("shares"), **given)
