"""Gram matrices of the logits' Jacobian, and of contrasts."""

import jax
import numpy as np

from helpers.curved import ZOO, moved, people
from jaxfair.analysis._logit_gram import logit_gram

PEOPLE = people(5)
MODEL = ZOO["softmax"]


def test_gram_of_softmax_regression_and_its_contrasts():
  params = moved(MODEL, PEOPLE)
  (logits, gram), (_, short) = jax.jit(
    lambda p: [logit_gram(MODEL, p, PEOPLE.x, contrasts=c) for c in (False, True)]
  )(params)
  np.testing.assert_allclose(logits, MODEL.apply(params, PEOPLE.x), rtol=1e-5, atol=1e-6)
  # Logits have parameters of their own, all with the inputs (x, 1).
  length = np.sum(PEOPLE.x**2, axis=1) + 1
  expected = length[:, None, None] * np.eye(3)
  np.testing.assert_allclose(gram, expected, rtol=1e-5, atol=1e-5)
  to_last = np.array([[1, 0, -1], [0, 1, -1]])
  np.testing.assert_allclose(short, to_last @ expected @ to_last.T, rtol=1e-5, atol=1e-5)
