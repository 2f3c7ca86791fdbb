"""The people of a config: named sets, your own file, the stand-in."""

import os

import pytest

from jaxfair import checks, data
from jaxfair.experiments import People, _config, _people, _study
from jaxfair.experiments import _config as configs
from jaxfair.experiments._people import load_people

OWN = "age,sex,hired\n20,F,yes\n30,M,no\n40,F,no\n50,M,yes\n,F,yes\n61,M,no\n"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, tmp_path):
  monkeypatch.delenv("JAXFAIR_DATA", raising=False)
  monkeypatch.setenv("JAXFAIR_CACHE", str(tmp_path / "cache"))
  _people._load.cache_clear()


@pytest.fixture
def own(tmp_path):
  path = tmp_path / "own.csv"
  path.write_text(OWN)
  return str(path)


def build(**values):
  return configs.build(People, values, where="a.toml: data.")


@pytest.mark.slow
def test_a_named_set_is_loaded_once():
  config = People(name="colored_digits")
  dataset, told = load_people(config)
  assert (dataset.name, told) == ("colored_digits", "")
  assert load_people(config)[0] is dataset


def test_label_and_group_of_a_named_set_are_used():
  dataset, _ = load_people(People(name="digits", group="all"))
  assert dataset.num_groups == 1
  with pytest.raises(checks.ArgumentError, match="label='color' is not known"):
    load_people(People(name="digits", label="color"))


@pytest.mark.slow
def test_features_take_the_place_of_images(own):
  dataset, _ = load_people(People(name="digits", group="all", features="scattering"))
  assert dataset.examples.x.shape == (1797, 81 * 2 * 2)
  assert dataset.name == "digits"
  with pytest.raises(configs.ConfigError, match="features='vgg'"):
    build(name="digits", features="vgg")
  with pytest.raises(configs.ConfigError, match="needs images"):
    build(csv=own, label="hired", group="sex", features="scattering")


def test_your_own_file_is_loaded_by_its_columns(own):
  dataset, told = load_people(build(csv=own, label="hired", group="sex", positive="yes"))
  assert told == ""
  assert dataset.name == "own"
  assert dataset.class_names == ("no", "yes")
  assert dataset.group_sizes == {"F": 3, "M": 3}
  assert dataset.feature_names == ("age",)


def test_your_own_file_takes_every_option(own):
  dataset, _ = load_people(
    build(csv=own, label="hired", group="sex", name="us", positive="no", drop=["age"])
  )
  assert dataset.name == "us"
  assert dataset.examples.x.shape == (6, 0)
  dataset, _ = load_people(
    build(csv=own, label="hired", group="sex*age", categorical=["age"], min_group_size=1)
  )
  assert "F, 20" in dataset.group_names


def test_a_number_is_cut_into_a_label_and_people_keep_their_rows(tmp_path):
  path = tmp_path / "scores.csv"
  path.write_text("who,sex,pay,score\n1,F,3,0.2\n1,F,4,0.9\n2,M,5,0.7\n")
  dataset, _ = load_people(
    build(csv=str(path), label="score", group="sex", threshold=0.5, unit="who", min_group_size=1)
  )
  assert dataset.examples.y.tolist() == [0, 1, 1]
  assert dataset.unit.tolist() == [0, 0, 1]
  assert dataset.feature_names == ("pay",)


def test_numbers_are_cut_into_groups(own, tmp_path):
  path = tmp_path / "many.csv"
  rows = "".join(f"{age},{age % 2},{age % 3}\n" for age in range(20, 80))
  path.write_text(f"age,pay,hired\n{rows}")
  config = build(csv=str(path), label="hired", group="age", bins=[40, 60], multiclass=True)
  assert list(load_people(config)[0].group_sizes.values()) == [20, 20, 20]
  with pytest.raises(checks.ArgumentError, match=r"leave the group .* empty"):
    load_people(build(csv=str(path), label="hired", group="age", bins=[40, 99], multiclass=True))
  with pytest.raises(checks.ArgumentError, match="pass bins="):
    load_people(build(csv=str(path), label="hired", group="age", multiclass=True))


def test_a_changed_file_is_loaded_anew(own):
  config = People(csv=own, label="hired", group="sex")
  assert load_people(config)[0].size == 6
  with open(own, "a") as file:
    file.write("33,F,no\n")
  os.utime(own, ns=(1, 1))
  assert load_people(config)[0].size == 7


@pytest.mark.parametrize(
  ("values", "told"),
  [
    ({"name": "adlut"}, r"data\.name='adlut' is not known; .*mean adult\?"),
    ({"csv": "a.csv"}, "csv='a.csv' needs label and group"),
    ({"csv": "a.csv", "label": "y"}, "needs label and group"),
    ({"csv": "a.csv", "label": "y", "group": "a*b", "bins": [1]}, r"bins=\[1.0\] cut one column"),
    ({"positive": "yes"}, "positive='yes' applies to your own file"),
    ({"threshold": 0.0}, "threshold=0.0 applies to your own file"),
    ({"drop": ["age"]}, "drop=.* applies to your own file"),
    ({"groups": "sex"}, "groups: unknown key; .*mean group"),
  ],
)
def test_impossible_settings_are_refused(values, told):
  with pytest.raises(_config.ConfigError, match=told):
    build(**values)


def test_a_missing_file_is_refused_with_its_path(tmp_path):
  config = People(csv=str(tmp_path / "no.csv"), label="y", group="g")
  with pytest.raises(data.DataError, match=r"no\.csv cannot be read"):
    load_people(config)


def test_a_missing_set_is_refused_with_the_command_that_gets_it():
  with pytest.raises(data.DataError, match="jaxfair data fetch adult"):
    load_people(People())


def test_the_stand_in_is_used_and_said(monkeypatch):
  asked = []

  def fetch(name):
    asked.append(name)
    raise data.DataError("no network")

  monkeypatch.setattr(data, "fetch", fetch)
  config = People(stand_in=True)
  for _ in range(2):
    dataset, told = load_people(config)
    assert dataset.name == "colored_digits"
    assert "adult could not be loaded" in told
    assert "stand-in colored_digits" in told
    assert "no network" in told
  assert asked == ["adult"]  # once, not once a cell


def test_what_was_fetched_is_used(monkeypatch):
  there = []
  digits = data.load("digits")

  def load(name, *, label, group):
    if not there:
      raise data.DataError("not here")
    assert (name, label, group) == ("adult", None, "sex")
    return digits

  monkeypatch.setattr(data, "load", load)
  monkeypatch.setattr(data, "fetch", there.append)
  assert load_people(People(group="sex", stand_in=True)) == (digits, "")


def test_rows_are_taken_for_people_and_that_is_said(tmp_path):
  path = tmp_path / "many.csv"
  path.write_text("x,label,group,who\n1,0,a,p\n2,1,b,p\n3,0,a,q\n")
  told = []
  own = {"csv": str(path), "label": "label", "group": "group", "min_group_size": 1}
  sets = (People(**own, unit="who"), People())
  context = _study.Context(None, None, False, tmp_path, told.append)
  found = context.load_rows(sets, "many")
  assert found.unit is None
  assert found.size == 3
  assert "epsilon protects a row, not a person" in told[-1]
