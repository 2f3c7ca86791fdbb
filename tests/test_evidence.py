"""The evidence pages are those of the committed records, and a record's run repeats."""

import hashlib
import os
import subprocess
import sys

import pytest

from helpers import evidence
from jaxfair.experiments import _config, _folders

CHEAP = ("configs/decisions/fig_2_3.toml", "configs/decisions/fig_2_9.toml")
MACHINE = ("jax", "jaxlib", "numpy", "system", "devices")  # other bits where one of these differs


def test_the_pages_are_those_of_the_records():
  stale = [page.name for page, text in evidence.pages().items() if page.read_text("utf-8") != text]
  assert not stale, "run: python tests/helpers/evidence.py"


def test_records_are_small_and_of_configs_that_exist():
  files = [path for path in (evidence.EVIDENCE / "tables").rglob("*") if path.is_file()]
  assert sum(path.stat().st_size for path in files) < 3_000_000
  for config, found in evidence.records().items():
    assert (evidence.ROOT / config).exists(), f"{config} is gone; delete its record"
    size = None if found.size == "only" else found.size
    assert _config.read(evidence.ROOT / config, size=size)["study"] == found.study


@pytest.mark.slow
@pytest.mark.parametrize("config", CHEAP)
def test_a_recorded_run_repeats_to_the_last_bit(config, tmp_path):
  """By the command of a reader, in a process whose devices and threads it chooses itself."""
  found, out = evidence.records().get(config), tmp_path / "run"
  if found is None:
    pytest.skip(f"{config} has no record yet")
  asked = [str(evidence.ROOT / config), "--size", found.size, "--out", str(out)]
  chosen = ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "NPROC")
  environment = {k: v for k, v in os.environ.items() if k not in chosen}
  subprocess.run(
    [sys.executable, "-m", "jaxfair", "run", *asked],
    env=environment | {"PYTHONPATH": str(evidence.ROOT)},
    check=True,
    capture_output=True,
  )
  now = _folders.read_words(out / "versions.json")
  if other := [name for name in MACHINE if now.get(name) != found.versions.get(name)]:
    pytest.skip(f"recorded with another {', '.join(other)}, so the last bits may differ")
  assert hashlib.sha256((out / "results.csv").read_bytes()).hexdigest() == found.digest


def test_cells_of_a_table_are_plain_text():
  assert evidence._cell("a | b_c\n*d*") == r"a \| b\_c \*d\*"
  assert evidence._cell("**not run**") == "**not run**"


@pytest.fixture
def run_folder(tmp_path):
  folder = tmp_path / "decisions" / "fig_2_3"
  folder.mkdir(parents=True)
  return folder


def test_a_run_of_another_config_is_not_recorded(run_folder):
  (run_folder / "config.toml").write_text('study = "decisions.rules"\nsize = "smoke"\n')
  with pytest.raises(ValueError, match="was run with another configs/decisions/fig_2_3"):
    evidence.record(run_folder)
