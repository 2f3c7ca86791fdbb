"""Images brought to one position, slant and size by their own first and second moments."""

import jax
import jax.numpy as jnp


def normalized(image: jax.Array, spreads: tuple[float, float]) -> jax.Array:
  """[h, w] the image with its center of mass in the middle, upright, and of common spreads.

  The new pixel at offset (u, v) from the middle reads the old one at the center of mass plus
  (s u, t v + a s u), where a is the slope of the columns' mean over rows, and s, t are the spreads
  of rows and of columns (after the shear) over the common ones, within limits. Places between
  pixels are interpolated linearly, and places outside of the image are zero.

  Args:
    image: [h, w] ink, 0 or above, on a background of zeros. Without ink it stays as it is.
    spreads: standard deviations of rows and of columns of ink, in pixels.
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
  tall = jnp.clip(jnp.sqrt(across) / spreads[0], 0.6, 1.6)
  wide = jnp.clip(jnp.sqrt(along) / spreads[1], 0.5, 1.6)
  down, right = (rows - (height - 1) / 2) * tall, (columns - (width - 1) / 2) * wide
  places = [row + down, column + right + slope * down]
  return jax.scipy.ndimage.map_coordinates(image, places, order=1, mode="constant")
