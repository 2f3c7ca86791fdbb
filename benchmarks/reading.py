"""Time and memory of `data.from_csv` on a million rows of twenty columns.

    python benchmarks/reading.py [rows]

Columns as people have them: whole numbers, amounts with two decimals, numbers
with all their digits, words. CPU seconds, and the peak of memory above what
the process had before, in files.
"""

import pathlib
import sys
import tempfile
import time

import numpy as np

from jaxfair import data


def write(path: pathlib.Path, rows: int) -> None:
  """Writes the file."""
  rng = np.random.default_rng(0)
  columns = {
    **{f"whole{i}": rng.integers(0, 10 ** (i + 2), rows).astype(str) for i in range(5)},
    **{f"amount{i}": np.char.mod("%.2f", rng.normal(0, 10 ** (i + 2), rows)) for i in range(4)},
    **{f"real{i}": np.char.mod("%.17g", rng.normal(size=rows)) for i in range(3)},
    **{f"word{i}": rng.choice([f"value {i} {k}" for k in range(6)], rows) for i in range(6)},
    "group": rng.choice(["women", "men"], rows),
    "label": rng.choice(["no", "yes"], rows),
  }
  with path.open("w") as file:
    file.write(",".join(columns) + "\n")
    for start in range(0, rows, 10**5):
      part = [values[start : start + 10**5].tolist() for values in columns.values()]
      file.writelines(",".join(row) + "\n" for row in zip(*part, strict=True))


def main() -> None:
  """Writes, reads, prints."""
  rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "people.csv"
    write(path, rows)
    size = path.stat().st_size
    before = _memory("VmRSS", forget=True)
    start = time.process_time()
    table = data.read_table(path)
    read = time.process_time() - start
    peak_read = _memory("VmHWM") - before
    del table
    before = _memory("VmRSS", forget=True)
    start = time.process_time()
    people = data.from_csv(path, label="label", group="group")
    made = time.process_time() - start
    peak = _memory("VmHWM") - before
    print(
      f"{rows} rows x 20 columns, {size / 2**20:.0f} MiB, {people.examples.x.shape[1]} features"
    )
    print(f"read_table {read:.2f} CPU s, peak {peak_read / size:.1f} files")
    print(f"from_csv   {made:.2f} CPU s, peak {peak / size:.1f} files")


def _memory(name: str, *, forget: bool = False) -> int:
  """Bytes that the process has now (VmRSS) or had at most (VmHWM), on Linux."""
  if forget:
    pathlib.Path("/proc/self/clear_refs").write_text("5")
  text = pathlib.Path("/proc/self/status").read_text()
  line = next(line for line in text.splitlines() if line.startswith(name))
  return int(line.split()[1]) * 1024


if __name__ == "__main__":
  main()
