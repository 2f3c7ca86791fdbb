"""Renyi divergences that were computed from private votes, and say so."""

from typing import Any, NoReturn

import numpy as np

_REFUSED = (
  "these divergences were computed from private votes and cannot be released; "
  "use the data-independent or the sanitized figures, or read "
  ".not_for_release for your own eyes"
)


class DataDependentRdp(np.ndarray):
  """Divergences at the votes that were cast: a diagnosis, not for release.

  An array that stays of this type through slices, sums and arithmetic, shows
  no figures when printed, and becomes a `DataDependentEpsilon` in
  `rdp_to_epsilon`. A ledger does not take it.
  """

  @property
  def not_for_release(self) -> np.ndarray:
    """The figures, as a plain array, for your own eyes."""
    return self.view(np.ndarray)

  def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    # Without this, a sum over everything would come out as a plain number.
    del context
    plain = np.asarray(array)
    if plain.dtype.kind == "f":
      return plain.view(DataDependentRdp)
    return plain[()] if return_scalar else plain  # comparisons

  def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    # np.where, np.concatenate and the like would drop the type.
    found = super().__array_function__(function, types, args, kwargs)
    if isinstance(found, np.ndarray | np.floating):
      return self.__array_wrap__(found, return_scalar=True)
    return found

  def __getitem__(self, index: Any) -> Any:
    return np.asarray(self.view(np.ndarray)[index]).view(DataDependentRdp)

  def __iter__(self) -> Any:
    return (self[i] for i in range(len(self)))

  def __float__(self) -> NoReturn:
    raise TypeError(_REFUSED)

  def item(self, *index: Any) -> NoReturn:
    """Refused: a plain number could end up in a report."""
    raise TypeError(_REFUSED)

  def tolist(self) -> NoReturn:
    """Refused: plain numbers could end up in a report."""
    raise TypeError(_REFUSED)

  def __format__(self, spec: str) -> str:
    return repr(self)

  def __repr__(self) -> str:
    return f"DataDependentRdp(<not for release>, shape={self.shape})"

  __str__ = __repr__


def marked(rdp: np.ndarray) -> DataDependentRdp:
  """The same numbers, marked as computed from private votes."""
  return rdp.view(DataDependentRdp)
