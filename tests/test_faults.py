"""benchmarks/faults.py in small: kills, malformed configs and files."""

import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[1] / "benchmarks" / "faults.py"


def faults(*arguments):
  done = subprocess.run(
    [sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, timeout=900
  )
  assert done.returncode == 0, done.stdout + done.stderr
  rows = [line.split("|") for line in done.stdout.splitlines()[2:]]
  return {row[2].strip(): int(row[3]) for row in rows}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_killed_anywhere_everything_goes_on_and_is_charged():
  found = faults("--only", "kills", "--kills", 12)
  assert len(found) == 5
  assert sum(found.values()) >= 12


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(("part", "count"), [("configs", 60), ("files", 40)])
def test_malformed_input_is_taken_or_refused_in_one_line(part, count):
  assert sum(faults("--only", part, f"--{part}", count).values()) == count
