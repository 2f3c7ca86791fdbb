"""Clipping on random programs, against float64 gradients.

  python benchmarks/clipping_zoo.py --programs 10000 --results zoo.jsonl

Every program is drawn from its number (`tests/helpers/program_zoo.py`) and
judged on four sets of people and parameters: nobody's part above the bound,
every part equal to the clipped float64 gradient. Results are appended to a
file as they come; the same call continues where it was stopped, and calls with
different `--start` may share the work. Takes about a second of CPU time per
program, nearly all of it compilation.
"""

import argparse
import collections
import json
import pathlib
import sys

import jax

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))

from helpers import program_verdict, program_zoo

CLEAR_EVERY = 100  # compiled programs of so many fill a gigabyte


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--programs", type=int, default=10_000)
  parser.add_argument("--start", type=int, default=0)
  parser.add_argument("--results", type=pathlib.Path, required=True)
  options = parser.parse_args()
  numbers = range(options.start, options.start + options.programs)
  done = {row["number"]: row for row in read(options.results)}
  with options.results.open("a") as file:
    for count, number in enumerate(n for n in numbers if n not in done):
      row = {"number": number, **run(number)}
      done[number] = row
      file.write(json.dumps(row) + "\n")
      file.flush()
      if count % CLEAR_EVERY == CLEAR_EVERY - 1:
        jax.clear_caches()
  report([row for number, row in sorted(done.items()) if number in numbers])


def read(path: pathlib.Path) -> list[dict]:
  """Complete lines of an earlier call."""
  if not path.exists():
    return []
  lines = path.read_text().splitlines(keepends=True)
  return [json.loads(line) for line in lines if line.endswith("\n")]


def run(number: int) -> dict:
  """One program's row; an exception is a failure, too."""
  program = program_zoo.draw(number)
  try:
    verdict = program_verdict.judge(program)._asdict()
  except Exception as error:
    told = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    verdict = {"excess": 0.0, "apart": 0.0, "failures": [told], "refused": ""}
  return {"features": program.features, "short": program.short, **verdict}


def report(rows: list[dict]) -> None:
  """One line in all, then one per feature, failure and refusal."""
  print(line("all", rows))
  by_feature = collections.defaultdict(list)
  for row in rows:
    for feature in set(row["features"]):
      by_feature[feature].append(row)
  for feature, own in sorted(by_feature.items()):
    print(line(feature, own))
  reasons = collections.Counter(r["refused"] for r in rows if r["refused"])
  for reason, count in reasons.most_common():
    print(f"refused {count}: {reason}")
  for row in rows:
    if row["failures"]:
      print(f"failed {row['number']}: {'; '.join(row['failures'])}")


def line(name: str, rows: list[dict]) -> str:
  """How often, the worst norm over C, the worst distance, failures."""
  judged = [row for row in rows if not row["refused"]]
  worst = 1 + max((row["excess"] for row in judged), default=float("nan"))
  apart = [
    max((r["apart"] for r in judged if r["short"] == short), default=0.0) for short in (False, True)
  ]
  return (
    f"{name:18} programs {len(rows):6}  worst norm/C {worst:.8f}  "
    f"worst distance {apart[0]:.1e} (short numbers {apart[1]:.1e})  "
    f"refused {len(rows) - len(judged)}  "
    f"failures {sum(bool(row['failures']) for row in rows)}"
  )


if __name__ == "__main__":
  main()
