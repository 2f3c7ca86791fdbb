"""The command line: it parses arguments, calls the library and prints; it computes nothing itself."""

from jaxfair.cli._app import main

__all__ = ["main"]
