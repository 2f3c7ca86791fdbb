"""Smaller images: squares of pixels averaged."""

import numpy as np

from jaxfair import checks


def pool_images(x: np.ndarray, side: int) -> np.ndarray:
  """Averages [n, h, w, c] images over squares of `side` x `side` pixels."""
  if side == 1:
    return x
  checks.require(x.ndim == 4, f"pool={side} needs images, not {x.shape[1:]}; use pool = 1")
  n, h, w, c = x.shape
  checks.require(
    h % side == 0 and w % side == 0,
    f"pool={side} does not divide images of {h} x {w}; use a divisor",
  )
  blocks = x.reshape(n, h // side, side, w // side, side, c)
  pooled: np.ndarray = blocks.mean(axis=(2, 4), dtype=np.float32)
  return pooled
