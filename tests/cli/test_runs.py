"""`run`, `list` and `report`: what they print, write and refuse."""

import dataclasses
import json
import pathlib

import jax
import numpy as np
import pytest

from helpers.toy_study import Toy, stand_in_for_all
from jaxfair import data, experiments, models
from jaxfair.experiments import _config, _shipped
from jaxfair.training import fit

DIGITS = """
study = "methods"
public_fraction = 0.15
methods = ["dp_sgd"]
epsilons = [8.0]
seeds = 2
settings.dp_sgd.steps = 2
settings.plain.steps = 10
data.name = "colored_digits"
[sizes.smoke]
seeds = 3
"""


@pytest.fixture
def config(tmp_path):
  def write(text=DIGITS, name="a.toml"):
    (tmp_path / name).write_text(text)
    return name

  return write


def own(config, tmp_path, table, data_table, **settings):
  """A config for a CSV file of one's own."""
  (tmp_path / "own.csv").write_text(table)
  lines = [f"{key} = {value}" for key, value in settings.items()]
  text = "\n".join(
    [
      "study = 'methods'",
      "methods = ['dp_sgd']",
      "epsilons = [8.0]",
      "seeds = 2",
      "settings.dp_sgd.steps = 2",
      "settings.plain.steps = 5",
      *lines,
      "[data]",
      "csv = 'own.csv'",
      *data_table,
    ]
  )
  return config(text)


def table(**changes):
  """48 rows of a CSV file, some cells changed."""
  rng = np.random.default_rng(0)
  columns = {
    "pay": rng.integers(10, 99, 48).tolist(),
    "age": rng.integers(20, 70, 48).tolist(),
    "sex": ["F", "M"] * 24,
    "hired": ["yes", "no", "no", "yes"] * 12,
  }
  for name, value in changes.items():
    columns[name][7] = value
  rows = zip(*columns.values(), strict=True)
  lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
  return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_a_run_prints_verdicts_and_where_the_report_is(jaxfair, config):
  ended = jaxfair("run", config())
  assert ended.code == 0, ended.err
  lines = ended.out.splitlines()
  assert lines[-2:] == ["rows:   runs/a/results.csv", "report: runs/a/report.html"]
  assert 1e4 < pathlib.Path("runs/a/report.html").stat().st_size < 1.5e6
  claims = json.loads(pathlib.Path("runs/a/claims.json").read_text())
  for line, claim in zip(lines, claims, strict=False):
    assert line.strip().startswith(f"{claim['verdict']}: {claim['statement']}")


@pytest.mark.slow
def test_settings_size_and_folder_come_from_the_command_line(jaxfair, config):
  ended = jaxfair(
    "run",
    config(),
    "--set",
    "settings.plain.steps=4",
    "--set",
    "title=Our run",
    "--size",
    "smoke",
    "--out",
    "here/deep",
  )
  assert ended.code == 0, ended.err
  resolved = _config.parse(pathlib.Path("here/deep/config.toml"))
  assert resolved["settings"]["plain"] == {"steps": 4}
  assert resolved["seeds"] == 3
  assert resolved["size"] == "smoke"
  page = pathlib.Path("here/deep/report.html").read_text()
  assert "<h1>Our run</h1>" in page
  assert "size: smoke" in page


@pytest.mark.slow
def test_a_size_has_a_folder_of_its_own_and_a_rerun_does_nothing(jaxfair, config):
  config()
  jaxfair("run", "a.toml", "--size", "smoke")
  rows = pathlib.Path("runs/a-smoke/results.csv")
  before = rows.read_bytes()
  ended = jaxfair("run", "a.toml", "--size", "smoke")
  assert "3 of 3 cells were computed by an earlier run" in ended.err
  assert rows.read_bytes() == before


@pytest.mark.slow
def test_the_resolved_config_of_a_run_can_be_run_again(jaxfair, config):
  jaxfair("run", config())
  resolved = pathlib.Path("runs/a/config.toml").read_text()
  config(resolved, "again.toml")
  ended = jaxfair("run", "again.toml")
  assert ended.code == 0, ended.err
  a, again = (pathlib.Path(f"runs/{name}/results.csv").read_bytes() for name in ("a", "again"))
  assert a == again


@pytest.mark.slow
def test_your_own_file_is_one_table_of_a_config(jaxfair, config, tmp_path):
  name = own(
    config,
    tmp_path,
    table(pay=""),  # a missing number is filled in
    ["label = 'hired'", "group = 'age'", "positive = 'yes'", "bins = [40]"],
  )
  ended = jaxfair("run", name)
  assert ended.code == 0, ended.err
  found = experiments.Table.read(pathlib.Path("runs/a/results.csv"))
  assert found.unique("data") == ["own"]
  assert len(found.unique("group")) == 3  # two ranges of age, and everyone


@pytest.mark.slow
def test_the_report_is_drawn_again(jaxfair, config):
  jaxfair("run", config())
  page = pathlib.Path("runs/a/report.html")
  page.unlink()
  ended = jaxfair("report", "runs/a")
  assert ended == (0, "report: runs/a/report.html\n", ended.err)
  assert page.exists()


def test_list_names_studies_and_their_configs(jaxfair, tmp_path):
  folder = tmp_path / "configs" / "paper"
  folder.mkdir(parents=True)
  (folder / "fig1.toml").write_text("study = 'methods'")
  (folder / "broken.toml").write_text("study = ")
  (folder / "other.toml").write_text("study = 'never'")
  ended = jaxfair("list")
  assert ended.code == 0
  assert "methods: Who pays for privacy?" in ended.out
  assert "  jaxfair run configs/paper/fig1.toml" in ended.out
  assert "  dp_sgd: Clips each person's gradient" in ended.out
  assert "  colored_digits: " in ended.out
  broken, other = ended.err.strip().splitlines()
  assert "left out: configs/paper/broken.toml: not valid TOML" in broken
  assert "configs/paper/other.toml: study='never' is unknown" in other


def test_configs_that_come_with_jaxfair_are_found_anywhere(jaxfair, tmp_path):
  ended = jaxfair("list")  # in an empty folder
  assert "  jaxfair run quickstart\n" in ended.out
  assert ended.err == ""
  for name in ("quickstart", "configs/quickstart.toml", "train/dp_sgd_adult", "dp_erm"):
    assert _shipped.find_config(pathlib.Path(name)).is_relative_to(_shipped.shipped_configs())
  (tmp_path / "quickstart").mkdir()  # one's own comes first
  assert _shipped.find_config(pathlib.Path("quickstart")) == pathlib.Path("quickstart")
  assert "use one of" in jaxfair("run", "quickstrat").err


@pytest.fixture
def many(config, tmp_path, monkeypatch):
  """Configs of a study that takes no time."""
  toy = Toy()
  stand_in_for_all(monkeypatch, toy.study)
  (tmp_path / "many").mkdir()
  for name, spread in (("fig_10", 0.5), ("fig_9", 0.25)):
    config(f"study = 'toy'\nspread = {spread}", f"many/{name}.toml")
  return toy


@pytest.mark.slow
def test_a_folder_of_configs_is_one_command_with_one_page(jaxfair, many):
  ended = jaxfair("run", "many")
  assert ended.code == 0, ended.err
  assert "[2/2] many/fig_9.toml" in ended.out
  assert ended.out.splitlines()[-1] == "all:    runs/many/report.html"
  page = pathlib.Path("runs/many/report.html").read_text()
  assert "2 of 6 claims supported, 2 not run" in page
  lines = pathlib.Path("runs/many/verdicts.md").read_text().splitlines()
  assert [line.split(" | ")[0] for line in lines[2:]] == [*["| fig_9"] * 3, *["| fig_10"] * 3]
  before = list(many.computed)
  assert jaxfair("run", "many").code == 0
  assert many.computed == before


@pytest.mark.slow
def test_configs_of_one_name_in_two_folders_do_not_meet(jaxfair, many, config, tmp_path):
  (tmp_path / "configs").mkdir()
  config("study = 'toy'", "configs/fig_9.toml")
  assert "runs/fig_9/report.html" in jaxfair("run", "configs/fig_9.toml").out
  assert "runs/many/fig_9/report.html" in jaxfair("run", "many/fig_9.toml").out
  before = list(many.computed)
  assert jaxfair("run", "many").code == 0  # goes on with what one run left
  assert len(many.computed) == len(before) + 3


def test_a_folder_of_runs_is_reported_again(jaxfair, many):
  jaxfair("run", "many", "--out", "there")
  page = pathlib.Path("there/report.html")
  page.unlink()
  assert jaxfair("report", "there").out == "report: there/report.html\n"
  assert page.exists()


def test_a_wrong_config_in_a_folder_stops_all_before_any_work(refused, many, config):
  config("study = 'toy'\nspread = -1", "many/z.toml")
  assert "many/z.toml: spread=-1" in refused("run", "many")


def test_a_folder_without_configs_is_refused(refused, tmp_path):
  (tmp_path / "none").mkdir()
  assert "none holds no config; name a .toml file" in refused("run", "none")


# Every refusal: a one-line error with the remedy, code 2, nothing left behind.


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ("seed=3\nsede=4", "a.toml: sede: unknown key; use one of"),
    ("seeds='many'", "a.toml: seeds='many' must be a whole number"),
    ("seeds=0", "a.toml: seeds=0 must be at least 1"),
    ("settings.plain.steps=0", "steps=0 must be at least 1"),
    ("seed=-3", "a.toml: seed=-3 must be a whole number from 0 to"),
    ("methods=['dp_sdg']", "did you mean dp_sgd?"),
    ("test_fraction=2", "a.toml: test_fraction=2.0 must be in [0.05, 0.9]"),
    ("settings.dp_sgd.batch_size=99999", "batch_size=99999 must be at"),
    ("data.nmae='adult'", "a.toml: data.nmae: unknown key; "),
    ("data.name='adlut'", "did you mean adult?"),
    ("data.name='adult'", "get it with `jaxfair data fetch adult`"),
    ("data.group='hair'", "group='hair' is not known; use one of"),
    ("data.drop=['x']", "applies to your own file; set csv, or leave"),
  ],
)
def test_a_wrong_config_is_refused(refused, config, change, told):
  lines = [line for line in DIGITS.splitlines() if "[sizes" not in line][:-1]
  keys = {line.split("=")[0].strip() for line in change.splitlines()}
  kept = [line for line in lines if line.split("=")[0].strip() not in keys]
  assert told in refused("run", config("\n".join([*kept, change])))


@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    (("none.toml",), "none.toml: no such config file; use one of a.toml"),
    (("a.toml", "--size", "huge"), "a.toml: size='huge' is not known"),
    (("a.toml", "--set", "seeds"), "--set 'seeds': write it as key=value"),
    (("a.toml", "--set", "size=smoke"), "choose a size with --size"),
    (("a.toml", "--out", "a.toml"), "is not a run directory; choose another"),
    (("a.toml", "--out", "a.toml/b"), "cannot be written"),
    (("a.toml", "--out", "."), "is not a run directory; choose another --out"),
  ],
)
def test_a_wrong_command_is_refused(refused, config, arguments, told):
  config()
  assert told in refused("run", *arguments)


def test_a_missing_study_is_asked_for(refused, config):
  assert "study is missing; use one of methods" in refused("run", config("seeds = 3"))


@pytest.mark.slow
def test_a_run_of_another_config_is_not_overwritten(jaxfair, refused, config):
  jaxfair("run", config(), "--out", "r")
  line = refused("run", "a.toml", "--set", "delta=1e-6", "--out", "r")
  assert "r holds a run of another config; choose another --out" in line


COLUMNS = ["label = 'hired'", "group = 'sex'"]


@pytest.mark.parametrize(
  ("text", "data_table", "told"),
  [
    # A missing file, column or header.
    (table(), ["label = 'hird'", "group = 'sex'"], "did you mean hired?"),
    (table(), ["label = 'hired'", "group = 'sx'"], "did you mean sex?"),
    ("", COLUMNS, "own.csv: the text is empty; a header line is needed"),
    # Labels out of range.
    (table(), [*COLUMNS, "positive = 'maybe'"], "is not a value of label"),
    (
      table(),
      ["label = 'pay'", "group = 'sex'", "threshold = 1000"],
      "label 'pay' has one class only",
    ),
    (table(hired=""), COLUMNS, "label 'hired' is missing in 1 rows"),
    # Features that are no numbers.
    (table(pay="inf"), COLUMNS, "has infinite numbers, or some above 3e38; leave such cells empty"),
    # An empty group.
    (table(), ["label = 'hired'", "group = 'age'", "bins = [40, 99]"], "empty; move the edges"),
    (table(), ["label = 'hired'", "group = 'pay'"], "pass bins="),
    (table(), ["label = 'hired'"], "needs label and group"),
  ],
)
def test_a_wrong_file_is_refused(refused, config, tmp_path, text, data_table, told):
  name = own(config, tmp_path, text, data_table)
  assert told in refused("run", name)


def test_a_missing_file_is_refused(refused, config, tmp_path):
  name = own(config, tmp_path, table(), COLUMNS)
  (tmp_path / "own.csv").unlink()
  line = refused("run", name)
  assert "own.csv cannot be read" in line
  assert "check the path" in line


def nan_features(config, cell, context):
  digits = data.load("digits").examples
  digits.x[5, 0, 0, 0] = np.nan
  fit(models.logistic(10), models.cross_entropy, digits, key=context.key)


def labels_out_of_range(config, cell, context):
  digits = data.load("digits").examples
  fit(models.logistic(9), models.cross_entropy, digits, key=context.key)


def more_parts_than_examples(config, cell, context):
  data.partition(data.load("digits").examples, 5000, key=context.key)


@pytest.mark.parametrize(
  ("mistake", "told"),
  [
    (nan_features, "1 rows with NaN or infinite values (the first is row 5)"),
    (labels_out_of_range, "ids from 0 to 9, outside 0..8"),
    (more_parts_than_examples, "more than the 1797 examples; use at most 179"),
  ],
)
def test_what_only_shows_while_it_runs_is_refused_as_cleanly(
  refused, config, monkeypatch, mistake, told
):
  study = dataclasses.replace(Toy().study, run=mistake)
  stand_in_for_all(monkeypatch, study)
  assert told in refused("run", config("study = 'toy'\nseed = 'os'"))


def test_what_is_no_run_cannot_be_reported(refused, tmp_path):
  assert "is not a run directory" in refused("report", tmp_path)


@pytest.mark.slow
def test_notes_are_said_above_the_bar(jaxfair, config, monkeypatch):
  def fetch(name):
    raise data.DataError("no network")

  monkeypatch.setattr(data, "fetch", fetch)
  text = DIGITS.replace('"colored_digits"', '"adult"\ndata.stand_in = true')
  ended = jaxfair("run", config(text))
  assert ended.code == 0
  told = " ".join(ended.err.split())
  assert "adult could not be loaded" in told
  assert jax.device_count() == 1


def test_shards_are_computed_apart_and_merged(jaxfair, config, monkeypatch, tmp_path):
  stand_in_for_all(monkeypatch, Toy().study)
  name = config('study = "toy"')
  assert jaxfair("run", name, "--out", "whole").code == 0
  for share in ("1/2", "2/2"):
    ended = jaxfair("run", name, "--shard", share)
    assert ended.code == 0, ended.err
    assert "jaxfair merge" in ended.out
  ended = jaxfair("merge", name)
  assert ended.code == 0, ended.err
  assert ended.out.splitlines()[-1] == "report: runs/a/report.html"
  whole, merged = (tmp_path / f / "results.csv" for f in ("whole", "runs/a"))
  assert merged.read_bytes() == whole.read_bytes()


def test_wrong_workers_and_shards_are_refused(refused, config, monkeypatch):
  stand_in_for_all(monkeypatch, Toy().study)
  name = config('study = "toy"')
  assert "workers='two' must be a number" in refused("run", name, "--workers", "two")
  assert "shard='3/2' must be" in refused("run", name, "--shard", "3/2")
  assert "3 of 3 cells are missing" in refused("merge", name)


def test_a_run_is_tracked(jaxfair, config, monkeypatch):
  from jaxfair.experiments import _trackers

  cells, rows = [], []

  class Tracker:
    def __init__(self, study, run):
      assert (study, run.name) == ("toy", "a")

    def on_cell(self, name, settings):
      cells.append(settings)

    def on_row(self, settings, figures):
      rows.append(figures)

    def close(self):
      cells.append("closed")

  monkeypatch.setitem(_trackers.TRACKERS, "mlflow", Tracker)
  stand_in_for_all(monkeypatch, Toy().study)
  ended = jaxfair("run", config("study = 'toy'\nseeds = 2"), "--track", "mlflow")
  assert ended.code == 0, ended.err
  assert cells == [{"mean": 0.0}, {"mean": 1.0}, {"mean": 2.0}, "closed"]
  assert rows == []
  assert "--track-non-private sends them" in ended.out + ended.err
  ended = jaxfair("run", "a.toml", "--track", "mlflow", "--track-non-private")
  assert ended.code == 0, ended.err
  assert len(rows) == 12
  for wrong, told in (
    (("--track", "mlfow"), "mlflow"),
    (("--track-non-private",), "needs --track NAME"),
    (("--track", "mlflow", "--shard", "1/2"), "--track and --shard cannot be combined"),
  ):
    ended = jaxfair("run", "a.toml", *wrong)
    assert ended.code != 0
    assert told in ended.err
