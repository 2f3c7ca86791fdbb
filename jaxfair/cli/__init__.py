"""The command line: parses arguments, calls the library and prints; computes nothing itself."""

from jaxfair.cli._app import main

__all__ = ["main"]
