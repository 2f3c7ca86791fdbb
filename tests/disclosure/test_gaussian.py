"""Conditioning against NumPy in float64; private moments against plain ones."""

import itertools

import jax
import numpy as np
import pytest

from helpers import disclosure_cases as cases
from jaxfair import accounting, checks, disclosure
from jaxfair.disclosure import _gaussian
from jaxfair.disclosure._gaussian import UNIT, _exact_moments
from jaxfair.privacy import exact, grid


def brute_force(mean, covariance, known, x):
  r, u = np.flatnonzero(known), np.flatnonzero(~known)
  found, rest = mean.copy(), np.zeros_like(covariance)
  found[r] = x[r]
  cross = covariance[np.ix_(u, r)]
  inverse = np.linalg.inv(covariance[np.ix_(r, r)])
  found[u] += cross @ inverse @ (x[r] - mean[r])
  rest[np.ix_(u, u)] = covariance[np.ix_(u, u)] - cross @ inverse @ cross.T
  return found, rest


@pytest.mark.slow
def test_conditioning_is_that_of_index_sets_for_every_subset():
  rng = np.random.default_rng(0)
  root = rng.normal(size=(5, 5))
  covariance = root @ root.T + 0.2 * np.eye(5)
  mean, x = rng.normal(size=5), rng.normal(size=5)
  masks = np.array(list(itertools.product((False, True), repeat=5)))
  law = disclosure.Gaussian(mean.astype("f4"), covariance.astype("f4"))
  given = jax.vmap(lambda m: _gaussian.condition(law, m))(masks)
  for mask, gain, rest in zip(masks, *given, strict=True):
    expected_mean, expected_rest = brute_force(mean, covariance, mask, x)
    found = mean + np.asarray(gain) @ (x - mean)
    np.testing.assert_allclose(found, expected_mean, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(rest, expected_rest, rtol=2e-4, atol=2e-4)
    assert not np.asarray(gain)[:, ~mask].any()  # hidden values have no weight


@pytest.mark.slow
def test_one_hot_and_constant_features_can_be_conditioned_on():
  x = cases.people(500)
  x = np.concatenate([x, np.zeros((500, 1), "f4")], axis=1)
  law = disclosure.fit_gaussian(x)
  known = np.array([True, True, True, True, False, False, True])
  given = _gaussian.condition(law, known)
  assert np.isfinite(given.gain).all()
  rest = np.asarray(given.covariance)[4:6, 4:6]
  assert (np.linalg.eigvalsh(rest) > 0).all()
  assert (np.diag(rest) < np.diag(np.asarray(law.covariance))[4:6]).all()


def test_the_fit_is_that_of_numpy():
  x = cases.people(300)
  law = disclosure.fit_gaussian(x, shrinkage=0.25)
  expected = np.cov(x.T, bias=True)
  expected *= np.where(np.eye(6), 1.0, 0.75)
  np.testing.assert_allclose(law.covariance, expected, atol=1e-5)
  np.testing.assert_allclose(law.mean, x.mean(0), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["ADD_OR_REMOVE_ONE", "REPLACE_ONE"])
def test_private_moments_are_charged_and_have_the_stated_noise(tmp_path, relation):
  x = np.zeros((4000, 2), "f4")
  multiplier = 5.0
  sensitivity = 3.0 * (2 if relation == "REPLACE_ONE" else 1)
  means = []
  with accounting.Ledger.create(
    tmp_path / "ledger.jsonl", data="toy", relation=accounting.Relation[relation]
  ) as ledger:
    for seed in range(100):
      law = disclosure.fit_private_gaussian(
        x,
        noise_multiplier=multiplier,
        ledger=ledger,
        id=f"moments {seed}",
        source=exact.seeded(seed),
      )
      means.append(law.mean)
    assert len(ledger) == 100
    (event,) = {entry.event for entry in ledger}
    gaussian, rest = event.events
    assert gaussian == accounting.Gaussian(multiplier)
    assert rest.epsilon == 0 < rest.delta < 1e-20
    with pytest.raises(checks.ArgumentError, match="charged before"):
      disclosure.fit_private_gaussian(x, noise_multiplier=multiplier, ledger=ledger, id="moments 0")
  # Entries off the diagonal are divided by sqrt(2) again. 200 draws: the
  # standard deviation is within 25% with probability above 1 - 1e-6.
  expected = multiplier * sensitivity / np.sqrt(2) / 4000
  assert np.std(means) == pytest.approx(expected, rel=0.25)


@pytest.mark.slow
def test_one_person_moves_the_sums_of_many_by_their_own_products():
  """Float32 sums of so many people move by 2 or not at all, for 0.75."""
  crowd = 2**24 + 1
  x = np.broadcast_to(np.array([0.75]), (crowd, 1))
  total = _exact_moments(x)
  moved = total - _exact_moments(x[1:])
  own = [[UNIT**2, 0.75 * UNIT**2], [0.75 * UNIT**2, 0.5625 * UNIT**2]]
  assert (moved == np.array(own)).all()
  assert total[0, 0] == crowd * UNIT**2
  assert int(np.float32(crowd)) != crowd


def test_the_moments_leave_on_a_grid(tmp_path, monkeypatch):
  """Integers, with noise of sigma / sqrt(2) off the diagonal."""
  seen, plain_gaussian = [], grid.gaussian

  def watched(value, *, sigma, source):
    seen.append((value, sigma))
    return plain_gaussian(value, sigma=sigma, source=source)

  monkeypatch.setattr(grid, "gaussian", watched)
  x = cases.people(50)[:, :2]
  with accounting.Ledger.create(
    tmp_path / "ledger.jsonl", data="toy", relation=accounting.Relation.ADD_OR_REMOVE_ONE
  ) as ledger:
    disclosure.fit_private_gaussian(
      x, noise_multiplier=4.0, ledger=ledger, id="a", source=exact.seeded(0)
    )
  ((value, sigma),) = seen
  assert all(isinstance(v, int) for v in value)
  z = np.concatenate([np.ones((50, 1)), x], axis=1)
  upper = np.triu_indices(3)
  np.testing.assert_allclose(value.astype(float) / UNIT**2, (z.T @ z)[upper], atol=1e-3)
  plain = 4.0 * 3  # noise multiplier times d + 1
  diagonal = upper[0] == upper[1]
  expected = np.where(diagonal, plain, plain / np.sqrt(2))
  np.testing.assert_allclose(sigma / UNIT**2, expected, rtol=1e-9)
  assert (sigma / UNIT**2 >= expected).all()


def test_features_outside_the_range_are_refused(tmp_path):
  with (
    accounting.Ledger.create(
      tmp_path / "ledger.jsonl", data="toy", relation=accounting.Relation.REPLACE_ONE
    ) as ledger,
    pytest.raises(checks.ArgumentError, match=r"outside \[-1, 1\].*scaler"),
  ):
    disclosure.fit_private_gaussian(
      np.full((3, 2), 1.5), noise_multiplier=1.0, ledger=ledger, id="a"
    )
  assert len(ledger) == 0
