"""Chapter 2: decisions made on private counts.

`allotments` and `rules` are the studies; the others hold their data, claims
and figures.
"""
