"""Scattering agrees with kymatio's, here or as it computed once."""

import jax
import numpy as np
import pytest

from jaxfair import checks, models
from jaxfair.models import _moments, _scattering

# (J, L, height, width): the shape, nine coefficients spread over the second of `images`, the
# norm of those of the first, and their sum with weights cos(0), cos(1), ...: kymatio 0.3.0.
KYMATIO = {
  (2, 8, 28, 28): (
    (81, 7, 7),
    (
      0.908361,
      0.1103672,
      0.002058488,
      0.001202709,
      0.0003413553,
      0.002555908,
      0.003667972,
      0.003923261,
      0.002263793,
    ),
    4.341997,
    0.4215379,
  ),
  (3, 4, 32, 40): (
    (61, 4, 5),
    (
      0.6626071,
      0.006181744,
      0.007277492,
      0.001473731,
      0.001147035,
      0.002482231,
      0.00616153,
      0.004951275,
      0.004648599,
    ),
    2.747499,
    0.7938203,
  ),
  (1, 6, 9, 12): (
    (7, 4, 6),
    (
      0.9513375,
      0.1860636,
      0.06047957,
      0.04675754,
      0.04247264,
      0.04429767,
      0.02421767,
      0.008395458,
      0.03422989,
    ),
    3.981137,
    -0.4875896,
  ),
}

TRANSFORM = jax.jit(_scattering.transform, static_argnums=(1, 2))


def images(height, width):
  i, j = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
  waves = [np.sin(0.3 * i * (1 + seed) + 0.02 * j * j + seed) for seed in range(2)]
  return (0.5 + 0.5 * np.stack(waves)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("case", KYMATIO)
def test_agrees_with_what_kymatio_computed(case):
  scales, angles, height, width = case
  shape, few, norm, weighted = KYMATIO[case]
  x = images(height, width)
  first, second = np.asarray(TRANSFORM(x, scales, angles), np.float64)
  assert first.shape == shape
  rows = np.linspace(0, second.size - 1, 9).astype(int)
  np.testing.assert_allclose(second.ravel()[rows], few, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(np.linalg.norm(first), norm, rtol=1e-5)
  np.testing.assert_allclose(second.ravel() @ np.cos(np.arange(second.size)), weighted, rtol=1e-4)


@pytest.mark.slow
def test_agrees_with_kymatio(monkeypatch):
  special = pytest.importorskip("scipy.special")
  if not hasattr(special, "sph_harm"):  # gone from SciPy; kymatio's 3-D part asks for it
    monkeypatch.setattr(special, "sph_harm", None, raising=False)
  kymatio = pytest.importorskip("kymatio.numpy", reason="kymatio, an optional peer, is absent")
  x = np.random.default_rng(0).random((3, 20, 24), np.float32)
  expected = kymatio.Scattering2D(J=2, shape=(20, 24), L=8)(x)
  found = TRANSFORM(x, 2, 8)
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def test_each_image_is_normalized_by_itself():
  extractor = models.scattering(J=1, L=2, groups=3)
  rng = np.random.default_rng(0)
  x = rng.random((3, 8, 8, 2), np.float32)
  found = np.asarray(jax.jit(extractor.apply)({}, x))
  by_group = found.reshape(3, 2, 3, -1)  # image, channel, group
  np.testing.assert_allclose(by_group.mean(-1), 0, atol=1e-5)
  plain = np.asarray(jax.jit(models.scattering(J=1, L=2, groups=None).apply)({}, x)).reshape(
    3, 2, 3, -1
  )
  variance = plain.var(-1)
  np.testing.assert_allclose(by_group.var(-1), variance / (variance + 1e-5), rtol=1e-3)
  alone = jax.jit(extractor.apply)({}, x[1:2])
  np.testing.assert_allclose(found[1:2], alone, atol=1e-4)


@pytest.mark.slow
def test_moments_come_first_image_by_image():
  rng = np.random.default_rng(0)
  x = rng.random((3, 8, 8, 2), np.float32)
  x[2] = 0
  normalized = models.scattering(J=1, L=2, groups=3, moments=(2.0, 1.5))
  found = np.asarray(jax.jit(normalized.apply)({}, x))
  assert np.isfinite(found).all()
  assert not found[2].any()
  gray = x.max(axis=3)
  brought = np.stack([_moments.normalized(one, (2.0, 1.5)) for one in gray])[..., None]
  plain = models.scattering(J=1, L=2, groups=3)
  np.testing.assert_allclose(found, jax.jit(plain.apply)({}, brought), atol=1e-4)
  others = np.stack([x[0], 1 - x[1], 0.5 * x[1]])
  np.testing.assert_array_equal(jax.jit(normalized.apply)({}, others)[0], found[0])
  assert normalized.name != plain.name


def test_refuses_what_it_cannot_scatter():
  with pytest.raises(checks.ArgumentError, match="groups=10 does not divide 81 maps"):
    models.scattering(groups=10)
  with pytest.raises(checks.ArgumentError, match="at least 4 pixels"):
    models.scattering()(np.zeros((2, 3, 3, 1)))
  with pytest.raises(checks.ArgumentError, match="J=0"):
    models.scattering(0)
  with pytest.raises(checks.ArgumentError, match=r"moments=0\.0"):
    models.scattering(moments=(5.5, 0.0))
  with pytest.raises(checks.ArgumentError, match="not two spreads"):
    models.scattering(moments=(5.5,))
