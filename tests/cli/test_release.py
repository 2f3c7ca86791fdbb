"""`jaxfair release`, `predict` and `export`, as a person calls them."""

import csv
import json

import jax
import numpy as np
import pytest

from jaxfair.accounting import _dataset_ledger

ASKED = ("--method", "output_perturbation", "--data", "people.csv", "--label", "hired")
ASKED = (*ASKED, "--group", "sex", "--epsilon", "4", "--delta", "1e-5")


def write_table(path, columns):
  with open(path, "w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


@pytest.fixture
def people(tmp_path):
  """A table whose label is easy to tell, and new people with gaps."""
  rng = np.random.default_rng(0)
  skill, age = rng.normal(size=1500), rng.integers(20, 60, 1500)
  columns = {"age": age, "skill": skill, "job": rng.choice(["clerk", "smith"], 1500)}
  columns |= {"sex": rng.choice(["f", "m"], 1500), "hired": np.where(skill > 0, "yes", "no")}
  write_table(tmp_path / "people.csv", columns)
  new = {"skill": [3, -3, ""], "extra": [1, 2, 3], "job": ["clerk", "pilot", "smith"]}
  write_table(tmp_path / "new.csv", {**new, "age": [30, 40, 50]})


@pytest.mark.slow
def test_from_a_table_to_predictions(jaxfair, people, tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  dry = jaxfair("release", *ASKED, "--figures", "1", "--dry-run")
  assert dry.code == 0, dry
  assert "1,200 people are protected, 0 are public, 300 measure the model" in dry.out
  assert "Means and ranges of the features are bought: epsilon 0.3" in dry.out
  assert "Figures of test people are bought: epsilon 0.9" in dry.out
  assert "All releases from this data set so far: none." in dry.out
  assert "With this release: epsilon 4." in dry.out
  assert "scaling of features" not in dry.out  # it is bought, and not taken to be public
  assert not (tmp_path / "runs").exists()
  assert not _dataset_ledger.dataset_ledgers()

  asked = (*ASKED, "--figures", "1", "--use", "To test.")
  made = jaxfair("release", *asked)
  assert made.code == 0, made
  folder = tmp_path / "runs" / "release" / "people-output_perturbation"
  assert (folder / "published_figures" / "figures.html").is_file()
  assert "To test." in (folder / "release" / "model_card.md").read_text()
  assert json.loads((folder / "evaluation" / "evaluation.json").read_text())["warnings"] == []
  (ledger,) = _dataset_ledger.dataset_ledgers()
  assert [spent.releases for spent in ledger.spent()] == [3]
  again = jaxfair("release", *asked)  # finds what is finished
  assert again.code == 0
  assert "This release has begun and is among them." in again.out
  assert "With this release" not in again.out
  assert [spent.releases for spent in ledger.spent()] == [3]

  told = jaxfair("predict", folder / "release", "new.csv")
  assert told.out.splitlines() == ["row,prediction", "1,yes", "2,no", told.out.splitlines()[3]]
  assert "1 rows have a value of 'job' that the model has not seen" in told.err

  write_table(tmp_path / "nobody.csv", {"skill": [], "job": [], "age": []})
  assert "a header alone" in jaxfair("predict", folder / "release", "nobody.csv").err

  assert jaxfair("export", folder / "release").code == 0
  program = jax.export.deserialize(bytearray((tmp_path / "model.stablehlo").read_bytes()))
  labels, _ = program.call(np.array([[30, 3, 1, 0], [40, -3, 0, 0]], np.float32))
  assert labels.tolist() == [1, 0]


def test_mistakes_are_one_line(refused, people, tmp_path):
  assert "--epsilon is missing" in refused("release", "--method", "pate", "--data", "adult")
  assert "output_pertubation" in refused("release", "--method", "output_pertubation", *ASKED[2:])
  assert "row_morm" in refused("release", *ASKED, "--set", "row_morm=3")
  assert "--point" in refused("release", tmp_path)
  assert "no such config" in refused("release", "mine.toml")
  assert "bin: unknown key; use one of" in refused("release", *ASKED, "--set", "data.bin=[40]")
  assert "--positive 'maybe' is not a value" in refused("release", *ASKED, "--positive", "maybe")
  assert "drop 'nme' is not a column" in refused("release", *ASKED, "--drop", "nme")
  assert "--drop applies to your own file" in refused("release", "mine.toml", "--drop", "age")
  assert "also pass the run directory" in refused("release", "--point", "3")
  assert "no complete release" in refused("predict", tmp_path, "new.csv")
  assert "an existing folder" in refused("predict", tmp_path, "new.csv", "--out", "no/a.csv")
  assert "no complete release" in refused("export", tmp_path)
  assert "an existing folder" in refused("export", tmp_path, "--out", "no/model.hlo")
  for place in ("new.csv", "new.csv/r"):
    told = refused("release", *ASKED, "--out", place)
    assert f"--out {place} cannot be written: {tmp_path / 'new.csv'} is not a folder" in told
  assert "would overwrite" in refused("predict", tmp_path, "new.csv", "--out", "./new.csv")
  assert "--set stepps: unknown" in refused("release", *ASKED, "--set", "stepps=3")
  assert "--range 'age=9:1' must" in refused("release", *ASKED, "--range", "age=9:1")
  assert "not one of data.write_source" in refused("train", tmp_path, "--epsilon", "1")
