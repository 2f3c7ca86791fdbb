"""Argument checks with actionable messages.

Values are checked once, on the host, before any work starts. Inside a
transformation (jit, vmap, grad) the values are not known: those checks pass.
"""

import difflib
import math
import os
import reprlib
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

LONGEST = 200  # characters of a value that a message shows
MOST_OPTIONS = 50  # names that it lists


class JaxfairError(Exception):
  """A mistake a person can mend; the command line prints it as one line."""


class ArgumentError(JaxfairError, ValueError):
  """An argument that cannot be used: which one, why, and what to do."""


def require(condition: bool, message: str) -> None:
  """Raises `ArgumentError(message)` unless the condition holds."""
  if not condition:
    raise ArgumentError(message)


def concrete(value: object) -> bool:
  """Whether the value is known now (not a tracer).

  Privacy arithmetic works without JAX, which takes most of a second to import:
  where nobody has imported it there are no tracers.
  """
  jax = sys.modules.get("jax")
  return jax is None or not any(
    isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(value)
  )


def untraced(name: str, value: object, *, reason: str) -> None:
  """Requires values that are known now: the function cannot be traced."""
  require(
    concrete(value),
    f"{name} cannot run inside jit, vmap or grad: {reason}; call it once per "
    "key and setting in a Python loop",
  )


def shown(value: object) -> str:
  """The value as a message shows it: `repr`, cut to the length of a line.

  What people pass by mistake may be a whole file, or a number with thousands
  of digits, which Python refuses to write out.
  """
  return _SHORT.repr(value)


def number(
  name: str,
  value: object,
  *,
  low: float = -math.inf,
  high: float = math.inf,
  open_low: bool = False,
  open_high: bool = False,
  remedy: str = "",
) -> None:
  """Requires a finite number (or array of numbers) within bounds."""
  if not concrete(value):
    return
  try:
    array = np.asarray(value, dtype=np.float64)
  except OverflowError:
    allowed = _range(low, high, open_low, open_high)
    raise ArgumentError(
      f"{name}={shown(value)} must be {allowed}, and is too large for a float64"
    ) from None
  except (TypeError, ValueError):
    raise ArgumentError(f"{name}={shown(value)} is not a number") from None
  below = array <= low if open_low else array < low
  above = array >= high if open_high else array > high
  bad = below | above | ~np.isfinite(array)
  if np.any(bad):
    first = array.flat[int(np.argmax(bad))] if array.ndim else value
    raise ArgumentError(
      f"{name}={first} must be {_range(low, high, open_low, open_high)}"
      + (f"; {remedy}" if remedy else "")
    )


def positive(name: str, value: object, remedy: str = "") -> None:
  """Requires a finite number above 0."""
  number(name, value, low=0.0, open_low=True, remedy=remedy)


def non_negative(name: str, value: object, remedy: str = "") -> None:
  """Requires a finite number that is 0 or above."""
  number(name, value, low=0.0, remedy=remedy)


def integer(
  name: str, value: Any, *, low: int | None = None, high: int | None = None, remedy: str = ""
) -> None:
  """Requires a whole number within bounds (both included)."""
  is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
  require(is_int, f"{name}={shown(value)} must be a whole number")
  too_low = low is not None and value < low
  too_high = high is not None and value > high
  if too_low or too_high:
    bounds = [] if low is None else [f"at least {low}"]
    bounds += [] if high is None else [f"at most {high}"]
    raise ArgumentError(
      f"{name}={shown(value)} must be {' and '.join(bounds)}" + (f"; {remedy}" if remedy else "")
    )


def one_of(name: str, value: object, allowed: Iterable[Any]) -> None:
  """Requires one of the allowed values, and suggests the nearest name."""
  allowed = list(allowed)
  if value not in allowed:
    raise ArgumentError(f"{name}={shown(value)} is not known; {options(value, allowed)}")


def options(value: object, allowed: Iterable[Any]) -> str:
  """'use one of a, b, c (did you mean b?)', for error messages."""
  names = [str(item) for item in allowed]
  # Alike is a matter of letters: what is longer than a name resembles none.
  text = str(value) if isinstance(value, str | os.PathLike) else shown(value)
  near = difflib.get_close_matches(text[:LONGEST], names, n=1)
  hint = f" (did you mean {near[0]}?)" if near else ""
  told = [repr(one) if "," in one else one for one in names[:MOST_OPTIONS]]
  more = len(names) - len(told)
  rest = f", ... ({more} more)" if more else ""
  return f"use one of {', '.join(told)}{rest}{hint}"


def same_length(**arrays: Any) -> int:
  """Requires equal leading axes; returns their length."""
  for name, array in arrays.items():
    require(np.shape(array) != (), f"{name} is a single value; pass one row per person")
  lengths = {name: np.shape(array)[0] for name, array in arrays.items()}
  if len(set(lengths.values())) > 1:
    told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
    raise ArgumentError(f"one row per person is needed everywhere, but {told}")
  return int(next(iter(lengths.values())))


def one_per_person(**arrays: Any) -> int:
  """Requires vectors of one length; returns it."""
  size = same_length(**arrays)
  for name, array in arrays.items():
    shape = np.shape(array)
    require(
      len(shape) == 1, f"{name} has shape {shape}; pass one value per person, shape ({size},)"
    )
  return size


def people(examples: Any) -> int:
  """Requires one row of numbers per person in every field; how many there are."""
  fields = examples._asdict()
  for name, array in fields.items():
    dtype = getattr(array, "dtype", None)
    require(
      dtype is None or dtype.kind not in "OSU",
      f"examples.{name} holds {dtype} values, not numbers; encode them first "
      "(data.from_frame does)",
    )
  size = same_length(**fields)
  one_per_person(**{"examples.group": examples.group})
  require(size > 0, "examples is empty; training needs some rows")
  return size


def finite(name: str, array: Any) -> None:
  """Requires every value to be finite; names the first row that is not."""
  if not concrete(array):
    return
  if _elsewhere(array):
    import jax.numpy as jnp

    bad = ~jnp.isfinite(array).all(axis=tuple(range(1, array.ndim)))
  else:
    array = np.asarray(array)
    if _all_finite(array):
      return
    bad = ~np.isfinite(array.reshape(array.shape[0], -1)).all(axis=1)
  if bad.any():
    raise ArgumentError(
      f"{name} has {int(bad.sum())} rows with NaN or infinite values (the "
      f"first is row {int(bad.argmax())}); drop or impute them first"
    )


def _elsewhere(array: object) -> bool:
  """Whether other processes hold a part of the array: all of them look at it together."""
  return not (
    getattr(array, "is_fully_addressable", True) or getattr(array, "is_fully_replicated", False)
  )


def _all_finite(array: np.ndarray) -> bool:
  """Whether the sum of squares is finite: one pass, and no array of answers.

  False may also mean that it overflows, which only tells to look closer.
  """
  if not array.size or array.dtype.kind in "iub":
    return True
  if array.dtype not in (np.float32, np.float64):
    return False
  flat = array.ravel()
  with np.errstate(over="ignore", invalid="ignore"):
    return bool(np.isfinite(np.dot(flat, flat)))


def ids(name: str, array: Any, count: int) -> None:
  """Requires whole-number ids in [0, count)."""
  if not concrete(array):
    return
  array = array if _elsewhere(array) else np.asarray(array)
  if array.dtype.kind not in "iub":
    raise ArgumentError(
      f"{name} holds {array.dtype} values, not integer ids; encode the "
      f"classes or groups as 0..{count - 1} first"
    )
  if array.size and (array.min() < 0 or array.max() >= count):
    raise ArgumentError(
      f"{name} has ids from {array.min()} to {array.max()}, outside "
      f"0..{count - 1}; encode them as 0..{count - 1} or raise the count"
    )


def key(name: str, value: object) -> None:
  """Requires a typed JAX random key."""
  import jax

  dtype = getattr(value, "dtype", None)
  if dtype is None or not jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
    raise ArgumentError(
      f"{name} must be a random key; pass {name}=jax.random.key(seed), or "
      "jax.random.wrap_key_data for an old-style key"
    )


def one_key(name: str, value: Any) -> None:
  """Requires a single typed key, not an array of them."""
  key(name, value)
  if np.shape(value) != ():
    raise ArgumentError(
      f"{name} is an array of {math.prod(np.shape(value))} keys; pass one of "
      "them, or map over them with jax.vmap"
    )


def _range(low: float, high: float, open_low: bool, open_high: bool) -> str:
  if low == -math.inf and high == math.inf:
    return "a finite number"
  if high == math.inf:
    return f"above {low:g}" if open_low else f"{low:g} or above"
  if low == -math.inf:
    return f"below {high:g}" if open_high else f"{high:g} or below"
  left, right = "(" if open_low else "[", ")" if open_high else "]"
  return f"in {left}{low:g}, {high:g}{right}"


class _Short(reprlib.Repr):
  """`repr` for one line of a message."""

  def __init__(self) -> None:
    super().__init__()
    self.maxstring = self.maxother = self.maxlong = LONGEST
    self.maxlist = self.maxtuple = self.maxdict = self.maxset = 20

  def repr_int(self, x: int, level: int) -> str:
    """Digits, but for numbers that nobody wants to read."""
    if x.bit_length() <= 256:
      return repr(x)
    sign = "-" if x < 0 else ""
    return f"{sign}<a whole number of {x.bit_length()} bits>"


_SHORT = _Short()
