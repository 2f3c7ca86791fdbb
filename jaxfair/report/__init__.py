"""Tables -> figures and one self-contained HTML page.

Draws what studies describe; never computes a result.
"""

from jaxfair.report._collection import count, is_collection, write_collection
from jaxfair.report._frontier_page import write_frontier
from jaxfair.report._page import write

__all__ = ["count", "is_collection", "write", "write_collection", "write_frontier"]
