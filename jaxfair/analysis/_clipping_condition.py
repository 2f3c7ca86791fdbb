"""When clipping must cost one group more than another: Theorem 3.3 of the thesis."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxfair import checks
from jaxfair.types import Array, Number


def clipping_margin(
  gradient_norms: Array, shares: Array, *, l2_clip: Number, batch_variance: Number = 0.0
) -> jax.Array:
  """By how much a sufficient condition for a larger clipping term is met, for each of two groups.

  margin_a = |g_a| p_a^2 / 2 - 5/2 C - |g_b| (1 + p_b + p_b^2 / 2) - v / (2 |g_a|)

  If margin_a is not negative, clipping costs group a more than group b in the next step:
  R_a^clip > R_b^clip (`decompose(...).clipping`). A negative margin says nothing.

  The condition is far from necessary. Whatever C is, it needs
  |g_a| / |g_b| >= 2 (1 + p_b + p_b^2 / 2) / p_a^2: 13 for groups of equal size, and 461 for a group
  that is a tenth of the people.

  Args:
    gradient_norms: [..., 2] norms of the groups' mean gradients, without clipping. These are not
      the means of norms that `norms` returns.
    shares: [..., 2] the groups' shares p of all people; both together are everybody.
    l2_clip: C.
    batch_variance: v = E|g_B - g|^2 + E|gbar_B - gbar|^2, of the batches' mean gradients without
      and with clipping; 0 if a step uses everybody.

  Returns:
    [..., 2] margins, differentiable in all arguments.

  Assumptions:
    Each group's loss is convex and beta-smooth, and the learning rate eta is at most 1 / beta.

  Proof:
    Write A = |g_a|, B = |g_b|, g = p_a g_a + p_b g_b, and gbar for the mean of clipped gradients,
    so that |gbar_a|, |gbar_b| and |gbar| are at most C. Convexity and smoothness bound every form
    x' H x between 0 and beta |x|^2. With eta beta <= 1, the curvature parts of R_a and R_b differ
    by at least -eta/2 (E|g_B|^2 + E|gbar_B|^2) >= -eta/2 (|g|^2 + C^2 + v). Therefore

      (R_a - R_b) / eta >= <g_a - g_b, g - gbar> - (|g|^2 + C^2 + v) / 2
        >= A^2 p_a (1 - p_a/2) - A B (1 + p_a p_b) - A C - B^2 p_b (1 + p_b/2) - B C - (C^2 + v)/2

    by Cauchy and Schwarz, term by term. A margin of at least 0 implies A > B and A > C. Replacing
    one B of each product by A, and p_a (1 - p_a/2 - p_b) by p_a^2 / 2, gives

      >= A (A p_a^2 / 2 - 2 C - B (1 + p_b + p_b^2 / 2)) - (C^2 + v) / 2
       = A margin_a + C (A - C) / 2 > 0.

  Reference:
    Thesis chapter 3, Theorems 3.3 and 3.8. There v is 0 by an assumption on the variance of the
    norms |g_B|. That is not enough: the step (3.22d) needs the variance of the vectors, which is v.
  """
  norms, parts = jnp.asarray(gradient_norms), jnp.asarray(shares)
  checks.positive("l2_clip", l2_clip)
  checks.non_negative("batch_variance", batch_variance)
  checks.require(
    norms.shape[-1:] == parts.shape[-1:] == (2,),
    f"gradient_norms {norms.shape} and shares {parts.shape} must end in 2: the theorem is about "
    "two groups; merge the others into one of them",
  )
  if checks.concrete(parts):
    known = np.asarray(parts)
    checks.require(
      bool((known >= 0).all() and (abs(known.sum(-1) - 1) < 1e-3).all()),
      "shares must be at least 0 and sum to 1; divide the groups' sizes by the number of people",
    )
  other, rest = norms[..., ::-1], parts[..., ::-1]
  ahead = norms * parts**2 / 2 - other * (1 + rest + rest**2 / 2)
  # A group without a gradient has a negative margin anyway; it must not become NaN.
  positive = norms > 0
  spread = jnp.where(positive, batch_variance / (2 * jnp.where(positive, norms, 1.0)), 0.0)
  return ahead - 2.5 * l2_clip - spread
