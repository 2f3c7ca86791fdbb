"""How a command ends: version, help, mistakes, Ctrl-C."""

import errno
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import jaxfair as package
from jaxfair import checks, experiments

CONFIG = """
study = "methods"
public_fraction = 0.15
methods = ["dp_sgd"]
epsilons = [8.0]
seeds = 2
settings.dp_sgd.steps = {steps}
settings.plain.steps = 5
data.name = "colored_digits"
"""


@pytest.mark.parametrize("option", ["--version"])
def test_version(jaxfair, option):
  assert jaxfair(option) == (0, f"jaxfair {package.__version__}\n", "")


def test_help_names_the_commands(jaxfair):
  for arguments in (("--help",), ("-h",), ()):
    ended = jaxfair(*arguments)
    for command in ("run", "list", "report", "data"):
      assert command in ended.out + ended.err


def test_an_unknown_command_is_a_usage_error(jaxfair):
  ended = jaxfair("rum")
  assert ended.code == 2
  assert "rum" in ended.err
  assert "Traceback" not in ended.err


def test_a_mistake_is_one_line_whatever_its_message(refused, monkeypatch, tmp_path):
  def fail(path, **options):
    raise checks.ArgumentError("first\nsecond   line")

  monkeypatch.setattr(experiments, "load", fail)
  assert refused("run", "a.toml") == "jaxfair: first second line"


def test_a_full_disk_is_one_line(refused, monkeypatch):
  def fail(path, **options):
    raise OSError(errno.ENOSPC, "No space left on device", "page.html")

  monkeypatch.setattr(experiments, "load", fail)
  told = refused("run", "a.toml")
  assert "page.html cannot be written (No space left on device)" in told
  assert "the same command continues" in told


def test_a_bug_is_not_hidden(jaxfair, monkeypatch):
  def fail(path, **options):
    raise ZeroDivisionError

  monkeypatch.setattr(experiments, "load", fail)
  with pytest.raises(ZeroDivisionError):
    jaxfair("run", "a.toml")


# A shell that starts tests in the background has them ignore Ctrl-C, and so
# their children; a person's terminal does not.
MODULE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("jaxfair", run_name="__main__", alter_sys=True)
"""


def start(folder, *arguments):
  environment = {k: v for k, v in os.environ.items() if k != "JAXFAIR_DATA"}
  environment |= {"JAXFAIR_CACHE": str(folder / "cache"), "NO_COLOR": "1"}
  return subprocess.Popen(
    [sys.executable, "-c", MODULE, *arguments],
    cwd=folder,
    env=environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


@pytest.mark.slow
def test_ctrl_c_leaves_a_run_that_continues(jaxfair, tmp_path):
  # So many steps that the last cell cannot end before the signal.
  (tmp_path / "a.toml").write_text(CONFIG.format(steps=1500))
  run = tmp_path / "runs" / "a"
  process = start(tmp_path, "run", "a.toml")
  while len(list(run.glob("cells/*.csv"))) < 2:
    assert process.poll() is None, process.communicate()
    time.sleep(0.02)
  first = run / "cells" / min(path.name for path in run.glob("cells/*.csv"))
  before = first.read_bytes(), first.stat().st_mtime_ns
  process.send_signal(signal.SIGINT)
  out, err = process.communicate(timeout=60)
  assert process.returncode == 130, err
  assert "stopped; the same command continues" in err
  assert "Traceback" not in err
  assert out == ""
  assert not (run / "results.csv").exists()

  ended = jaxfair("run", "a.toml")
  assert ended.code == 0, ended
  assert "2 of 3 cells were computed by an earlier run" in ended.err
  assert (first.read_bytes(), first.stat().st_mtime_ns) == before
  assert (run / "report.html").exists()


@pytest.mark.slow
def test_the_module_is_the_command(tmp_path):
  process = start(pathlib.Path(tmp_path), "--version")
  assert process.communicate()[0] == f"jaxfair {package.__version__}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
  ("given", "told"),
  [
    ({}, str(len(os.sched_getaffinity(0)))),
    ({"JAX_NUM_CPU_DEVICES": "3"}, "3"),
    ({"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}, "None"),
  ],
)
def test_every_core_is_a_device_unless_told_otherwise(given, told):
  code = (
    "import os; from jaxfair.cli import _app as app; app._use_all_cores(); "
    "print(os.environ.get('JAX_NUM_CPU_DEVICES'))"
  )
  known = {
    name: value
    for name, value in os.environ.items()
    if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
  }
  done = subprocess.run(
    [sys.executable, "-c", code], env=known | given, capture_output=True, text=True, check=True
  )
  assert done.stdout.strip() == told


SPECTRA = """
from jaxfair.cli import _app as app

app._use_all_cores()
import jax
import jax.numpy as jnp
from jaxfair.training._ensembles import map_members


def spectrum(key, common):
  half = jax.random.normal(key, (64, 8, 8))
  return jnp.linalg.eigh(half @ half.swapaxes(1, 2))[0].sum()


for seed in range(100):
  keys = jax.random.split(jax.random.key(seed), 40)
  map_members(spectrum, keys, None, chunk=4).block_until_ready()
"""


@pytest.mark.slow
def test_members_that_need_more_threads_do_not_wait_for_ever():
  known = {
    name: value
    for name, value in os.environ.items()
    if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "NPROC")
  }
  subprocess.run([sys.executable, "-c", SPECTRA], env=known, check=True, timeout=300)
