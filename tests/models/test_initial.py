import jax
import numpy as np
import scipy.stats

from jaxfair.models import _initial


def test_shapes_gains_and_no_value_used_twice():
  shapes = ((3, 3, 4, 25), (40, 30), (30, 2))
  weights = _initial.scaled_normals(jax.random.key(0), shapes, (2.0, 1.0, 1.0))
  assert [w.shape for w in weights] == list(shapes)
  scaled = [
    np.ravel(w) / np.sqrt(gain / np.prod(shape[:-1]))
    for w, gain, shape in zip(weights, (2, 1, 1), shapes, strict=True)
  ]
  flat = np.concatenate(scaled)
  # float32 normals repeat by chance, but not as often as a reused draw would.
  assert len(np.unique(flat)) > 0.99 * len(flat)
  assert scipy.stats.kstest(flat, "norm").pvalue > 1e-6


def test_the_first_axes_fan_in():
  (w,) = _initial.scaled_normals(jax.random.key(0), ((3, 3, 16, 64),), (2.0,))
  low, high = scipy.stats.chi2.ppf([5e-7, 1 - 5e-7], w.size)
  assert low < np.sum(np.asarray(w, np.float64) ** 2) * 144 / 2 < high
