"""What is measured, under which noise, and what is decided from it.

The type says what is charged. A release and a `Mechanism` touch true counts and
carry the `event` that a ledger charges. Everything in `postprocess` is a plain
function of numbers already released: free.
"""

import dataclasses
import os
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import accounting, checks, tree
from jaxfair.accounting import Composed, Event, Ledger, PureDp, _laplace
from jaxfair.decisions._function_values import Problem, as_tree, identity
from jaxfair.privacy import exact, noise
from jaxfair.types import ArrayLike, Counts


class Release(Protocol):
  """Numbers in, noisy numbers out.

  Attributes:
    unbiased: whether the noise has mean 0; simulations then need fewer draws.
  """

  unbiased: ClassVar[bool]

  @property
  def event(self) -> Event:
    """What a ledger charges."""

  def __call__(self, values: Counts, *, key: jax.Array) -> Counts:
    """The values with noise; the key is used once."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LaplaceRelease:
  """Independent Laplace noise on every number; for simulations.

  Real counts are published with `release_counts`, whose noise is exact.

  Attributes:
    scale: mean of |noise|, in people.
    sensitivity: L1 distance between neighbors. One person is in one count of
      a list of districts (1), and in three nested counts of one (3).
  """

  scale: Any
  sensitivity: Any = 1.0
  unbiased: ClassVar[bool] = True

  @classmethod
  def for_epsilon(cls, epsilon: float, *, sensitivity: float = 1.0) -> "LaplaceRelease":
    """The release that is epsilon-DP."""
    scale = _laplace.laplace_scale(epsilon=epsilon, sensitivity=sensitivity)
    return cls(scale, sensitivity)

  @property
  def variance(self) -> float:
    """2 scale^2."""
    return 2 * self.scale**2

  @property
  def event(self) -> Event:
    """Pure DP, at sensitivity / scale."""
    return PureDp(_laplace.laplace_epsilon(scale=self.scale, sensitivity=self.sensitivity))

  def __call__(self, values: Counts, *, key: jax.Array) -> Counts:
    """The values with noise, in their own type."""
    draws = noise.laplace(_float32_zeros(values), scale=self.scale, key=key)
    return tree.add(values, draws)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class GaussianRelease:
  """Independent Gaussian noise on every number; for simulations.

  Attributes:
    sigma: its standard deviation.
    sensitivity: L2 distance between neighbors.
  """

  sigma: Any
  sensitivity: Any = 1.0
  unbiased: ClassVar[bool] = True

  @property
  def variance(self) -> float:
    """sigma^2."""
    return self.sigma**2

  @property
  def event(self) -> Event:
    """One Gaussian release."""
    return accounting.Gaussian(self.sigma / self.sensitivity)

  def __call__(self, values: Counts, *, key: jax.Array) -> Counts:
    """The values with noise, in their own type."""
    draws = noise.gaussian(_float32_zeros(values), sigma=self.sigma, key=key)
    return tree.add(values, draws)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class JointRelease:
  """Several numbers about the same people, each under its own noise."""

  releases: tuple[Any, ...]
  unbiased: ClassVar[bool] = True

  @property
  def event(self) -> Event:
    """All of them, composed."""
    return Composed(tuple(release.event for release in self.releases))

  def __call__(self, values: Counts, *, key: jax.Array) -> Counts:
    """Every value under its own release."""
    keys = jax.random.split(key, len(self.releases))
    parts = zip(self.releases, values, keys, strict=True)
    return tuple(release(value, key=k) for release, value, k in parts)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Mechanism:
  """From true counts to outcomes: decide(release(query(counts))).

  Attributes:
    query: what is measured on the true counts.
    release: the noise on it, and its price.
    decide: post-processing: what is done with the released numbers.
  """

  query: Callable[[Any], Any]
  release: Any
  decide: Callable[[Any], Any]

  @property
  def event(self) -> Event:
    """What a ledger charges: that of the release alone."""
    event: Event = self.release.event
    return event

  def __call__(self, counts: Counts, *, key: jax.Array) -> Counts:
    """One outcome per entity."""
    return self.decide(self.release(self.query(counts), key=key))


def on_counts(problem: Problem, release: Release) -> Mechanism:
  """The usual way: noise on the counts, then the problem as if they were true.

  Post-processing of the counts goes into the problem:
  `lambda counts: problem(non_negative(counts))`.
  """
  return Mechanism(as_tree(identity), as_tree(release), as_tree(problem))


def release_counts(
  counts: ArrayLike,
  *,
  epsilon: float,
  ledger: Ledger,
  id: str,
  sensitivity: int = 1,
  source: exact.BitSource = os.urandom,
) -> np.ndarray:
  """Publishes counts with exact discrete Laplace noise, charged first.

  Args:
    counts: array of integers.
    epsilon: epsilon of this release, for one person added or removed.
    ledger: a ledger that is open for charges.
    id: names the release in the ledger; one id publishes once.
    sensitivity: by how much one more person moves the counts, in L1.
    source: source of random bits; the operating system by default.

  Returns:
    Noisy integers.

  Privacy:
    epsilon-DP for one person added or removed, exactly: integer arithmetic.
    A person replaced is one removed and one added: a ledger of such neighbors
    is charged twice epsilon.
  """
  checks.integer("sensitivity", sensitivity, low=1)
  check = np.asarray(counts)
  checks.require(
    check.dtype.kind in "iu", f"counts hold {check.dtype} numbers; exact noise is for whole people"
  )
  scale = _laplace.laplace_scale(epsilon=epsilon, sensitivity=sensitivity)
  moves = 2 if ledger.relation.substitutes else 1
  fresh = ledger.charge(PureDp(moves * epsilon), id=id)
  checks.require(fresh, f"id={id!r} was published before; fresh noise needs another id")
  return exact.discrete_laplace(check, scale=scale, source=source)


def _float32_zeros(values: Counts) -> Counts:
  """The noise is float32; it is added in the type of the counts."""
  return jax.tree.map(lambda v: jnp.zeros(jnp.shape(v), jnp.float32), values)
