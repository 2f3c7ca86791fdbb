"""Configs that come with the package: `jaxfair run quickstart` works anywhere."""

import importlib.resources
import pathlib

CONFIGS = "configs"


def shipped_configs() -> pathlib.Path:
  """The folder of the configs that come with jaxfair.

  In the repository `jaxfair/configs` links to `configs`; a wheel holds the files.
  """
  return pathlib.Path(str(importlib.resources.files("jaxfair"))) / CONFIGS


def find_config(path: pathlib.Path) -> pathlib.Path:
  """A file or folder of that path, else the one of that name that comes with jaxfair.

  `quickstart`, `pate/adult` and `configs/pate/adult.toml` are all found; what is not found is
  returned as it is.
  """
  if path.exists() or path.is_absolute():
    return path
  inner = path.relative_to(CONFIGS) if path.parts[:1] == (CONFIGS,) else path
  for name in (inner, inner.with_name(f"{inner.name}.toml")):
    if inner.name and (shipped_configs() / name).exists():
      return shipped_configs() / name
  return path
