"""Noise for arrays and trees: Gaussian, Laplace, and their discrete versions.

All are pure functions of a key that can be jitted and mapped over keys. The leaves of a tree
share one counter stream, so never use a key for two calls. For a release the key comes from
`os_key`, never from a seed.
"""

import functools
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks, tree
from jaxfair.privacy import _dense_sum, _random_words, _thresholds
from jaxfair.privacy._rational import rational
from jaxfair.types import Array, Key, Number

Tree = Any
# Of a scale above 0: the grid of `_dense_sum` ends there, and below 2^-126 a scale counts as 0.
_LEAST = 2.0**-90


def gaussian(value: Tree, *, sigma: Number, key: Key, by_leaf: bool = False) -> Tree:
  """Adds independent N(0, sigma^2) noise to every number of a tree.

  Args:
    value: tree of float32 (or shorter) arrays.
    sigma: standard deviation; a number or a traced scalar. 0 returns the value as it is.
    key: used once.
    by_leaf: draws the same noise for each leaf in its own shape, so that a leaf that is sharded
      over devices needs no communication. It takes longer to compile for many small leaves.

  Privacy:
    If a neighbor (one person added, removed or replaced, as the query's sensitivity D in L2 was
    derived) moves the tree by at most D, the release is (D/sigma)^2/2-zCDP, hence (a, a D^2/(2
    sigma^2))-RDP for every a > 1; `accounting.gaussian_epsilon` is exact. These are statements
    about real numbers. Results lie on a public grid of about sigma / 2^23, and 48 random bits stand
    behind each, so that no value makes results impossible that another makes possible;
    docs/noise.md says what is proved of that.

  Reference:
    Bun & Steinke (2016), Proposition 1.6; Balle & Wang (2018).
  """
  _check_floats(value)
  checks.one_key("key", key)
  return _add_gaussian(value, _float32_up("sigma", sigma), key, by_leaf=by_leaf)


def laplace(value: Tree, *, scale: Number, key: Key) -> Tree:
  """Adds independent Laplace noise to every number of a tree.

  density(x) = exp(-|x| / scale) / (2 scale)

  Args:
    value: tree of float32 (or shorter) arrays.
    scale: mean of |noise|; a number or a traced scalar. 0 returns the value as it is.
    key: used once.

  Privacy:
    D/scale-DP for neighbors that move the tree by at most D in L1, as a statement about real
    numbers; for counts prefer `discrete_laplace`. No draw is beyond 43.7 scales: 2^-63 of the mass.

  Reference:
    Dwork, McSherry, Nissim & Smith (2006), Proposition 1.
  """
  _check_floats(value)
  checks.one_key("key", key)
  return _add_laplace(value, _float32_up("scale", scale), key)


def discrete_gaussian(value: Tree, *, sigma: Number | Fraction, key: Key) -> Tree:
  """Adds independent discrete Gaussian noise to every integer of a tree.

  Pr[noise = n] proportional to exp(-n^2 / (2 sigma^2))

  Args:
    value: tree of integer arrays with |value| + 14 sigma below 2^31.
    sigma: parameter of the law; a number, known before tracing. The standard
      deviation is never above it.
    key: used once.

  Returns:
    The tree in int32.

  Privacy:
    If neighbors move the tree of integers by at most D in L2, the release is D^2/(2 sigma^2)-zCDP,
    the bound of the continuous law, without its floating-point leaks. The law drawn is within
    `discrete_gaussian_distance` of the exact one: n draws add (1 + e^epsilon) n distance to delta.
    Sums that leave int32 wrap around, which is post-processing.

  Reference:
    Canonne, Kamath & Steinke (2020), Theorem 4.
  """
  table = _thresholds.discrete_gaussian(rational("sigma", sigma))
  return _add_integers(value, table, key)


def discrete_laplace(value: Tree, *, scale: Number | Fraction, key: Key) -> Tree:
  """Adds independent discrete Laplace noise to every integer of a tree.

  Pr[noise = n] = (1 - q) / (1 + q) q^|n|,  q = exp(-1 / scale)

  Args:
    value: tree of integer arrays with |value| + 89 scale below 2^31.
    scale: parameter of the law; a number, known before tracing.
    key: used once.

  Returns:
    The tree in int32.

  Privacy:
    If neighbors move the tree of integers by at most D in L1, the release is
    D/scale-DP, up to `discrete_laplace_distance` per draw: n draws add
    (1 + e^epsilon) n distance to delta. `exact.discrete_laplace` adds nothing.
    Sums that leave int32 wrap around, which is post-processing.

  Reference:
    Ghosh, Roughgarden & Sundararajan (2012), the geometric mechanism.
  """
  table = _thresholds.discrete_laplace(rational("scale", scale))
  return _add_integers(value, table, key)


def discrete_gaussian_distance(*, sigma: Number | Fraction) -> float:
  """Total-variation distance of one draw to the exact law, rounded up."""
  table = _thresholds.discrete_gaussian(rational("sigma", sigma))
  return table.distance


def discrete_laplace_distance(*, scale: Number | Fraction) -> float:
  """Total-variation distance of one draw to the exact law, rounded up."""
  table = _thresholds.discrete_laplace(rational("scale", scale))
  return table.distance


@functools.partial(jax.jit, static_argnames=("by_leaf",))
def _add_gaussian(value: Tree, sigma: Number, key: jax.Array, *, by_leaf: bool) -> Tree:
  leaves, treedef = jax.tree.flatten(value)
  leaves = [jnp.asarray(leaf) for leaf in leaves]
  add = _dense_sum.add_normal_by_leaf if by_leaf else _dense_sum.add_normal
  totals = add(leaves, sigma=sigma, key=key)
  noisy = [
    # Adding a zero would lose the sign of -0.0.
    jnp.where(sigma == 0, leaf, total.astype(leaf.dtype))
    for leaf, total in zip(leaves, totals, strict=True)
  ]
  return jax.tree.unflatten(treedef, noisy)


@jax.jit
def _add_laplace(value: Tree, scale: Number, key: jax.Array) -> Tree:
  words = _random_words.random_words(key, tree.size(value))
  # The lowest bit of `high` is not used by the magnitude: it is the sign.
  sign = jnp.where(words.high & 1, -1.0, 1.0)
  # Dividing by the sign, not multiplying: XLA stores the result of a division
  # that several leaves read, and else runs the cipher again for each leaf.
  draws = jnp.log(_random_words.unit_interval(words)) / sign
  return _add_scaled(value, scale, draws)


def _add_scaled(value: Tree, scale: Number, draws: jax.Array) -> Tree:
  """value + scale * draws, the leaves one after the other."""
  leaves, treedef = jax.tree.flatten(value)
  leaves = [jnp.asarray(leaf) for leaf in leaves]
  noisy = []
  for leaf, draw in zip(leaves, _cut(draws, leaves), strict=True):
    total = (leaf.astype(jnp.float32) + scale * draw).astype(leaf.dtype)
    # Adding a zero would lose the sign of -0.0.
    noisy.append(jnp.where(scale == 0, leaf, total))
  return jax.tree.unflatten(treedef, noisy)


def _add_integers(value: Tree, table: _thresholds.Thresholds, key: jax.Array) -> Tree:
  checks.one_key("key", key)
  reach = table.length // 2
  limit = 2**31 - 1 - reach
  integers = jax.tree.map(lambda leaf: _as_int32(leaf, limit), value)
  return _add_drawn(integers, table.words, reach, key)


@jax.jit
def _add_drawn(value: Tree, table: _thresholds.Words, reach: Number, key: jax.Array) -> Tree:
  leaves, treedef = jax.tree.flatten(value)
  draws = _thresholds.draw(key, table, count=tree.size(value)) - reach
  noisy = [leaf + draw for leaf, draw in zip(leaves, _cut(draws, leaves), strict=True)]
  return jax.tree.unflatten(treedef, noisy)


def _cut(draws: jax.Array, leaves: list[jax.Array]) -> list[jax.Array]:
  """A flat array, cut into the shapes of the leaves."""
  ends = np.cumsum([leaf.size for leaf in leaves])
  return [
    draws[end - leaf.size : end].reshape(leaf.shape) for leaf, end in zip(leaves, ends, strict=True)
  ]


def _as_int32(leaf: Array, limit: int) -> jax.Array:
  known = checks.concrete(leaf)
  leaf = np.asarray(leaf) if known else leaf
  # A tracer's range is unknown: its type must fit int32.
  fits = leaf.dtype.kind in "iu" and (known or np.can_cast(leaf.dtype, np.int32))
  checks.require(
    fits,
    f"value holds {leaf.dtype} numbers; discrete noise is for int32 counts "
    "(for real numbers use noise.gaussian or noise.laplace)",
  )
  if known and leaf.size:
    checks.number(
      "value",
      [leaf.min(), leaf.max()],
      low=-limit,
      high=limit,
      remedy="noisy sums are int32; privacy.exact has room for larger counts",
    )
  return jnp.asarray(leaf, jnp.int32)


def _check_floats(value: Tree) -> None:
  for leaf in jax.tree.leaves(value):
    dtype = jax.dtypes.canonicalize_dtype(jnp.result_type(leaf))
    checks.require(
      jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize <= 4,
      f"value holds {dtype} numbers, but the noise is float32 and would not "
      "cover them; cast to float32 (for counts use the discrete noise)",
    )


def _float32_up(name: str, value: Number) -> Any:
  """The scale of the noise in float32, rounded up.

  A traced one has been rounded already, perhaps down, when it became float32
  and by what it was multiplied with: it is raised by 16 such roundings.
  """
  checks.require(
    jnp.ndim(value) == 0, f"{name} has shape {jnp.shape(value)}; pass one number, or vmap over them"
  )
  if not checks.concrete(value):
    return jnp.asarray(value, jnp.float32) * (1 + 2.0**-20)
  checks.number(name, value, low=0.0, high=float(np.finfo(np.float32).max))
  least = _LEAST if float(value) else 0.0
  checks.number(name, value, low=least, remedy="float32 noise vanishes below; scale values up")
  nearest = np.float32(value)
  short = float(nearest) < float(value)
  return np.nextafter(nearest, np.float32(np.inf)) if short else nearest
