"""Messages about a user's own table, in terms of command line options."""

import contextlib
import re
from collections.abc import Iterator

from jaxfair import checks

# What the library calls an argument, and the option that sets it.
_OPTIONS = (
  (r"\bdrop=", "--drop"),
  (r"\bpositive='([^']*)'", r"--positive '\1'"),
  (r"\bpositive=(?=[\s;,]|$)", "--positive"),
  (r"\bmulticlass=True", "--set data.multiclass=true"),
  (r"\bthreshold=(?=[\s;,]|$)", "--set data.threshold=NUMBER"),
  (r"\bbins=\{'[^']*': \[edges\]\}", "--set 'data.bins=[25, 60]', with your own edges,"),
  (r"\bmin_group_size=(\d+)", r"--set data.min_group_size=\1"),
  (r"\bcategorical=(?=[\s;,]|$)", "--set 'data.categorical=[\"NAME\"]'"),
  (r"\bdeclare its range\b", "declare its range (--range NAME=LOW:HIGH)"),
  (
    r"\bdeclare a range: ranges=\{'([^']*)': \(low, high\)\}",
    r"declare a range: --range \1=LOW:HIGH",
  ),
  (r", pass decimal=',' if the comma is the decimal sign,", ","),
)


@contextlib.contextmanager
def in_options() -> Iterator[None]:
  """Names options in place of the arguments of `data.from_csv` in errors of the context."""
  try:
    yield
  except checks.ArgumentError as error:
    told = str(error)
    for argument, option in _OPTIONS:
      told = re.sub(argument, option, told)
    raise checks.ArgumentError(told) from None
