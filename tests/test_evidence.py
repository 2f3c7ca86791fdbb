"""The evidence pages are those of the committed records, and a record's run repeats."""

import dataclasses
import hashlib
import os
import subprocess
import sys

import pytest

from helpers import evidence, evidence_figures
from jaxfair.experiments import _cells, _config, _folders, _registry
from jaxfair.experiments._quotes import Quote

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
  assert evidence_figures.cell("a | b_c\n*d*") == r"a \| b\_c \*d\*"
  assert evidence_figures.cell("**not run**") == "**not run**"


@pytest.mark.parametrize(
  ("text", "figures", "tables"),
  [
    ("Figures 6.3, 6.4 and 6.18", "6.3 6.4 6.18", ""),
    ("Table 1 and figures 2, 7 to 9 on UTKFace", "2 7 8 9", "1"),
    ("Figures 5.9 to 5.11: two layers of 10 units", "5.9 5.10 5.11", ""),
    ("Figure 3's second set has 50 teachers", "3", ""),
    ("PATE with 12 teachers", "", ""),
  ],
)
def test_figures_are_read_from_words(text, figures, tables):
  expected = {(False, one) for one in figures.split()} | {(True, one) for one in tables.split()}
  assert evidence_figures.mentions(text) == expected


def test_a_figure_is_as_strong_as_all_of_its_sets(tmp_path):
  for name in ("faces", "digits"):
    text = f'# Figure 1 on {name}: what was done.\ntitle = "{name}"\n'
    (tmp_path / f"{name}.toml").write_text(text)
  (tmp_path / "other.toml").write_text('# Another set than in figure 1.\ntitle = "other"\n')
  quotes = {("package", "Fig. 1"): Quote("a sentence", "Section 1", "Fig. 1", "pate")}

  def strength(**sizes):
    known = {f"{name}.toml": sizes.get(name) for name in ("faces", "digits", "other")}
    return evidence_figures.drawn(quotes, {("package", "Fig. 1"): known}, tmp_path)[0].strength

  assert strength(faces="paper", digits="paper") == "paper"
  assert strength(faces="paper", digits="small") == "partly paper"
  assert strength(faces="paper", other="paper") == "partly paper"
  assert strength(digits="small", other="paper") == "small"
  assert strength(faces="not run", digits="not run", other="paper") == "not run"
  assert strength(faces="not run", digits="paper") == "partly paper"
  assert strength(other="paper") == "no record yet"


@pytest.fixture
def run_folder(tmp_path):
  folder = tmp_path / "decisions" / "fig_2_3"
  folder.mkdir(parents=True)
  return folder


def test_a_run_of_another_config_is_not_recorded(run_folder):
  (run_folder / "config.toml").write_text('study = "decisions.rules"\nsize = "smoke"\n')
  with pytest.raises(ValueError, match="was run with another configs/decisions/fig_2_3"):
    evidence.record(run_folder)


@pytest.mark.parametrize(
  ("config", "place", "expected"),
  [
    ("dp_erm/fig_3_1", "Fig. 3.1", True),
    ("dp_erm/fig_3_10", "Fig. 3.1", False),
    ("pruning/ethnicity_vgg", "Fig. 5.13", True),  # by its title
    ("fairpate/table_5", "Fig. 5", False),
    ("fairpate/table_5_convnet", "Table 5", True),
    ("sf_pate/figure_2a", "Fig. 2(a)", True),
    ("sf_pate/figure_2b", "Fig. 2(a)", False),
  ],
)
def test_configs_are_named_after_figures(config, place, expected):
  path = evidence.ROOT / "configs" / f"{config}.toml"
  assert evidence_figures.is_named_after(path, place) == expected


def test_every_figure_is_told_once_and_joined_with_those_that_print_it_again():
  found = evidence.figures()
  places = [(key, place.split(",")[0]) for key, place in evidence.quotes() if place[0] in "FT"]
  drawn = {one for one in places if one[1].startswith(("Fig", "Table"))}
  assert sum(len(one.names) for one in found) == len(drawn) == 130
  assert len(found) == 130 - 17  # chapter 4 prints the figures of the PATE paper again
  for one in found:
    assert one.strength in evidence_figures.STRENGTHS
    assert bool(one.why or one.configs)
    assert (one.strength == "not tested") == (not one.configs)


def test_a_record_says_whether_the_study_has_changed_since():
  found = next(iter(evidence.records().values()))
  digest = _cells.study_digest(_registry.find(found.study).run)
  for versions, expected in (
    ({}, "code not recorded"),
    ({evidence.CODE: digest}, "code as it is now"),
    ({evidence.CODE: "another"}, "**the study's code has changed since**"),
  ):
    assert evidence._code(dataclasses.replace(found, versions=versions)) == expected


def test_processor_time_that_was_not_measured_is_not_told_as_nothing():
  found = dataclasses.replace(next(iter(evidence.records().values())), seconds=90.0)
  told = evidence._took(dataclasses.replace(found, cpu_seconds=0.0))
  assert told == "CPU seconds not recorded (90 seconds by the clock)"
  assert evidence._took(dataclasses.replace(found, cpu_seconds=1234.0)) == "1,234 CPU seconds"
