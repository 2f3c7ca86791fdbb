"""Tables -> figures and one self-contained HTML page.

Draws what studies describe; never computes a result.
"""

from jaxfair.report._page import write

__all__ = ["write"]
