"""Random keys from the operating system, for values that are released."""

import secrets

import jax
import numpy as np


def os_key() -> jax.Array:
  """A fresh key from the operating system's entropy; use it for every release.

  A key made from a seed is reproducible, and therefore not for release: anyone who knows the seed
  can subtract the noise. The key holds 64 bits, all that JAX's Threefry keys have room for;
  `privacy.exact` draws every number from the operating system instead.
  """
  words = np.frombuffer(secrets.token_bytes(8), dtype=np.uint32)
  return jax.random.wrap_key_data(jax.numpy.asarray(words), impl="threefry2x32")
