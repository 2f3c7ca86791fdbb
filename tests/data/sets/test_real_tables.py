"""The real tables against pandas and against the publishers' own counts."""

import sys
import time

import jax
import numpy as np
import pandas as pd
import pytest

from jaxfair import data
from jaxfair.data import _files, _inventory, _loading

# Rows, features without the default group's columns.
SHAPES = {
  "adult": (48842, 103),
  "bank": (45211, 50),
  "bank_additional": (41188, 62),
  "bank_balanced": (11162, 50),
  "credit": (30000, 29),
  "parkinsons": (5875, 18),
  "wine": (6497, 11),
  "abalone": (4177, 7),
  "fetal": (2126, 21),
  "churn": (7043, 43),
  "stroke": (5109, 18),
  "compas": (6172, 9),
  "insurance": (10000, 33),
  "segmentation": (8068, 30),
  "celeba": (202599, 38),
  "title_one": (16641, 2),
  "saipe": (13183, 3),
  "section203": (316, 3),
  "section203_alaska": (390, 3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_every_check_passes_and_the_shape_is_known(data_root, name):
  failed = [one for one in _inventory.check(name, root=data_root) if not one.ok]
  assert failed == []
  loaded = data.load(name, root=data_root)
  assert loaded.examples.x.shape == SHAPES[name]
  assert not set(_loading.SPECS[name].drop) & set(loaded.columns)
  assert loaded.source.sorted_by or not in_order(loaded.examples)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bank", "compas"])
def test_the_encoder_of_a_named_set_encodes_its_table_to_the_same_bits(data_root, name):
  own = data.load(name, root=data_root)
  table = _loading.open_set(_loading.find_spec(name), data_root).raw.table
  encoder = data.Encoder.from_record(own.encoder.to_record())
  for found, expected in zip(
    encoder.encode(table, need_label=True, need_group=True), own.examples, strict=True
  ):
    np.testing.assert_array_equal(found, expected)


def in_order(examples):
  """Whether a column changes from row to row less than half as often as in random order."""
  order = np.random.default_rng(0).permutation(examples.size)
  columns = np.column_stack([examples.y, examples.group, np.nan_to_num(examples.x)])
  changes, random = ((part[1:] != part[:-1]).mean(0) for part in (columns, columns[order]))
  return bool((changes < 0.5 * random)[random > 0.05].any())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["saipe_2015", "saipe_2020"])
def test_excel_sets(data_root, name):
  pytest.importorskip("xlrd", reason="needs the extra `excel`")
  assert all(one.ok for one in _inventory.check(name, root=data_root))
  poor = data.load(name, root=data_root).examples.x
  assert (poor[:, 2] <= poor[:, 1]).mean() > 0.999
  assert (poor[:, 1] <= poor[:, 0]).all()


def test_excel_sets_without_xlrd_say_what_to_install(data_root, monkeypatch):
  monkeypatch.setitem(sys.modules, "xlrd", None)
  with pytest.raises(data.DataError, match=r"jaxfair\[excel\]"):
    data.load("saipe_2020", root=data_root)


def adult_frame(data_root):
  names = "age work weight edu edunum marital job rel race sex gain loss hours "
  options = {
    "header": None,
    "names": (names + "country income").split(),
    "skipinitialspace": True,
    "na_values": "?",
    "comment": "|",
  }
  return pd.concat(
    [pd.read_csv(data_root / f"adult/adult.{part}.gz", **options) for part in ("data", "test")]
  )


@pytest.mark.slow
def test_adult_row_by_row(data_root):
  frame = adult_frame(data_root)
  loaded = data.load("adult", root=data_root, group="sex*race")
  x, y, group = loaded.examples
  np.testing.assert_array_equal(y, frame.income.str.startswith(">50K"))
  expected = (frame.sex + ", " + frame.race).to_numpy()
  np.testing.assert_array_equal(np.array(loaded.group_names)[group], expected)
  for feature, column in (("age", "age"), ("hours-per-week", "hours")):
    place = loaded.feature_names.index(feature)
    np.testing.assert_array_equal(x[:, place], frame[column])
  cook = x[:, loaded.feature_names.index("occupation=missing")]
  np.testing.assert_array_equal(cook, frame.job.isna())
  assert loaded.test_rows.sum() == 16281
  assert not {"sex", "race"} & set(loaded.columns)


@pytest.mark.slow
def test_credit_speaks_words(data_root):
  loaded = data.load("credit", root=data_root, keep_group_features=True)
  frame = pd.read_csv(data_root / "credit_default/UCI_Credit_Card.csv.gz")
  school = loaded.feature_names.index("EDUCATION=university")
  np.testing.assert_array_equal(loaded.examples.x[:, school], frame.EDUCATION == 2)
  assert loaded.group_sizes == {"female": 18112, "male": 11888}
  assert "ID" not in loaded.columns


def test_parkinsons_is_split_by_person(data_root):
  loaded = data.load("parkinsons", root=data_root)
  assert len(np.unique(loaded.unit)) == 42
  assert not {"motor_UPDRS", "total_UPDRS", "subject#"} & set(loaded.columns)
  parts = data.split(
    loaded.examples._replace(y=loaded.unit), (0.75, 0.25), key=jax.random.key(0), unit=loaded.unit
  )
  assert not set(parts[0].y) & set(parts[1].y)
  assert sum(part.size for part in parts) == 5875


def test_both_forms_of_fetal_agree(data_root, tmp_path):
  kaggle = data.load("fetal", root=data_root)
  packed = (data_root / "fetal_health/ctg_uci.csv.gz").read_bytes()
  (tmp_path / "ctg_uci.csv.gz").write_bytes(packed)
  uci = data.load("fetal", root=tmp_path)
  assert uci.feature_names == kaggle.feature_names
  np.testing.assert_allclose(uci.examples.x, kaggle.examples.x, rtol=1e-6)
  np.testing.assert_array_equal(uci.examples.y, kaggle.examples.y)


def test_compas_filter_is_propublicas(data_root):
  frame = pd.read_csv(data_root / "compas/compas-scores-two-years.csv.gz")
  kept = frame[
    frame.days_b_screening_arrest.between(-30, 30)
    & (frame.is_recid != -1)
    & (frame.c_charge_degree != "O")
    & frame.score_text.notna()
  ]
  loaded = data.load("compas", root=data_root, group="race")
  np.testing.assert_array_equal(loaded.examples.y, kept.two_year_recid)
  names = np.array(loaded.group_names)[loaded.examples.group]
  np.testing.assert_array_equal(names, kept.race)
  assert set(loaded.columns) == {
    "sex",
    "age",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "c_charge_degree",
  }


def test_stroke_and_abalone_groups_can_leave_rows_out(data_root):
  stroke = data.load("stroke", root=data_root)
  assert stroke.group_sizes == {"Female": 2994, "Male": 2115}
  assert data.load("stroke", root=data_root, group="age").size == 5110
  grown = data.load("abalone", root=data_root, group="grown_sex")
  assert grown.group_sizes == {"female": 1307, "male": 1528}


def test_celeba_hides_label_and_group(data_root):
  loaded = data.load("celeba", root=data_root, label="Young", group="Bald")
  assert set(np.unique(loaded.examples.x)) == {-1, 1}
  assert not {"Young", "Bald"} & set(loaded.columns)
  assert {"Smiling", "Male"} <= set(loaded.columns)


@pytest.mark.slow
def test_celeba_in_the_original_text_format(data_root, tmp_path):
  spec = _loading.SPECS["celeba"]
  table = _loading.open_set(spec, data_root).raw.table
  names = list(table)
  values = np.stack([table[name] for name in names], 1).astype(int)
  lines = [f"{len(values)}", " ".join(names)]
  lines += [
    f"{row + 1:06d}.jpg " + " ".join(f"{v:2d}" for v in line)
    for row, line in enumerate(values[:300].tolist())
  ]
  (tmp_path / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
  form = next(f for f in spec.forms if f.files[0].name.endswith(".txt"))
  found = _files.Files(form.files, {form.files[0].name: tmp_path / "list_attr_celeba.txt"}, "")
  part = form.read(found).table
  assert list(part) == names
  for name in names:
    np.testing.assert_array_equal(part[name], table[name][:300])
  # A truncated file of this form is told by its figures.
  with pytest.raises(data.DataError, match="incomplete or another version"):
    data.load("celeba", root=tmp_path)


@pytest.mark.slow
def test_title_one_gives_the_published_shares(data_root):
  frame = pd.read_csv(data_root / "title1/title1_full_data.csv.gz")
  loaded = data.load("title_one", root=data_root)
  product = loaded.examples.x.astype(np.float64).prod(1)
  np.testing.assert_allclose(product / product.sum(), frame.true_frac, rtol=1e-9)
  assert loaded.num_groups == 51
  assert loaded.num_classes == 1
  assert data.load("title_one", root=data_root, group="size").columns == ("students", "expenditure")


def test_saipe_columns_are_cut_at_the_right_places(data_root):
  loaded = data.load("saipe", root=data_root)
  assert loaded.row_names[0] == "Alabaster City School District, Alabama"
  assert loaded.examples.x[0].tolist() == [34669, 6710, 649]
  # New York City is the largest district; its counts touch no neighbor.
  largest = loaded.examples.x[:, 0].argmax()
  assert "New York City" in loaded.row_names[largest]
  frame = pd.read_fwf(
    data_root / "title1/ussd19.txt.gz",
    colspecs=[(0, 2), (82, 90), (91, 99), (100, 108)],
    header=None,
    encoding="latin-1",
    compression="gzip",
  )
  np.testing.assert_array_equal(loaded.examples.x, frame[[1, 2, 3]])
  assert loaded.num_groups == frame[0].nunique() == 51


def test_section203_percentages_are_recovered(data_root):
  frame = pd.read_csv(
    data_root / "section203/sect203_Determined_Areas_Only_2016.csv.gz",
    encoding="latin-1",
    dtype={"GEOID": str},
  )
  rows = frame[frame.LEVEL.isin(["County", "MCD"]) & (frame.LANGUAGE != "Total Population")]
  loaded = data.load("section203", root=data_root)
  citizens, minority, little = loaded.examples.x.astype(np.float64).T
  np.testing.assert_allclose(100 * minority / citizens, rows.LEPPCT, atol=6e-5)
  # Places that are covered for their Indian areas may have no such citizens.
  some = minority > 0
  np.testing.assert_allclose((100 * little[some] / minority[some]), rows.ILLRAT[some], atol=6e-5)
  assert loaded.class_sizes == {"not covered": 0, "covered": 316}


def test_the_numeric_rule_is_the_one_of_the_alaska_file(data_root):
  frame = pd.read_csv(data_root / "section203/alaska_counties_all_languages_2016.csv.gz")
  loaded = data.load("section203_alaska", root=data_root, label="rule")
  np.testing.assert_array_equal(loaded.examples.y, frame.coverage)
  census = data.load("section203_alaska", root=data_root)
  np.testing.assert_array_equal(census.examples.y, frame.FLAG_COV)


@pytest.mark.slow
def test_adult_loads_quickly(data_root):
  start = time.process_time()
  data.load("adult", root=data_root)
  assert time.process_time() - start < 3
