"""The one reader of traced programs (jaxprs).

Code that inspects a program passes rules to this walker and does not loop over equations itself.
Which primitives call another program, and how to open them, is listed once, in `calls`.
"""

from jaxfair._jaxpr.calls import Kind, Program, inner, kind, opened
from jaxfair._jaxpr.unit_axes import without_unit_axes
from jaxfair._jaxpr.walking import bind, equations, uses, walk
from jaxfair._jaxpr.wide_rows import has_short_rows, looks_up_short_rows, with_wide_rows

__all__ = [
  "Kind",
  "Program",
  "bind",
  "equations",
  "has_short_rows",
  "inner",
  "kind",
  "looks_up_short_rows",
  "opened",
  "uses",
  "walk",
  "with_wide_rows",
  "without_unit_axes",
]
