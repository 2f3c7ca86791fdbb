"""Every config of chapter 6 is valid in every size, and the README names it."""

import pathlib

import pytest

from jaxfair.experiments import _config, _registry, _runs
from jaxfair.experiments._config import SIZES

FOLDER = pathlib.Path(__file__).parents[3] / "configs" / "robustness"
CONFIGS = sorted(path.name for path in FOLDER.glob("[!_]*.toml"))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_size_is_valid(name):
  for size in SIZES:
    values = _config.read(FOLDER / name, size=size)
    made = _runs.plan(_registry.find(values["study"]), values)
    if size != "smoke" and hasattr(made.settings, "seeds"):
      assert made.settings.seeds >= 5


def test_the_readme_names_every_config_and_figure():
  text = (FOLDER / "README.md").read_text(encoding="utf-8")
  for name in CONFIGS:
    assert f"`{name}`" in text
  for figure in range(2, 22):
    assert f"6.{figure}" in text
