"""Laws of the label against simulation and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from helpers import disclosure_cases as cases
from jaxfair import disclosure
from jaxfair.disclosure import _beliefs, _gaussian, _network

LAW = disclosure.fit_gaussian(cases.people(2000))
REVEALED = np.array([True, False, False])


def look(params, sensitive, revealed, x, normals=None):
  """Everything that is believed about one person, in one program."""

  @jax.jit
  def program(x):
    known = _beliefs.beliefs(_network.as_network(params), LAW, cases.asked(*sensitive))
    law, factors = known.law(revealed), known.factors(revealed)
    center = _beliefs.pre_activation(known, revealed, x)
    parts = _beliefs.expected_parts(known, revealed, x)
    after = jax.vmap(known.law)(_beliefs.revealed_next(revealed)).covariance
    chances = _beliefs.label_probabilities(known.network, center, law.covariance, normals)
    return law, factors, after, center, parts, chances

  return jax.tree.map(np.asarray, program(x))


def given(mask, x):
  found = _gaussian.condition(LAW, mask)
  mean = LAW.mean + np.asarray(found.gain) @ np.where(mask, x - LAW.mean, 0)
  return np.asarray(mean, float), np.asarray(found.covariance, float)


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 3])
def test_linear_label_probabilities_are_those_of_drawn_people(num_classes):
  _, params = cases.linear(num_classes)
  sensitive = ("job", "pay", "debt")
  mask = np.asarray(cases.asked(*sensitive).known(REVEALED))
  x = cases.people(1)[0]
  draws = 20_000
  normals = jax.random.normal(jax.random.key(0), (draws, num_classes))
  hidden = np.where(mask, x, np.nan)  # NaN must not be read
  *_, found = look(params, sensitive, REVEALED, hidden, normals)
  mean, covariance = given(mask, x)
  people = np.random.default_rng(1).multivariate_normal(mean, covariance, draws, method="eigh")
  logits = people @ np.asarray(params["w"]) + np.asarray(params["b"])
  shares = np.bincount(logits.argmax(1), minlength=num_classes) / draws
  # Two independent shares of 20,000: 5 standard deviations of sqrt(2) * 0.5.
  np.testing.assert_allclose(found, shares, atol=5 * 0.71 / np.sqrt(draws))
  if num_classes == 2:
    theta = np.asarray(params["w"][:, 1] - params["w"][:, 0], float)
    margin = mean @ theta + float(params["b"][1] - params["b"][0])
    deviation = np.sqrt(theta @ covariance @ theta)
    expected = scipy.stats.norm.cdf(margin / deviation)
    np.testing.assert_allclose(found[1], expected, rtol=1e-4)


@pytest.mark.slow
def test_parts_add_up_and_so_do_explained_and_remaining_variance(monkeypatch):
  _, params = cases.network()
  x = cases.people(1)[0]
  sensitive = ("age", "job", "pay", "debt")
  revealed = np.array([False, True, False, True])
  found = look(params, sensitive, revealed, x)
  law, factors, after, center, parts, _ = found
  weights, bias = map(np.asarray, _network.as_network(params).layers[0])
  np.testing.assert_allclose(parts.sum(axis=0) + bias, center, atol=1e-5)
  np.testing.assert_allclose(parts[1], x[1:4] @ weights[1:4], atol=1e-5)
  explained = factors @ factors.transpose(0, 2, 1)
  np.testing.assert_allclose(
    explained + after, np.broadcast_to(law.covariance, after.shape), atol=1e-4
  )
  monkeypatch.setattr(_beliefs, "TABLE_LIMIT", 0)
  direct = look(params, sensitive, revealed, x)
  np.testing.assert_allclose(direct[3], center, atol=1e-5)
  np.testing.assert_allclose(direct[2], after, atol=1e-5)


def test_entropy_knows_certainty():
  values = _beliefs.entropy(jnp.asarray([[1.0, 0.0], [0.5, 0.5]]))
  np.testing.assert_allclose(values, [0.0, np.log(2)], rtol=1e-6)


def test_the_entropy_of_a_sign_is_that_of_both_tails():
  ratio = np.array([0.0, 0.3, -0.3, 2.0, -5.0, 9.0, 12.0, np.inf, -np.inf])
  found = _beliefs.sign_entropy(jnp.asarray(ratio, jnp.float32))
  rare = scipy.stats.norm.sf(np.abs(ratio))
  expected = scipy.special.entr(rare) - (1 - rare) * np.log1p(-rare)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-36)
  assert not np.asarray(found)[-2:].any()


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 3])
def test_label_entropy_is_the_entropy_of_the_label_probabilities(num_classes):
  _, params = cases.network(num_classes)
  network = _network.as_network(params)
  hidden = network.layers[0][1].shape[0]
  mean = np.linspace(-0.3, 0.4, hidden, dtype="f4")
  normals = jax.random.normal(jax.random.key(0), (500, num_classes))
  for covariance in (0.2 * np.eye(hidden), np.zeros((hidden, hidden))):
    given = (network, mean, covariance.astype("f4"), normals)
    found = _beliefs.label_entropy(*given)
    expected = _beliefs.entropy(_beliefs.label_probabilities(*given))
    np.testing.assert_allclose(found, expected, atol=1e-5)
