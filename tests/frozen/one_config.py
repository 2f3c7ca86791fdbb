"""Runs one config at its smoke size: `one_config.py configs/NAME FOLDER`."""

import pathlib
import sys

from jaxfair import studies


def main(name: str, folder: str) -> None:
  """Runs the config; nothing is drawn."""
  path = pathlib.Path(f"{name}.toml")
  values = studies.read(path, size="smoke", sets=[])
  study = studies.find(values.get("study"), where=f"{path}: ")
  made = studies.plan(study, values, where=f"{path}: ")
  studies.execute(made, pathlib.Path(folder), say=lambda message: None)


if __name__ == "__main__":
  main(*sys.argv[1:])
