"""Messages about a user's own table, in terms of command line options."""

import contextlib
import re
from collections.abc import Iterator

from jaxfair import checks

# What the library calls an argument, and the option that sets it.
_OPTIONS = (
  (r"--data\.range\b", "--range"),
  (r"--settings\.(\w+)", r"--set \1"),
  (r"\bpublic_fraction=", "--public="),
  (r"\bsettings\.tuned_dp_sgd\.mean_runs=", "--tune="),
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
  """Names options in place of arguments and keys of configs in errors of the context."""
  from jaxfair.experiments._config import ConfigError

  try:
    yield
  except (checks.ArgumentError, ConfigError) as error:
    told = str(error)
    for argument, option in _OPTIONS:
      told = re.sub(argument, option, told)
    raise type(error)(told) from None
