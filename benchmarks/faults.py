"""Kills, full disks and malformed input: what survives, in one table.

    python benchmarks/faults.py                  # all of it
    python benchmarks/faults.py --only kills --job Answerer --work folder
    python benchmarks/faults.py --only configs --case 17    # one case again

Kills are SIGKILL, at a random operation on files or a random moment; a folder
is killed up to four times before it may finish. A finished run must equal an
uninterrupted one to the bit where its key is fixed; whatever was released must
be charged, once. A full disk is an error of the operating system from a random
operation on, or a limit on the size of files. Malformed input must be taken, or
refused in one line that names it. Everything is drawn from `--seed`.
"""

import argparse
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("NPROC", "2")  # XLA's threads; bits depend on it

# Imported here, and not in every child.
import fault_inputs
import fault_jobs
import fault_kills
import matplotlib.pyplot  # noqa: F401
import orbax.checkpoint  # noqa: F401
from fault_kills import Row

PARTS = ("kills", "disks", "configs", "files")
HEADS = ("part", "what", "faults", "resumed", "equal bits", "failures")


def main() -> None:
  """Runs the parts that were asked for; exit code 1 if anything fails."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--only", choices=PARTS)
  parser.add_argument("--kills", type=int, default=200)
  parser.add_argument("--disks", type=int, default=40)
  parser.add_argument("--configs", type=int, default=1000)
  parser.add_argument("--files", type=int, default=300)
  parser.add_argument("--job", default="", help="only kills of this, by name")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--case", type=int, help="one config or file, in full")
  parser.add_argument("--work", type=pathlib.Path, help="an empty folder to keep")
  chosen = parser.parse_args()
  with tempfile.TemporaryDirectory(prefix="jaxfair-faults-") as own:
    work = chosen.work or pathlib.Path(own)
    fault_kills.prepare(work.resolve())
    rows = [
      (part, row)
      for part in PARTS
      if chosen.only in (None, part)
      for row in run(part, chosen, work.resolve())
    ]
  show(rows)
  sys.exit(any(row.failures for _, row in rows))


def run(part: str, chosen: argparse.Namespace, work: pathlib.Path) -> list[Row]:
  """The rows of one part; each is told as soon as it is known."""
  count, rows = getattr(chosen, part), []
  if part in ("configs", "files"):
    rows = fault_inputs.check(part, count, work, chosen.seed, chosen.case)
  else:
    attack = fault_kills.kills if part == "kills" else fault_kills.full_disks
    for job in fault_jobs.JOBS:
      if not job.name.startswith(chosen.job):
        continue
      own = max(1, round(job.share * count))
      rows.append(attack(job, own, work, chosen.seed))
      print(f"{part}: {job.name}: done", file=sys.stderr, flush=True)
  return rows


def show(rows: list[tuple[str, Row]]) -> None:
  """The table, then every failure with how to see it again."""
  lines = [HEADS, tuple("-" * len(head) for head in HEADS)]
  for part, row in rows:
    resumed = str(row.resumed) if row.resumed else "-"
    equal = f"{row.equal} of {row.compared}" if row.compared else "-"
    lines.append((part, row.name, str(row.faults), resumed, equal, str(len(row.failures))))
  widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
  for line in lines:
    cells = (cell.ljust(w) for cell, w in zip(line, widths, strict=True))
    print(f"| {' | '.join(cells)} |")
  for part, row in rows:
    for failure in row.failures:
      print(f"FAILED {part}: {failure}")


if __name__ == "__main__":
  main()
