"""Terms of a private training's objective that no clipping protects."""

from typing import Protocol

import jax

from jaxfair import checks
from jaxfair.types import Model, Params


class UncoveredError(checks.JaxfairError):
  """An epsilon was asked for that would not cover all that was computed."""


class Penalty(Protocol):
  """A term of the objective besides the people's losses.

  Attributes:
    public: whether it reads nothing but parameters and public data. If not, no
      epsilon covers the training, and none can be had from its config.
    inside: whether private training adds its gradient to each person's before
      clipping, instead of behind the noise.
  """

  @property
  def public(self) -> bool:
    """See the class."""

  @property
  def inside(self) -> bool:
    """See the class."""

  def check(self, model: Model) -> None:
    """Refuses what cannot be trained with, before any work."""

  def gradient(self, params: Params, *, l2_clip: jax.Array | None, key: jax.Array) -> Params:
    """Its gradient at the parameters; the key is used once.

    There is no clip bound in a training without privacy.
    """
