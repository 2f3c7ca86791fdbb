"""Turns tables into figures and one self-contained HTML page.

This package draws what studies describe and never computes a result.
"""

from jaxfair.report._page import write

__all__ = ["write"]
