"""The command tree, and how a command ends."""

import os
import sys
from typing import Annotated

import typer

from jaxfair import __version__, _whole_files
from jaxfair.checks import JaxfairError
from jaxfair.cli import (
  _account,
  _ask,
  _datasets,
  _decide,
  _examples,
  _explain,
  _frontier,
  _predict,
  _release,
  _runs,
  _train,
)

STOPPED = 130  # what typer makes of Ctrl-C: 128 + SIGINT, as shells have it

app = typer.Typer(
  no_args_is_help=True,
  rich_markup_mode=None,  # brackets in help texts are brackets
  pretty_exceptions_enable=False,
  context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
  help="Who pays for privacy? Train private models and measure every group.",
)
app.command()(_train.train)
app.command()(_runs.run)
app.command()(_runs.merge)
app.command()(_runs.audit)
app.command()(_decide.decide)
app.command(name="list")(_runs.list_all)
app.command()(_runs.report)
app.command()(_explain.explain)
app.command()(_frontier.frontier)
app.command()(_ask.ask)
app.command()(_release.release)
app.command()(_predict.predict)
app.command()(_predict.export)
app.add_typer(_datasets.app, name="data")
app.add_typer(_account.app, name="account")
_examples.show_in_help(app)


def main() -> None:
  """Runs a command; a person's mistake is one line and exit code 2."""
  _use_all_cores()
  try:
    app()
  except JaxfairError as error:
    typer.echo(f"jaxfair: {' '.join(str(error).split())}", err=True)
    sys.exit(2)
  except OSError as error:
    told = _whole_files.disk_error(error)
    if told is None:
      raise
    typer.echo(
      f"jaxfair: {told}; finished work is kept; the same command continues once it can write",
      err=True,
    )
    sys.exit(2)
  except SystemExit as ended:
    if ended.code == STOPPED:
      typer.echo("jaxfair: stopped; the same command continues where it stopped", err=True)
    raise


def _use_all_cores() -> None:
  """Makes every core a device, over which the members of a study are spread.

  One device leaves most cores idle: its programs are many small operations.
  Results are the same bits on any number of devices at one size of XLA's pool
  of threads, by which it cuts long sums. A number that the user has set is kept.

  XLA's pool of threads gets one thread more than there are devices. Some
  operations (`eigh`) wait for the pool from within it, and with every thread
  held by a device they would wait for ever.
  """
  flags = os.environ.get("XLA_FLAGS", "")
  if "jax" in sys.modules or "host_platform_device_count" in flags:
    return
  cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else (os.cpu_count() or 1)
  os.environ.setdefault("JAX_NUM_CPU_DEVICES", str(cores))
  os.environ.setdefault("NPROC", str(cores + 1))  # XLA's name for that number


def _version(wanted: bool) -> None:
  if wanted:
    typer.echo(f"jaxfair {__version__}")
    raise typer.Exit


@app.callback()
def _root(
  version: Annotated[
    bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
  ] = False,
) -> None:
  del version
