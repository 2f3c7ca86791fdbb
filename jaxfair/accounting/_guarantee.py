"""Privacy statements: how much, for whom, by which analysis."""

import enum
import math
from dataclasses import dataclass

from jaxfair import _notebook, checks


class BudgetError(checks.JaxfairError):
  """A release would exceed the privacy budget."""


class DeltaWarning(UserWarning):
  """A delta so large that publishing one whole record would satisfy it."""


class Relation(enum.Enum):
  """Which two data sets count as neighbors.

  Attributes:
    ADD_OR_REMOVE_ONE: one has one more record than the other.
    REPLACE_ONE: same size, one record is another person's.
    ZERO_OUT: same size, one record is replaced by one that contributes
      nothing to any sum but still takes its place in the sampling.
    ATTRIBUTE: same size, one record differs in one private attribute; all
      else is public.
  """

  ADD_OR_REMOVE_ONE = "add-or-remove-one"
  REPLACE_ONE = "replace-one"
  ZERO_OUT = "zero-out"
  ATTRIBUTE = "attribute"

  @property
  def fixed_size(self) -> bool:
    """Whether neighbors have the same number of records."""
    return self is not Relation.ADD_OR_REMOVE_ONE

  @property
  def substitutes(self) -> bool:
    """Whether a person's bounded contribution c can become any other.

    Then a sum of contributions of norm at most C moves by up to 2 C.
    """
    return self in (Relation.REPLACE_ONE, Relation.ATTRIBUTE)


_MEANING = {
  Relation.ADD_OR_REMOVE_ONE: "added or removed",
  Relation.REPLACE_ONE: "replaced by another",
  Relation.ZERO_OUT: "replaced by an empty record",
  Relation.ATTRIBUTE: "changed in the private attribute alone",
}


@dataclass(frozen=True)
class PrivacyGuarantee:
  """An (epsilon, delta) that depends on no private data: it may be released.

  Attributes:
    epsilon: already rounded towards privacy (up) where it was computed.
    delta: in [0, 1).
    relation: which data sets count as neighbors.
    unit: the unit that is protected, "one person" or "one household" for example.
    accountant: which analysis gave the number.
  """

  epsilon: float
  delta: float
  relation: Relation
  unit: str
  accountant: str

  def __str__(self) -> str:
    return (
      f"epsilon {round_up(self.epsilon)}, delta {round_up(self.delta)} for "
      f"{self.unit} {_MEANING[self.relation]} ({self.accountant})"
    )

  def _repr_html_(self) -> str:
    return _notebook.facts(str(self), ())


@dataclass(frozen=True, repr=False)
class DataDependentEpsilon:
  """An epsilon that was computed from private data and is therefore private itself.

  It can be read only as `not_for_release`: nothing that formats, converts
  or sums numbers will put it into a report by accident.

  Attributes:
    not_for_release: the figure.
    delta: the delta of this epsilon.
  """

  not_for_release: float
  delta: float

  def __float__(self) -> float:
    raise TypeError(
      "a data-dependent epsilon is computed from private data and cannot be "
      "used as a releasable number; release the data-independent or the "
      "sanitized one, or read .not_for_release for your own eyes"
    )

  def __repr__(self) -> str:
    return f"DataDependentEpsilon(<not for release>, delta={self.delta:g})"


def round_up(value: float, digits: int = 4) -> float:
  """The smallest number with `digits` significant digits that is not below `value`."""
  if value == 0 or not math.isfinite(value):
    return value
  exponent = digits - 1 - math.floor(math.log10(abs(value)))
  rounded = float(f"{value:.{digits - 1}e}")
  if rounded < value:
    # Through the decimal form: 10**-exponent itself may not be representable.
    rounded = float(f"{value + 0.5 * 10.0**-exponent:.{digits - 1}e}")
  return rounded if rounded >= value else math.nextafter(value, math.inf)


def delta_in_range(delta: float, *, zero: bool = False) -> None:
  """Requires 0 < delta < 1 (or 0 <= delta, where pure privacy is meant)."""
  checks.number(
    "delta",
    delta,
    low=0.0,
    high=1.0,
    open_low=not zero,
    open_high=True,
    remedy="use well below one over the number of people, such as 1e-5",
  )
