"""Second-order wavelet scattering of images (Mallat 2012): fixed features, nothing learned."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.models import _moments
from jaxfair.models._features import Extractor
from jaxfair.types import Features, Params


def scattering(
  J: int = 2, L: int = 8, *, groups: int | None = 27, moments: tuple[float, float] | None = None
) -> Extractor:
  """Wavelet scattering with J scales and L angles, normalized image by image.

  S0 = x * phi,  S1 = |x * psi_1| * phi,  S2 = ||x * psi_1| * psi_2| * phi

  psi are Morlet wavelets at scales 2^j and angles pi l / L, phi a Gaussian of scale 2^J; each
  path is sampled every 2^J pixels: 81 maps of 7 x 7 for a gray image of 28 x 28 and J = 2,
  L = 8. The maps are then divided into groups, and each group of an image gets mean zero and
  variance one over its maps and pixels (group normalization).

  Args:
    J: number of scales.
    L: number of angles.
    groups: number of groups of each channel's maps; None leaves the maps as they are.
    moments: standard deviations of rows and of columns of ink, in pixels, that each image is
      brought to first by its own moments: moved to the middle, sheared upright and stretched.
      For writing and other shapes on a background of zeros; (5.5, 3.6) suits digits in a box of
      20 x 20 pixels. Of the channels it keeps the largest value at each pixel. None leaves images
      as they are.

  Returns:
    An extractor of images [n, h, w, c] with sides of at least 2^J, to [n, c * maps * pixels]; with
    `moments` to [n, maps * pixels].

  Privacy:
    A function of one image that looks at no other: it costs nothing. `moments` are settings: do
    not compute them from private people.

  Reference:
    Tramer and Boneh 2021, Differentially private learning needs better features; the filters
    are those of kymatio 0.3, to rounding.
  """
  checks.integer("J", J, low=1, high=8)
  checks.integer("L", L, low=1)
  maps = 1 + L * J + L * L * J * (J - 1) // 2
  if groups is not None:
    checks.integer("groups", groups, low=1)
    allowed = [k for k in range(1, maps + 1) if maps % k == 0]
    checks.require(
      groups in allowed, f"groups={groups} does not divide {maps} maps; use one of {allowed}"
    )
  name = f"scattering(J={J}, L={L}, groups={groups})"
  if moments is not None:
    checks.require(len(moments) == 2, f"moments={moments} are not two spreads; use (5.5, 3.6)")
    moments = (float(moments[0]), float(moments[1]))
    for spread in moments:
      checks.positive("moments", spread)
    name = f"moments{moments} {name}"
  return Extractor(name, {}, _Apply(J, L, groups, moments))


@dataclasses.dataclass(frozen=True)
class _Apply:
  """`Extractor.apply`; equal settings compile once."""

  scales: int
  angles: int
  groups: int | None
  moments: tuple[float, float] | None = None

  def __call__(self, params: Params, x: Features) -> jax.Array:
    shape = np.shape(x)
    checks.require(
      len(shape) == 4 and min(shape[1:3]) >= 2**self.scales,
      f"x has shape {shape}; pass images [n, h, w, c] of at least {2**self.scales} pixels a side",
    )
    if self.moments is None:
      channels = jnp.moveaxis(jnp.asarray(x, jnp.float32), 3, 1).reshape(-1, *shape[1:3])
    else:
      brought = functools.partial(_moments.normalized, spreads=self.moments)
      channels = jax.vmap(brought)(jnp.max(jnp.asarray(x, jnp.float32), axis=3))
    found = transform(channels, self.scales, self.angles)
    if self.groups is not None:
      found = _normalized(found, self.groups)
    return found.reshape(shape[0], -1)


def transform(x: jax.Array, scales: int, angles: int) -> jax.Array:
  """[n, h, w] -> [n, maps, h', w'], paths in the order (), (j1, l1), (j1, l1, j2, l2)."""
  bank = _filter_bank(*x.shape[1:], scales, angles)
  padded = jnp.pad(x, ((0, 0), *bank.pads), mode="reflect")
  spectrum = jnp.fft.fft2(padded)[:, None]
  zeroth = _smooth(padded, bank.low_pass[0])[:, None]
  first, second = [], []
  for j1 in range(scales):
    u1 = _modulus(spectrum, bank.wavelets[0, j1], 2**j1)  # [n, l1, h, w]
    first.append(_smooth(u1, bank.low_pass[j1]))
    deeper = []
    for j2 in range(j1 + 1, scales):
      wavelets = bank.wavelets[j1, j2]
      u2 = _modulus(jnp.fft.fft2(u1)[:, :, None], wavelets, 2 ** (j2 - j1))
      deeper.append(_smooth(u2, bank.low_pass[j2]))  # [n, l1, l2, h, w]
    if deeper:
      joined = jnp.concatenate(deeper, axis=2)
      second.append(joined.reshape(joined.shape[0], -1, *joined.shape[3:]))
  return jnp.concatenate([zeroth, *first, *second], axis=1)


class _Bank(NamedTuple):
  """Filters for images of one shape.

  Attributes:
    pads: pixels added by reflection before and after each axis.
    wavelets: (level, j) -> [l, h, w] spectra at the resolution of this level.
    low_pass: per level, the matrices that smooth and sample rows and columns.
  """

  pads: tuple[tuple[int, int], ...]
  wavelets: dict[tuple[int, int], np.ndarray]
  low_pass: list[tuple[np.ndarray, np.ndarray]]


@functools.lru_cache(maxsize=8)
def _filter_bank(height: int, width: int, scales: int, angles: int) -> _Bank:
  step = 2**scales
  sides = [((side + step) // step + 1) * step for side in (height, width)]
  pads = tuple(
    ((large - small) // 2, (large - small + 1) // 2)
    for large, small in zip(sides, (height, width), strict=True)
  )
  wavelets = {}
  for j in range(scales):
    spectra = np.stack([_morlet(sides, j, angle, angles) for angle in range(angles)])
    for level in range(j + 1):
      wavelets[level, j] = _coarse(_coarse(spectra, 1, level), 2, level).astype(np.float32)
  # A round Gaussian is a product of one along each axis.
  phi = [_gaussian_spectrum(side, 0.8 * 2 ** (scales - 1)) for side in sides]
  low_pass = [
    tuple(_sampler(_coarse(one, 0, level), 2 ** (scales - level)) for one in phi)
    for level in range(scales)
  ]
  return _Bank(pads, wavelets, low_pass)  # type: ignore[arg-type]


# The filters' published norm uses this value of pi; the true one would move every feature
# by 3e-5 of itself.
_PI = 3.1415


def _morlet(sides: list[int], j: int, angle: int, angles: int) -> np.ndarray:
  """The spectrum of a Morlet wavelet, which is real; periodic in space."""
  sigma, frequency, slant = 0.8 * 2**j, 0.75 * math.pi / 2**j, 4 / angles
  theta = (int(angles - angles / 2 - 1) - angle) * math.pi / angles
  cos, sin = math.cos(theta), math.sin(theta)
  total: Any = 0.0
  envelope: Any = 0.0
  for shift in np.ndindex(5, 5):
    rows, columns = np.meshgrid(
      *(np.arange(side) + (k - 2) * side for side, k in zip(sides, shift, strict=True)),
      indexing="ij",
    )
    along, across = rows * cos + columns * sin, columns * cos - rows * sin
    bump = np.exp(-(along**2 + slant**2 * across**2) / (2 * sigma**2))
    total = total + bump * np.exp(1j * frequency * along)
    envelope = envelope + bump
  wave = total - envelope * total.sum() / envelope.sum()  # mean zero
  return np.real(np.fft.fft2(wave / (2 * _PI * sigma**2 / slant)))


def _gaussian_spectrum(side: int, sigma: float) -> np.ndarray:
  positions = np.arange(side) + side * np.arange(-2, 3)[:, None]
  bump = np.exp(-(positions**2) / (2 * sigma**2)).sum(axis=0)
  return np.real(np.fft.fft(bump)) / math.sqrt(2 * _PI * sigma**2)


def _coarse(spectra: np.ndarray, axis: int, level: int) -> np.ndarray:
  """The low frequencies along an axis: the filter for images sampled every 2^level pixels."""
  size = spectra.shape[axis]
  kept = size >> level
  rows = np.r_[: kept // 2, size - (kept - kept // 2) : size]
  return spectra if level == 0 else np.take(spectra, rows, axis)


def _sampler(spectrum: np.ndarray, step: int) -> np.ndarray:
  """[outputs, side]: smooth, take every `step`-th, leave out one at either end."""
  smooth = np.real(
    np.fft.ifft(np.fft.fft(np.eye(len(spectrum)), axis=0) * spectrum[:, None], axis=0)
  )
  return smooth[::step][1:-1].astype(np.float32)


def _smooth(u: jax.Array, matrices: tuple[np.ndarray, np.ndarray]) -> jax.Array:
  rows, columns = matrices
  return jnp.einsum("ai,...ij,bj->...ab", rows, u, columns)


def _modulus(spectrum: jax.Array, wavelets: np.ndarray, step: int) -> jax.Array:
  """|u * psi| sampled every `step` pixels: folding a spectrum samples the image."""
  product = spectrum * wavelets
  *rest, height, width = product.shape
  folded = product.reshape(*rest, step, height // step, step, width // step).mean((-4, -2))
  return jnp.abs(jnp.fft.ifft2(folded))


def _normalized(maps: jax.Array, groups: int) -> jax.Array:
  grouped = maps.reshape(maps.shape[0], groups, -1)
  centered = grouped - jnp.mean(grouped, axis=2, keepdims=True)
  variance = jnp.mean(jnp.square(centered), axis=2, keepdims=True)
  return centered * jax.lax.rsqrt(variance + 1e-5)
