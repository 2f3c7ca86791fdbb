"""PATE: what epsilon, noise and consensus test buy, as one frontier."""

from jaxfair.studies.pate.frontier.study import STUDY

__all__ = ["STUDY"]
