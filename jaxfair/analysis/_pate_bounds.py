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
from jaxfair.fairness._groups import group_means
from jaxfair.types import ArrayLike, Features, Groups, Number


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


def smoothness(norms: ArrayLike, *, softmax: bool = False) -> np.ndarray:
  """beta_x: how much the gradient of one loss can turn, by input norm.

  ||x||^2 / 4 with one logit, ||x||^2 / 2 with one per class

  Args:
    norms: ||x||; a group's beta is that of its largest norm.
    softmax: whether each class has its own parameters.

  Reference:
    Proposition 2 of the PATE fairness paper. For softmax, 1/2 is the largest
    eigenvalue of diag(p) - p p^T over all p.
  """
  norms = np.asarray(norms, float)
  checks.non_negative("norms", norms)
  return norms**2 / (2 if softmax else 4)


def excess_risk_bound(
  gradient_norms: ArrayLike, smoothness: ArrayLike, deviation: DeviationBound
) -> np.ndarray:
  """Bounds the excess risk of a person or of a group.

  R <= ||gradient at theta*|| E||d|| + beta / 2 E||d||^2

  Args:
    gradient_norms: of a person's loss at theta*, or of a group's mean loss.
    smoothness: beta_x of the person, or of the group.
    deviation: what `model_deviation_bound` gave.

  Assumptions:
    beta-smooth losses, and those of `model_deviation_bound`. It bounds the
    smooth loss, not the 0/1 loss.

  Reference:
    Theorem 3 of the PATE fairness paper.
  """
  gradients, betas = _factors(gradient_norms, smoothness)
  return gradients * deviation.first + 0.5 * betas * deviation.second


def fairness_bound(
  gradient_norms: ArrayLike, smoothness: ArrayLike, deviation: DeviationBound
) -> float:
  """Bounds the largest difference of excess risks between two groups.

  xi <= 2 max_a ||G_a|| E||d|| + 1/2 max_a beta_a E||d||^2

  Args:
    gradient_norms: [groups] ||G_a||, see `group_gradient_norms`; NaN for an
      empty group, which is left out.
    smoothness: [groups] beta_a.
    deviation: what `model_deviation_bound` gave.

  Assumptions:
    As in `excess_risk_bound`, and convex losses: the gap also needs a bound
    from below.

  Reference:
    Theorem 4.1 of the thesis.
  """
  gradients, betas = _factors(gradient_norms, smoothness)
  here = ~np.isnan(gradients + betas)
  checks.require(bool(here.any()), "gradient_norms has no group; pass at least one")
  first, second = float(deviation.first), float(deviation.second)
  steepest = float(gradients[here].max())
  return 2 * steepest * first + 0.5 * float(betas[here].max()) * second


def group_gradient_norms(gradients: Features, group: Groups, *, num_groups: int) -> np.ndarray:
  """[groups] ||G_a||, the norm of a group's mean gradient; NaN if empty.

  To float32 rounding, as gradients usually are.

  Args:
    gradients: [m, parameters] each person's gradient at theta*.
    group: [m] group ids.
    num_groups: number of groups.
  """
  means = np.asarray(group_means(gradients, group, num_groups), float)
  return np.linalg.norm(means, axis=-1)


def _factors(gradient_norms: ArrayLike, smoothness: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
  gradients = np.asarray(gradient_norms, float)
  betas = np.asarray(smoothness, float)
  for name, values in (("gradient_norms", gradients), ("smoothness", betas)):
    checks.require(not np.any(values < 0), f"{name} has negative entries; they are norms")
  gradients, betas = np.broadcast_arrays(gradients, betas)
  return gradients, betas
