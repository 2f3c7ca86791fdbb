"""Scalers fitted on one part and applied to all; rows bounded in norm."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.types import Features

Scale: TypeAlias = Literal["standard", "minmax", "none"]

CHUNK = 65_536  # rows at a time: float64 copies of image sets stay small


class Scaler(NamedTuple):
  """x -> clip((fill(x) - center) * factor, -limit, limit), column by column.

  Attributes:
    center: [d] (per channel for images).
    factor: [d]; 0 for a column that was constant in the fitted part, which
      therefore is 0 everywhere.
    fill: [d] what stands in for a missing number.
    limit: 1 for "minmax", so that no feature leaves [-1, 1]; else infinity.
  """

  center: np.ndarray
  factor: np.ndarray
  fill: np.ndarray
  limit: float

  def apply(self, x: Features) -> Any:
    """Fills and scales; float32. NumPy in, NumPy out; else JAX, jit-able."""
    xp: Any = np if isinstance(x, np.ndarray) else jnp
    filled = xp.where(xp.isnan(x), self.fill, x)
    scaled = (filled - self.center) * self.factor
    return xp.clip(scaled, -self.limit, self.limit).astype(xp.float32)

  def invert(self, z: Features) -> Any:
    """Back to the original units; constant columns get their constant."""
    xp: Any = np if isinstance(z, np.ndarray) else jnp
    constant = self.factor == 0
    safe = xp.where(constant, 1.0, self.factor)
    return xp.where(constant, self.center, z / safe + self.center)


def fit_scaler(x: Features, scale: Scale = "standard") -> Scaler:
  """Fits a scaler on one part: the training part, or public data.

  standard: zero mean, unit variance. minmax: the fitted part fills [-1, 1],
  later values are clipped to it. none: values as they are, gaps filled.
  A gap gets the column's mean.

  Args:
    x: [n, d] features with NaN for missing, or images [n, h, w, c], which are
      scaled per channel.
    scale: "standard", "minmax" or "none".

  Returns:
    The scaler.

  Privacy:
    Means, variances and extremes of private data are released by whatever uses
    the scaler, and no accountant here covers them. Where that matters, fit on
    public data.
  """
  checks.one_of("scale", scale, get_args(Scale))
  x = np.asarray(x)
  checks.require(
    x.ndim in (2, 4) and x.shape[0] > 0,
    f"x has shape {x.shape}; a scaler needs [n, d] or [n, h, w, c] with n > 0",
  )
  mean, variance, low, high = _moments(x)
  # A range that is too small to divide by in float32 counts as 0.
  constant = high - low < np.finfo(np.float32).tiny
  if scale == "standard":
    center, spread = mean, np.sqrt(variance)
  elif scale == "minmax":
    center, spread = (low + high) / 2, (high - low) / 2
  else:
    center, spread = np.zeros_like(mean), np.ones_like(mean)
    constant = np.zeros_like(constant)
  factor = np.where(constant, 0.0, 1 / np.where(constant, 1.0, spread))
  return Scaler(
    np.where(constant, low, center).astype(np.float32),
    factor.astype(np.float32),
    mean.astype(np.float32),
    1.0 if scale == "minmax" else np.inf,
  )


def bound_rows(x: Features, norm: float = 1.0) -> Any:
  """Projects each row into the ball of the given norm.

  x -> x min(1, norm / ||x||), so that a loss has a known Lipschitz constant.

  Args:
    x: [n, ...]; a row is everything after the first axis.
    norm: radius of the ball.

  Returns:
    Rows of at most that norm, also after rounding: scaled rows end a millionth
    inside the ball. A NumPy array for a NumPy array, otherwise a JAX array; works under jit.

  Privacy:
    Each row is scaled separately; one person does not affect another's row.
  """
  checks.positive("norm", norm)
  checks.finite("x", x)
  return bound_any_rows(x, norm)


def bound_any_rows(x: Features, norm: float) -> Any:
  """`bound_rows`, also of rows that are not finite: these become NaN, or stay as they are."""
  xp: Any = np if isinstance(x, np.ndarray) else jnp
  flat = x.reshape(x.shape[0], -1)
  # The largest entry is taken out first: squares of large numbers overflow.
  largest = xp.max(xp.abs(flat), axis=1, keepdims=True, initial=0.0)
  unit = flat / xp.where(largest > 0, largest, 1)
  length = xp.sqrt(xp.sum(unit * unit, axis=1, keepdims=True))
  inside = largest <= norm / xp.where(length > 0, length, 1)
  shorter = unit / xp.where(length > 0, length, 1) * (norm * (1 - 1e-6))
  return xp.where(inside, flat, shorter).astype(x.dtype).reshape(x.shape)


def _moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
  """Mean, variance, minimum and maximum of the known values, in float64.

  A column without any known value counts as constant 0.
  """
  rows = x.reshape(-1, x.shape[-1])
  gaps = np.isnan(rows).sum(axis=0)
  count = len(rows) - gaps
  low, high = np.fmin.reduce(rows), np.fmax.reduce(rows)
  total, squares = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
  for chunk in _chunks(rows, 0.0):
    total += chunk.sum(axis=0)
  mean = total / np.maximum(count, 1)
  for chunk in _chunks(rows, mean):
    chunk -= mean
    squares += np.einsum("ij,ij->j", chunk, chunk)
  known = count > 0
  return (
    mean,
    squares / np.maximum(count, 1),
    np.where(known, low, 0.0),
    np.where(known, high, 0.0),
  )


def _chunks(rows: np.ndarray, fill: float | np.ndarray) -> Iterator[np.ndarray]:
  """float64 copies of some rows at a time, with gaps filled."""
  for start in range(0, len(rows), CHUNK):
    chunk = rows[start : start + CHUNK].astype(np.float64)
    gaps = np.isnan(chunk)
    if gaps.any():
      chunk = np.where(gaps, fill, chunk)
    yield chunk
