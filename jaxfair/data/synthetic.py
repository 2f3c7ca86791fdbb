"""Synthetic people whose difficulty is known exactly."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.data.dataset import Dataset, Source
from jaxfair.types import Examples


def two_gaussians(
  sizes: Sequence[int] = (1000, 1000),
  *,
  margins: float | Sequence[float] = 1.0,
  norms: float | Sequence[float] | None = None,
  positive: float | Sequence[float] = 0.5,
  dimension: int = 2,
  spread: float = 1.0,
  key: jax.Array,
) -> Dataset:
  """Two Gaussians per group, one per class, with known size, margin and norm.

  x = (2 y - 1) margin_a e_0 + shift_a e_1 + N(0, spread^2 I)

  The best classifier is 1{x_0 > 0} for every group if its classes are equally
  frequent, and errs on group a with probability Phi(-margin_a / spread). The
  shift along e_1 says nothing about the class; it sets the group's root mean
  square norm: norm_a^2 = margin_a^2 + shift_a^2 + dimension spread^2.

  Args:
    sizes: people in each group.
    margins: distance of a group's class means from the boundary.
    norms: root mean square input norm of each group; None: no shift.
    positive: probability of class 1 in each group.
    dimension: number of features, at least 2.
    spread: standard deviation of the noise.
    key: used once.

  Returns:
    The data set, rows in random order.
  """
  checks.key("key", key)
  checks.integer("dimension", dimension, low=2)
  checks.positive("spread", spread)
  checks.require(len(sizes) > 0, "sizes is empty; name the size of each group")
  for size in sizes:
    checks.integer("sizes", size, low=1)
  margin = _per_group("margins", margins, len(sizes))
  rate = _per_group("positive", positive, len(sizes))
  checks.non_negative("margins", margin)
  checks.number("positive", rate, low=0.0, high=1.0)
  shift = _shifts(norms, margin, dimension, spread)
  key_order, key_label, key_noise = jax.random.split(key, 3)
  group = jax.random.permutation(
    key_order, np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
  )
  y = jax.random.bernoulli(key_label, jnp.asarray(rate)[group])
  x = spread * jax.random.normal(key_noise, (len(group), dimension))
  x = x.at[:, 0].add((2 * y - 1) * jnp.asarray(margin)[group])
  x = x.at[:, 1].add(jnp.asarray(shift)[group])
  return _dataset(
    "two_gaussians", x, y, group, tuple(f"group {a}" for a in range(len(sizes)))
  )


def gaussian_mixture(
  size: int,
  *,
  mu_minus: float = -1.0,
  mu_plus: float = 1.0,
  ratio: float = 5.0,
  positive: float = 0.5,
  key: jax.Array,
) -> Dataset:
  """The two unequal Gaussians of the thesis' chapter 6; the class is the group.

  x | y = 0 ~ N(mu_minus, 1),  x | y = 1 ~ N(mu_plus, ratio^2)

  Args:
    size: number of people.
    mu_minus: mean of class 0.
    mu_plus: mean of class 1, above mu_minus.
    ratio: standard deviation of class 1 (K).
    positive: probability of class 1.
    key: used once.

  Returns:
    The data set, with one feature.

  Reference:
    Section 6.6, Theorem 6.1.
  """
  checks.key("key", key)
  checks.integer("size", size, low=1)
  checks.positive("ratio", ratio)
  checks.number("positive", positive, low=0.0, high=1.0)
  checks.number(
    "mu_plus", mu_plus, low=mu_minus, open_low=True,
    remedy="mu_plus lies above mu_minus",
  )  # fmt: skip
  key_label, key_noise = jax.random.split(key)
  y = jax.random.bernoulli(key_label, positive, (size,))
  noise = jax.random.normal(key_noise, (size,))
  x = jnp.where(y, mu_plus + ratio * noise, mu_minus + noise)
  return _dataset("gaussian_mixture", x[:, None], y, y, ("minus", "plus"))


def _shifts(
  norms: float | Sequence[float] | None,
  margin: np.ndarray,
  dimension: int,
  spread: float,
) -> np.ndarray:
  if norms is None:
    return np.zeros_like(margin)
  norm = _per_group("norms", norms, len(margin))
  squared = margin**2 + dimension * spread**2
  checks.require(
    bool(np.all(norm**2 >= squared)),
    f"norms={norm.tolist()} is less than the classes and the noise need "
    f"({np.sqrt(squared).round(3).tolist()}); ask for larger norms or a "
    "smaller spread",
  )
  return np.sqrt(norm**2 - squared)


def _per_group(
  name: str, value: float | Sequence[float], num_groups: int
) -> np.ndarray:
  checks.number(name, value)
  array = np.asarray(value, np.float64)
  checks.require(
    array.ndim == 0 or array.shape == (num_groups,),
    f"{name}={value!r} must be one number, or one for each of the "
    f"{num_groups} groups",
  )
  return np.broadcast_to(array, (num_groups,))


def _dataset(
  name: str,
  x: jax.Array,
  y: jax.Array,
  group: jax.Array,
  group_names: tuple[str, ...],
) -> Dataset:
  names = tuple(f"x{i}" for i in range(x.shape[1]))
  return Dataset(
    name=name,
    examples=Examples(
      np.asarray(x, np.float32),
      np.asarray(y, np.int32),
      np.asarray(group, np.int32),
    ),
    class_names=("0", "1"),
    group_names=group_names,
    feature_names=names,
    columns=names,
    source=Source("synthetic Gaussians", "free", "generated by jaxfair"),
  )
