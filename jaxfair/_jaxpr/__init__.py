"""The one reader of traced programs (jaxprs).

Code that inspects a program passes rules to this walker and does not loop over equations itself.
Which primitives call another program, and how to open them, is listed once, in `calls`.
"""

from jaxfair._jaxpr.calls import Kind, inner, kind, opened
from jaxfair._jaxpr.walking import bind, equations, uses, walk

__all__ = ["Kind", "bind", "equations", "inner", "kind", "opened", "uses", "walk"]
