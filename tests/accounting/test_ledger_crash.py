"""kill -9 at any moment: nothing released is missing from the ledger."""

import os
import subprocess
import sys

import pytest

TRIALS = 40

# One process that has everything loaded forks the writers it then kills.
SCRIPT = """
import os, random, select, signal, sys, time
from jaxfair.accounting import Ledger, Relation, ZCdp

folder, trials = sys.argv[1], int(sys.argv[2])
rng = random.Random(0)
sync = os.fsync
midway = 0

def slow_sync(handle):  # widens the window between writing and returning
  time.sleep(rng.random() * 0.001)
  sync(handle)

os.fsync = slow_sync
for trial in range(trials):
  path = os.path.join(folder, f"{trial}.jsonl")
  Ledger.create(path, data="adult", relation=Relation.ZERO_OUT).close()
  released = []
  for life in range(2):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
      os.close(read)
      with Ledger.open(path) as ledger:
        number = len(ledger)
        while True:
          if ledger.charge(ZCdp(0.001), id=str(number)):
            os.write(write, f"{number}\\n".encode())  # the release
          number += 1
    os.close(write)
    select.select([read], [], [], 10)
    time.sleep(rng.random() * 0.008)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
      released += pipe.read().split()
    found = Ledger.read(path)
    charged = [entry.id for entry in found]
    missing = set(released) - set(charged)
    if missing or not released or len(set(charged)) != len(charged):
      sys.exit(f"trial {trial}: released but not charged: {missing}")
    midway += len(charged) > len(released)
  with Ledger.open(path) as ledger:  # the dead left no lock
    ledger.charge(ZCdp(0.002), id="last")
print(midway)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_kill_9_never_loses_what_was_released(tmp_path):
  done = subprocess.run(
    [sys.executable, "-c", SCRIPT, str(tmp_path), str(TRIALS)],
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  # Kills did land between the write and the release, where it matters.
  assert int(done.stdout.split()[-1]) > TRIALS // 10
