"""How far noisy labels move a student, and what that can cost each group.

The student minimizes (1/m) sum_i loss_i + penalty ||theta||^2 over m public
queries, once with the teachers' plurality labels (theta*) and once with noisy
ones (theta~); d = theta~ - theta*. All bounds are expectations over the noise
on the labels, with float64 arithmetic on the host.

A trainer's `weight_decay` / 2 is the `penalty` here. Everything is penalized,
an intercept too: append a 1 to x, so that it counts in ||x||.
"""

from typing import NamedTuple

import numpy as np

from jaxfair import checks
from jaxfair.types import ArrayLike, Number


class DeviationBound(NamedTuple):
  """Upper bounds on how far the parameters move.

  Attributes:
    first: on E||d||.
    first_in_paper: twice as large, as it is printed in the papers.
    second: on E||d||^2.
  """

  first: Number
  first_in_paper: Number
  second: Number


def model_deviation_bound(
  flips: ArrayLike, norms: ArrayLike, *, penalty: float, softmax: bool = False
) -> DeviationBound:
  """Bounds the deviation of a student by flip probabilities and input norms.

  E||d||   <= 1/(2 m penalty) sum_x p_x ||x||
  E||d||^2 <= 1/(4 m^2 penalty^2) [(sum p ||x||)^2 + sum p (1 - p) ||x||^2]

  Args:
    flips: [..., m] p_x, for example from `flip_probability`.
    norms: [..., m] ||x|| for logistic regression; for any other loss of the
      form z(h(x)) + c y h(x), |c| times the largest norm of the gradient of
      h(x) over all theta.
    penalty: lambda of lambda ||theta||^2.
    softmax: whether each class has its own parameters (any number of classes,
      two included). A flipped label then moves two of them: sqrt(2) times the
      first moment, twice the second.

  Returns:
    Bounds of shape [...].

  Assumptions:
    A convex loss, linear in the label as above; both students solved to
    optimality; labels flip independently across queries.
    The objective is 2 penalty-strongly convex, so half of the papers' first
    bound holds; both are returned. The papers' bound on the second moment,
    sum p^2 ||x||^2 / (m penalty^2), squares an expectation and fails where
    flips are rare; the one above holds, with equality for a single query in
    the limit of a large penalty.

  Reference:
    Theorem 1 and Corollaries 1 and 2 of the PATE fairness paper, corrected.
  """
  flips, norms = np.asarray(flips, float), np.asarray(norms, float)
  checks.number("flips", flips, low=0.0, high=1.0)
  checks.non_negative("norms", norms)
  checks.positive("penalty", penalty)
  checks.require(
    flips.ndim >= 1 and norms.ndim >= 1 and flips.shape[-1] == norms.shape[-1],
    f"flips has shape {flips.shape} and norms {norms.shape}; pass one of each per query",
  )
  moved = flips * norms * np.sqrt(2 if softmax else 1)
  spread = flips * (1 - flips) * norms**2 * (2 if softmax else 1)
  total = moved.sum(axis=-1)
  scale = 2 * flips.shape[-1] * penalty
  return DeviationBound(
    first=total / scale,
    first_in_paper=2 * total / scale,
    second=(total**2 + spread.sum(axis=-1)) / scale**2,
  )
