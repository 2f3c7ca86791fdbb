"""Prints the verdicts of finished runs as one Markdown table.

python benchmarks/verdicts.py runs/dp_erm/*
"""

import json
import pathlib
import sys


def main(folders: list[str]) -> None:
  """Prints one line per claim of every run."""
  print("| figure | claim | found [95% interval] | verdict |")
  print("|---|---|---|---|")
  for name in folders:
    folder = pathlib.Path(name)
    for claim in json.loads((folder / "claims.json").read_text()):
      found = claim["why"]
      if claim["value"] is not None:
        ends = f"[{claim['low']:.3g}, {claim['high']:.3g}]"
        found = f"{claim['statistic']}: {claim['value']:.3g} {ends}"
      found = found.replace("|", r"\|")  # bars would end the cell
      figure = folder.name.removeprefix("fig_").replace("_", ".")
      print(
        f"| {figure} | {claim['statement']} | {found} | {claim['verdict']} |"
      )


if __name__ == "__main__":
  main(sys.argv[1:])
