"""From Renyi DP at several orders to one epsilon."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from jaxfair import checks
from jaxfair.accounting._data_dependent import DataDependentRdp
from jaxfair.accounting._guarantee import DataDependentEpsilon, delta_in_range

# The orders of dp-accounting, so that figures agree with it.
DEFAULT_ORDERS: tuple[float, ...] = (
  *(1 + x / 10.0 for x in range(1, 100)),
  *(float(a) for a in range(11, 64)),
  *(128.0, 256.0, 512.0, 1024.0),
)


def rdp_to_epsilon(
  rdp: ArrayLike,
  orders: Sequence[float] | np.ndarray,
  *,
  delta: Any,
  conversion: Literal["tight", "mironov"] = "tight",
) -> Any:
  """The smallest epsilon that the Renyi divergences r_a imply at this delta.

  mironov: min_a r_a - ln(delta) / (a - 1)
  tight:   min_a r_a + ln(1 - 1/a) - ln(delta a) / (a - 1), and 0 if any
           1 - exp(-r_a) <= delta^2

  Args:
    rdp: [..., orders] Renyi divergences; infinite where nothing is known.
    orders: a, each above 1.
    delta: one for all, or [...].
    conversion: "mironov" is what most papers print, and never below.

  Returns:
    [...] epsilons; a float for one vector of divergences. Divergences that
    were computed from private votes (`DataDependentRdp`, summed over queries)
    give a `DataDependentEpsilon`.

  Privacy:
    Every term of the minimum is a valid bound, so a finite set of orders errs
    on the safe side. As releasable as the divergences are.

  Reference:
    Mironov (2017), Proposition 3; Canonne, Kamath & Steinke (2020),
    Proposition 12; the last case is Bretagnolle & Huber's inequality with
    KL <= r_a.
  """
  checks.one_of("conversion", conversion, ("tight", "mironov"))
  if isinstance(rdp, DataDependentRdp):
    checks.require(
      rdp.ndim == 1 and np.ndim(delta) == 0,
      f"rdp has shape {rdp.shape}; sum data-dependent divergences over the "
      "queries first: rdp.sum(axis=0)",
    )
    figure = rdp_to_epsilon(rdp.not_for_release, orders, delta=delta, conversion=conversion)
    return DataDependentEpsilon(figure, float(delta))
  rdp = np.asarray(rdp, dtype=np.float64)
  a = np.asarray(orders, dtype=np.float64)
  checks.number("orders", a, low=1.0, open_low=True)
  checks.require(
    a.ndim == 1 and a.size > 0 and rdp.shape[-1:] == a.shape,
    f"rdp has shape {rdp.shape} for {a.size} orders; its last axis must hold one value per order",
  )
  checks.require(
    bool(np.all(rdp >= 0)), "rdp has negative or NaN entries; divergences are 0 or above"
  )
  delta = np.asarray(delta, dtype=np.float64)
  for one in (float(delta.min()), float(delta.max())):
    delta_in_range(one)
  log_delta = np.log(delta)[..., None]
  if conversion == "mironov":
    bounds = rdp - log_delta / (a - 1)
  else:
    bounds = rdp + np.log1p(-1 / a) - (log_delta + np.log(a)) / (a - 1)
    indistinguishable = delta[..., None] ** 2 + np.expm1(-rdp) > 0
    bounds = np.where(indistinguishable, 0.0, bounds)
  epsilon = np.maximum(bounds.min(axis=-1), 0.0)
  return float(epsilon) if epsilon.ndim == 0 else epsilon
