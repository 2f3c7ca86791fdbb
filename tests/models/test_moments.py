"""Images brought to one position, slant and size by their own moments."""

import jax
import numpy as np
import pytest
from scipy import ndimage

from jaxfair import models
from jaxfair.models import _moments

SPREADS = (5.5, 3.6)
ROWS, COLUMNS = np.meshgrid(np.arange(28.0), np.arange(28.0), indexing="ij")
SCATTERED = jax.jit(models.scattering(moments=SPREADS).apply)
NORMALIZED = jax.jit(lambda image: _moments.normalized(image, SPREADS))


def stroke(slope, place, width):
  u, v = ROWS - place[0], COLUMNS - place[1]
  return np.exp(-((u / 5) ** 2) - ((v - slope * u) / width) ** 2).astype(np.float32)


def reference(image):
  """The same by SciPy, in float64 and by the definition."""
  ink = image.astype(np.float64)
  row, column = ndimage.center_of_mass(ink)
  share = ink / ink.sum()
  u, v = ROWS - row, COLUMNS - column
  slope = (share * u * v).sum() / (share * u * u).sum()
  tall = np.sqrt((share * u * u).sum()) / SPREADS[0]
  wide = np.sqrt((share * (v - slope * u) ** 2).sum()) / SPREADS[1]
  assert 0.6 < tall < 1.6  # within the limits
  assert 0.5 < wide < 1.6
  down, right = (ROWS - 13.5) * tall, (COLUMNS - 13.5) * wide
  return ndimage.map_coordinates(
    ink, [row + down, column + right + slope * down], order=1, mode="grid-constant"
  )


VARIANTS = [(0.4, (13.5, 13.5), 3.0), (-0.3, (15.0, 12.0), 3.0), (0.0, (14.0, 13.0), 4.0)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_agrees_with_scipy(variant):
  image = stroke(*variant) * (1 + 0.5 * np.sin(ROWS + 0.3 * COLUMNS)).astype(np.float32)
  found = NORMALIZED(image)
  np.testing.assert_allclose(found, reference(image), atol=2e-5)


def test_slant_size_and_place_of_writing_do_not_matter():
  upright = stroke(0.0, (13.5, 13.5), 3.0)
  first = NORMALIZED(upright)
  for variant in VARIANTS:
    again = NORMALIZED(stroke(*variant))
    np.testing.assert_allclose(again, first, atol=0.05)
    assert np.abs(stroke(*variant) - first).max() > 0.2
  weights = np.asarray(first) / first.sum()
  spread = [np.sqrt((weights * (axis - 13.5) ** 2).sum()) for axis in (ROWS, COLUMNS)]
  np.testing.assert_allclose(spread, SPREADS, rtol=0.05)  # the border cuts a little off


def test_features_of_writing_are_nearly_the_same():
  images = np.stack([stroke(0.0, (13.5, 13.5), 3.0), *(stroke(*one) for one in VARIANTS)])
  found = np.asarray(SCATTERED({}, images[..., None]))
  plain = np.asarray(jax.jit(models.scattering().apply)({}, images[..., None]))

  def apart(features):
    return np.linalg.norm(features[1:] - features[0], axis=1) / np.linalg.norm(features[0])

  assert (apart(found) < 0.35 * apart(plain)).all(), (apart(found), apart(plain))


def test_an_empty_image_stays_empty_and_one_pixel_is_finite():
  empty = np.zeros((28, 28), np.float32)
  assert not np.asarray(NORMALIZED(empty)).any()
  dot = empty.copy()
  dot[3, 20] = 1.0
  found = np.asarray(NORMALIZED(dot))
  assert np.isfinite(found).all()
  assert found.sum() > 0
