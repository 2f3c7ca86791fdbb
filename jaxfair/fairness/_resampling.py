"""Draws of people with replacement: tables of counts and weights of rows.

Drawn by NumPy on the host: its multinomial works in float64, where JAX's
float32 one has a variance up to 1.5% off beyond a million people, and takes a
second to compile.
"""

from collections.abc import Iterator

import jax
import numpy as np

from jaxfair.types import Key

_CHUNK = 2**23  # weights held at once: 32 MB


def generator_of(key: Key) -> np.random.Generator:
  """A NumPy generator whose stream is decided by the key."""
  return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def tables(
  generator: np.random.Generator, counts: np.ndarray, num_draws: int
) -> Iterator[np.ndarray]:
  """The counts themselves, then num_draws tables or more, in chunks.

  table ~ Multinomial(n, counts / n), n = sum counts
  """
  size = int(counts.sum())
  shares = counts.ravel() / size
  for i, chunk in enumerate(chunk_sizes(num_draws + 1, counts.size)):
    drawn = generator.multinomial(size, shares, size=chunk)
    if i == 0:
      drawn[0] = counts.ravel()
    yield drawn.reshape(chunk, *counts.shape).astype(np.float32)


def row_weights(generator: np.random.Generator, size: int, num_draws: int) -> Iterator[np.ndarray]:
  """How often each person is drawn: num_draws rows or more, in chunks.

  weights ~ Multinomial(size, 1 / size)
  """
  for chunk in chunk_sizes(num_draws, size):
    people = generator.integers(0, size, (chunk, size))
    people += size * np.arange(chunk)[:, None]
    drawn = np.bincount(people.ravel(), minlength=chunk * size)
    yield drawn.reshape(chunk, size).astype(np.float32)


def chunk_sizes(num_draws: int, size: int) -> list[int]:
  """Equal chunk sizes (one compilation) that add up to num_draws or more."""
  number = -(-num_draws // max(_CHUNK // size, 1))
  return [-(-num_draws // number)] * number
