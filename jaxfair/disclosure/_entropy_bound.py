"""How uncertain a label can be once a core feature set is known."""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import entr

from jaxfair import checks
from jaxfair.types import ArrayLike


def entropy_bound(delta: ArrayLike, *, num_classes: int = 2) -> jax.Array:
  """The largest entropy of the label that a core feature set with failure probability delta allows.

  epsilon(delta) = -delta log delta - (1 - delta) log(1 - delta) + delta log(C - 1)

  Given a core set one label has probability 1 - d with d <= delta. The others share d, and by
  concavity their entropy is largest if they share it equally, which gives epsilon(d). Its
  derivative log((1 - d) (C - 1) / d) is positive for d < 1/2, so that epsilon(d) <= epsilon(delta),
  and the bound is attained. epsilon(0) = 0: a pure core set leaves nothing to learn.

  Args:
    delta: failure probability of the core set, in [0, 1/2); a number or an array.
    num_classes: C, at least 2.

  Returns:
    The bound in nats, of the shape of delta. It is differentiable in delta above 0; at 0 the
    derivative is infinite.

  Reference:
    Thesis, Proposition 7.1, for two classes. It calls the function decreasing; it decreases in
    1 - delta.
  """
  checks.number("delta", delta, low=0.0, high=0.5, open_high=True)
  checks.integer("num_classes", num_classes, low=2)
  delta = jnp.asarray(delta)
  return entr(delta) + entr(1 - delta) + delta * math.log(num_classes - 1)
