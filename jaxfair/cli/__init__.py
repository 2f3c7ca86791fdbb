"""The command line: parse, call, print. Nothing is computed here."""

from jaxfair.cli._app import main

__all__ = ["main"]
