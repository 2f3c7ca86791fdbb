"""The one reader of traced programs (jaxprs).

Whoever looks into a program gives rules to the walker here, and does not loop
over equations itself: which primitives run another program, and how to open
them, is written down once, in `calls`.
"""

from jaxfair._jaxpr.calls import Kind, inner, kind, opened
from jaxfair._jaxpr.walking import bind, equations, uses, walk

__all__ = ["Kind", "bind", "equations", "inner", "kind", "opened", "uses", "walk"]
