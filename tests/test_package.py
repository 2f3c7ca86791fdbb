"""The package itself: import cost, laziness, layers."""

import configparser
import graphlib
import itertools
import pathlib
import re
import subprocess
import sys

import grimp
import pytest

import jaxfair
from helpers import architecture

ROOT = pathlib.Path(__file__).parent.parent


def in_new_process(code: str) -> str:
  done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
  return done.stdout


def test_import_loads_nothing_heavy():
  heavy = {
    "flax",
    "haiku",
    "optax",
    "scipy",
    "matplotlib",
    "dp_accounting",
    "orbax",
    "typer",
    "rich",
  }
  loaded = in_new_process("import jaxfair, sys; print(*{m.split('.')[0] for m in sys.modules})")
  assert not heavy & set(loaded.split())


@pytest.mark.slow
def test_privacy_arithmetic_needs_no_jax():
  """So `jaxfair account` answers at once."""
  loaded = in_new_process(
    "from jaxfair import accounting, cli\n"
    "accounting.gaussian_sigma(epsilon=1.0, delta=1e-5)\n"
    "import sys; print(*sys.modules)"
  )
  assert "jax" not in loaded.split()


def test_every_package_can_be_reached_from_the_top():
  for name in set(jaxfair.__all__) - {"load"}:
    assert getattr(jaxfair, name).__name__ == f"jaxfair.{name}"
  assert jaxfair.load is jaxfair.methods.load
  found = (ROOT / "jaxfair").glob("[!_]*/__init__.py")  # _jaxpr is private
  present = {path.parent.name for path in found}
  assert present - {"cli"} <= set(jaxfair.__all__)
  assert "data" in dir(jaxfair)


def test_the_architecture_page_has_the_layers_and_docstrings():
  page = architecture.PAGE.read_text(encoding="utf-8")
  remedy = "run: python tests/helpers/architecture.py"
  assert page == architecture.page_with_tables(), remedy


def test_every_algorithm_is_in_the_table_of_files():
  """Studies and figures are found by their configs, commands by their names."""
  page = architecture.PAGE.read_text(encoding="utf-8")
  found = {path.relative_to(ROOT / "jaxfair") for path in (ROOT / "jaxfair").glob("*/_*.py")}
  others = {"_jaxpr", "cli", "experiments", "report", "studies"}
  for path in sorted(found):
    if path.parent.name not in others and path.name != "__init__.py":
      assert f"`{path.as_posix()}`" in page, f"add {path} to the table in docs/architecture.md"


def test_every_module_and_package_has_a_layer():
  listed = itertools.chain(*architecture.layers())
  found = {
    path.stem
    for path in (ROOT / "jaxfair").iterdir()
    if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.name[:2] != "__"
  }
  assert sorted(listed) == sorted(found)


def test_no_module_imports_itself_through_others():
  """Imports within functions and for type checkers included."""
  graph = grimp.build_graph("jaxfair", cache_dir=None)
  imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
  graphlib.TopologicalSorter(imports).prepare()


def test_every_config_is_in_the_wheel():
  settings = configparser.ConfigParser()
  settings.read(ROOT / "setup.cfg")
  patterns = settings["options.package_data"]["jaxfair"].split(", ")
  shipped = {path for pattern in patterns for path in (ROOT / "jaxfair").glob(pattern)}
  configs = {path.relative_to(ROOT) for path in (ROOT / "configs").rglob("*.toml")}
  assert configs
  assert configs <= {path.relative_to(ROOT / "jaxfair") for path in shipped}


def test_pre_commit_runs_the_lint_of_the_makefile():
  hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
  makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
  [lint] = re.findall(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
  wanted = re.findall(r"\$\(BIN\)/(.*)", lint)
  assert re.findall(r"entry: \.venv/bin/(.*)", hooks) == wanted
  assert "repo: local" in hooks
  assert "http" not in hooks


def test_packages_say_what_lives_there_and_what_never_does():
  for folder in (ROOT / "jaxfair").iterdir():
    if (folder / "__init__.py").exists():
      text = (folder / "__init__.py").read_text(encoding="utf-8")
      docstring = re.match(r'"""(.*?)"""', text, re.S)
      assert docstring, folder
      assert len(docstring.group(1).strip().splitlines()) >= 1, folder


def test_no_global_randomness_in_the_library():
  pattern = re.compile(r"np\.random\.(seed|rand|randn|normal|choice)\(|PRNGKey\(")
  for path in (ROOT / "jaxfair").rglob("*.py"):
    assert not pattern.search(path.read_text(encoding="utf-8")), path
