"""Images brought to one position, slant and size by their own moments, then scattered.

Writing differs in slant and in width, and a linear model on scattering features has to learn every
variant. Here each image is moved by its own first and second moments before its features are
computed, as handwriting recognition has long done; no other image enters, so it costs no privacy.
"""

import jax
import jax.numpy as jnp

from jaxfair import models
from jaxfair.models._features import Extractor

# Standard deviations in pixels of rows and columns of ink: a guess for digits that are written in a
# box of 20 x 20, not computed from people.
SPREADS = (5.5, 3.6)


def scattering() -> Extractor:
  """Gray images, normalized by their moments, in `models.scattering()`."""
  base = models.scattering()

  def apply(params: dict, x: jax.Array) -> jax.Array:
    gray = jnp.max(jnp.asarray(x, jnp.float32), axis=3)
    return base.apply(params, jax.vmap(normalized)(gray)[..., None])

  return Extractor(f"moments{SPREADS} {base.name}", {}, apply)


def normalized(image: jax.Array) -> jax.Array:
  """[h, w] the image with its center of mass in the middle, upright, and of common spreads.

  The new pixel at offset (u, v) from the middle reads the old one at the center of mass plus
  (s u, t v + a s u), where a is the slope of the columns' mean over rows, and s, t are the spreads
  of rows and of columns (after the shear) over the common ones, within limits.
  """
  height, width = image.shape
  rows, columns = jnp.meshgrid(
    jnp.arange(height, dtype=jnp.float32), jnp.arange(width, dtype=jnp.float32), indexing="ij"
  )
  weights = image / (image.sum() + 1e-6)
  row, column = (rows * weights).sum(), (columns * weights).sum()
  u, v = rows - row, columns - column
  across = jnp.maximum((u * u * weights).sum(), 1e-6)
  joint = (u * v * weights).sum()
  slope = joint / across
  along = jnp.maximum((v * v * weights).sum() - slope * joint, 1e-3)
  tall = jnp.clip(jnp.sqrt(across) / SPREADS[0], 0.6, 1.6)
  wide = jnp.clip(jnp.sqrt(along) / SPREADS[1], 0.5, 1.6)
  down, right = (rows - (height - 1) / 2) * tall, (columns - (width - 1) / 2) * wide
  places = [row + down, column + right + slope * down]
  return jax.scipy.ndimage.map_coordinates(image, places, order=1, mode="constant")
