"""Post-processing: means in closed form, what it adds and what it does not."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxfair import checks, decisions
from jaxfair.decisions import _postprocess

KEY = jax.random.key(3)


@pytest.mark.parametrize("temperature", [0.0, 0.7, 30.0])
@pytest.mark.parametrize(("value", "lower"), [(0.0, 0.0), (7.0, 2.0), (90.0, 0.0)])
def test_the_tempered_mean(value, lower, temperature):
  scale = 4.0
  mpmath.mp.dps = 25

  def outcome(t):
    raised = max(t, lower)
    return max(raised - temperature / (raised + 1 - lower), lower)

  def integrand(t):
    return outcome(t) * mpmath.exp(-abs(t - value) / scale) / (2 * scale)

  edge = lower + (mpmath.sqrt(1 + 4 * temperature) - 1) / 2
  points = sorted({mpmath.mpf(lower), edge, mpmath.mpf(value)})
  ends = [points[0] - 70 * scale, *points, points[-1] + 70 * scale]
  found = _postprocess.tempered_laplace_mean(
    value, scale=scale, temperature=temperature, lower=lower
  )
  expected = float(mpmath.quad(integrand, ends))
  np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_tempering_is_what_its_mean_is_of():
  x = np.array([0.0, 5.0, 50.0])
  noise = decisions.LaplaceRelease(scale=10.0)
  found = decisions.simulate(
    lambda c: decisions.temper(c, temperature=20.0), x, release=noise, draws=20_000, key=KEY
  )
  # Outcomes on true counts are tempered as well: compare means.
  mean = np.asarray(found.truth) + found.bias
  exact = _postprocess.tempered_laplace_mean(x, scale=10.0, temperature=20.0)
  assert np.all(np.abs(mean - exact) <= 6 * found.standard_error)


def test_no_heat_is_non_negativity():
  x = jnp.array([-3.0, 0.0, 2.5])
  np.testing.assert_array_equal(decisions.temper(x, temperature=0.0), decisions.non_negative(x))


@pytest.mark.slow
def test_the_best_temperature_beats_its_neighbors_and_none():
  scale = 10.0
  grid = np.linspace(0, 500, 800)

  def spread(heat):
    mean = _postprocess.tempered_laplace_mean(grid, scale=scale, temperature=heat)
    away = np.abs(mean - grid)
    return away.max() - away.min()

  best = _postprocess.best_temperature(scale=scale, values=grid)
  assert spread(best) < 0.7 * spread(0.0)
  others = np.linspace(0, 6 * best, 400)
  assert spread(best) <= min(map(spread, others)) + 1e-3
  # Over all counts the least error is 0, so that the largest alone is made small.
  public = _postprocess.best_temperature(scale=scale)
  far = np.concatenate([grid, [1e9]])
  mean = _postprocess.tempered_laplace_mean(
    far, scale=scale, temperature=np.linspace(0.5, 2, 301)[:, None] * public
  )
  worst = np.abs(mean - far).max(axis=1)
  assert worst[100] <= worst.min() + 1e-2
  # In large units it is a matter of scale^2 alone.
  wide = _postprocess.best_temperature(scale=1e4)
  np.testing.assert_allclose(_postprocess.best_temperature(scale=2e4) / wide, 4.0, rtol=0.02)


def test_refused():
  with pytest.raises(checks.ArgumentError, match="temperature=-1"):
    _postprocess.tempered_laplace_mean(1.0, scale=1.0, temperature=-1.0)
  with pytest.raises(checks.ArgumentError, match="values=-1"):
    _postprocess.best_temperature(scale=1.0, values=[-1.0, 2.0])
