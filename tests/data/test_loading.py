"""Loading: where files are looked for, labels, groups, and what is refused."""

import dataclasses
import gzip

import numpy as np
import pytest

from jaxfair import data
from jaxfair.checks import ArgumentError
from jaxfair.data import DataError, _loading
from jaxfair.data._files import KnownFile
from jaxfair.data._sets.text_form import text_form


def test_features_leave_out_ids_label_and_group(toy_file):
  toy = data.load("toy")
  assert toy.group_names == ("F", "M")
  assert toy.examples.group.tolist() == [0, 0, 1, 1, 1]
  assert toy.examples.y.tolist() == [1, 0, 0, 1, 0]
  assert toy.columns == ("age", "race", "race", "job", "job", "job")
  assert toy.feature_names[3:] == ("job=missing", "job=cook", "job=nurse")
  assert np.isnan(toy.examples.x[3, 0])
  assert toy.examples.x.dtype == np.float32
  assert toy.examples.y.dtype == toy.examples.group.dtype == np.int32


def test_group_features_can_be_kept(toy_file):
  assert "sex=F" in data.load("toy", keep_group_features=True).feature_names


def test_groups_can_be_chosen_and_crossed(toy_file):
  crossed = data.load("toy", group="sex*race")
  assert crossed.group_sizes == {"F, black": 1, "F, white": 1, "M, black": 1, "M, white": 2}
  assert not {"sex", "race"} & set(crossed.columns)
  assert data.load("toy", group="age").group_sizes == {"age < 35": 2, "age >= 35": 2, "missing": 1}
  assert data.load("toy", group="all").group_names == ("everyone",)
  by_label = data.load("toy", group="label")
  np.testing.assert_array_equal(by_label.examples.group, by_label.examples.y)


def test_a_group_can_leave_people_out(toy_file):
  white = data.load("toy", group="white_only")
  assert white.size == 3
  assert white.examples.y.tolist() == [0, 0, 1]


def test_labels_can_be_chosen(toy_file):
  cook = data.load("toy", label="cook")
  assert cook.class_names == ("other", "cook")
  assert "owns" in cook.columns
  assert "job" not in cook.columns


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"name": "adlt"}, r"name='adlt' is not known.*did you mean adult"),
    ({"name": "toy", "group": "rce"}, r"use one of sex.*did you mean race"),
    ({"name": "toy", "group": "sex*shoe"}, "group='shoe'"),
    ({"name": "toy", "label": "own"}, "label='own'"),
  ],
)
def test_unknown_choices_are_refused_before_any_file_is_read(toy, options, message):
  with pytest.raises(ArgumentError, match=message):
    data.load(**options)


def test_a_missing_set_says_where_it_looked_and_what_to_do(toy, tmp_path):
  with pytest.raises(DataError) as caught:
    data.load("toy", root=tmp_path / "mine")
  message = str(caught.value)
  assert "\n" not in message
  for part in ("mine", "variable", "cache", "toy.csv", "jaxfair data fetch toy"):
    assert part in message


def test_a_set_that_cannot_be_fetched_says_where_it_is(toy):
  with pytest.raises(DataError, match=r"susanqq\.github\.io/UTKFace"):
    data.load("utkface")


def test_root_comes_before_the_variable_before_the_cache(toy, toy_file, tmp_path, monkeypatch):
  text = toy_file.read_text()
  for folder in ("mine", "cache/data"):
    (tmp_path / folder / "toys").mkdir(parents=True)
    (tmp_path / folder / "toys" / "toy.csv.gz").write_bytes(gzip.compress(text.encode()))

  def found(root=None):
    return _loading.locate(toy, root)[1].paths["toy.csv"]

  assert found(tmp_path / "mine") == tmp_path / "mine/toys/toy.csv.gz"
  assert found() == toy_file
  toy_file.unlink()
  assert found() == tmp_path / "cache/data/toys/toy.csv.gz"
  # The set's own folder is a root, too.
  own = tmp_path / "mine" / "toys"
  assert found(own) == own / "toy.csv.gz"
  assert data.load("toy", root=own).size == 5


def test_an_earlier_place_wins_over_a_preferred_form(toy, tmp_path, monkeypatch):
  """What a user names is taken, whatever lies in the later places."""
  second = text_form(KnownFile("other.csv"))
  spec = dataclasses.replace(toy, forms=(*toy.forms, second))
  for folder, name in (("mine", "other.csv"), ("variable", "toy.csv")):
    (tmp_path / folder / "toy").mkdir(parents=True)
    (tmp_path / folder / "toy" / name).touch()
  form, _ = _loading.locate(spec, tmp_path / "mine")
  assert form is second


def test_an_altered_file_is_refused(toy_file):
  toy_file.write_text(toy_file.read_text().replace("cook", "king"))
  with pytest.raises(DataError, match=r"altered or truncated.*fetch toy"):
    data.load("toy")


def test_a_truncated_file_without_checksum_is_refused_by_its_figures(toy, toy_file, monkeypatch):
  spec = dataclasses.replace(toy, forms=(text_form(KnownFile("toy.csv")),))
  monkeypatch.setitem(_loading.SPECS, "toy", spec)
  assert data.load("toy", group="race").size == 5
  toy_file.write_text(toy_file.read_text().rsplit("\n", 2)[0] + "\n")
  with pytest.raises(DataError, match=r"\(2, 2\) rows per class where toy has \(3, 2\)"):
    data.load("toy", group="race")


def test_every_name_of_the_plan_is_there():
  wanted = (
    "adult bank credit parkinsons wine abalone churn stroke compas insurance "
    "segmentation fetal fashion_mnist mnist utkface fairface cifar10 "
    "colored_digits colored_mnist colored_fashion_mnist digits title_one "
    "saipe section203 celeba"
  )
  assert set(wanted.split()) <= set(_loading.names())


@pytest.mark.parametrize("name", _loading.SPECS)
def test_specs_are_coherent(name):
  """Facts, choices and origins of every set agree with one another."""
  spec = _loading.SPECS[name]
  assert spec.name == name
  assert spec.source.license
  assert set(spec.facts.groups) <= set(spec.group_choices)
  assert all("*" not in group for group in spec.group_choices)
  total = sum(spec.facts.classes)
  assert all(sum(sizes) <= total for sizes in spec.facts.groups.values())
  known = {item.name: item for form in spec.forms for item in form.files}
  for origin in _loading.ORIGINS.get(_loading.base_name(name), ()):
    for member in getattr(origin, "members", ()):
      assert known[member].digest, "what is fetched must have a checksum"
