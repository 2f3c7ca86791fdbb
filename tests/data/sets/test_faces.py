"""Face readers on files made here, and the real sets where they are."""

import gzip
import io
import lzma

import numpy as np
import pytest
from PIL import Image

from jaxfair import data
from jaxfair.data import DataError, _loading
from jaxfair.data._files import Files, ImageFolder, KnownFile
from jaxfair.data._sets import faces

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (4, 48, 48), dtype=np.uint8)


def deltas(pixels):
  first = pixels[:, :, :1]
  return np.concatenate([first, np.diff(pixels, axis=2)], axis=2)


def test_deltas_are_undone():
  buffer = io.BytesIO()
  np.save(buffer, deltas(PIXELS))
  found = faces.undo_delta(buffer.getvalue())
  np.testing.assert_array_equal(found[..., 0], PIXELS)


def test_utkface_folder_reads_labels_from_names(tmp_path):
  names = (
    "1_0_2_20170109.jpg.chip.jpg",
    "33_1_4_20170110.jpg",
    "61_1_20170111.jpg",
    "7_1_0_20170112.jpg",
    "readme_of_the_set.jpg",
  )
  for shade, name in enumerate(names):
    Image.new("RGB", (200, 200), (shade * 40,) * 3).save(tmp_path / name, "jpeg")
  wanted = ImageFolder("UTKFace", "*_*_*_*.jpg")
  raw = faces.utkface_folder(Files([wanted], {"UTKFace": tmp_path}, ""))
  # In the order of the names; those without a race are skipped.
  assert raw.table["age"].tolist() == [1, 33, 7]
  assert raw.table["gender"].tolist() == [0, 1, 1]
  assert raw.table["race"].tolist() == [2, 4, 0]
  assert raw.images.shape == (3, 48, 48, 1)
  np.testing.assert_allclose(raw.images[:, 0, 0, 0], [0, 40, 120], atol=2)


def test_utkface_folder_without_faces_or_with_damage_is_refused(tmp_path):
  wanted = ImageFolder("UTKFace", "*.jpg")
  found = Files([wanted], {"UTKFace": tmp_path}, "")
  (tmp_path / "a_b_c_d.jpg").touch()
  with pytest.raises(DataError, match="age_gender_race_date"):
    faces.utkface_folder(found)
  (tmp_path / "1_1_1_x.jpg").write_bytes(b"no image")
  with pytest.raises(DataError, match=r"1_1_1_x\.jpg cannot be read"):
    faces.utkface_folder(found)


def test_utkface_csv_of_pixels(tmp_path):
  lines = [
    f"{20 + i},{i % 5},{i % 2},name{i},{' '.join(map(str, PIXELS[i].ravel()))}" for i in range(4)
  ]
  path = tmp_path / "age_gender.csv"
  path.write_text("\n".join(["age,ethnicity,gender,img_name,pixels", *lines]))
  known = KnownFile("age_gender.csv")
  raw = faces.utkface_csv(Files([known], {known.name: path}, ""))
  np.testing.assert_array_equal(raw.images[..., 0], PIXELS)
  assert raw.table["race"].tolist() == [0, 1, 2, 3]


def test_an_incomplete_folder_is_refused_by_its_figures(tmp_path, monkeypatch):
  monkeypatch.delenv("JAXFAIR_DATA", raising=False)
  Image.new("L", (48, 48)).save(tmp_path / "1_0_2_20170109.jpg")
  with pytest.raises(DataError, match=r"\(1, 0\) rows per class"):
    data.load("utkface", root=tmp_path)


def fairface_files(tmp_path):
  head = "file,age,gender,race,service_test\n"
  labels = {
    "train": "train/1.jpg,9-Mar,Male,White,True\ntrain/2.jpg,more than 70,Female,Black,False\n",
    "val": "val/1.jpg,3-9,Female,Indian,False\n",
  }
  paths = {}
  for part, text in labels.items():
    path = tmp_path / f"fairface_label_{part}.csv"
    path.write_text(head + text)
    paths[path.name] = path
    paths[part] = tmp_path / part
    paths[part].mkdir()
    for line in text.splitlines():
      Image.new("L", (224, 224), 9).save(tmp_path / line.split(",")[0])
  form = faces.FAIRFACE.forms[0]
  return Files(form.files, paths, "")


def test_fairface_folder_mends_ages_and_marks_the_test_part(tmp_path):
  raw = faces.fairface_folder(fairface_files(tmp_path))
  assert raw.table["age"].tolist() == ["3-9", "more than 70", "3-9"]
  assert raw.test_rows.tolist() == [False, False, True]
  assert raw.images.shape == (3, 48, 48, 1)


def test_fairface_images_that_are_lost_are_named(tmp_path):
  found = fairface_files(tmp_path)
  (tmp_path / "train" / "2.jpg").unlink()
  with pytest.raises(DataError, match=r"1 images.*2\.jpg"):
    faces.fairface_folder(found)


@pytest.mark.slow
def test_real_utkface_and_its_faces_as_files(data_root, tmp_path):
  loaded = data.load("utkface", root=data_root)
  assert loaded.examples.x.shape == (23705, 48, 48, 1)
  assert loaded.group_sizes == {
    "White": 10078,
    "Black": 4526,
    "Asian": 3434,
    "Indian": 3975,
    "Other": 1692,
  }
  with gzip.open(data_root / "utkface/utkface_labels.csv.gz", "rt") as file:
    names = [line.strip().split(",")[-1] for line in file][1:]
  ages = np.array([int(name.split("_")[0]) for name in names])
  edges = [0, 10, 15, 20, 25, 30, 40, 50, 60, 200]
  counts = np.histogram(ages, edges)[0]
  table = {"age": ages.astype(float)}
  assert _loading.count(faces.AGE, table) == tuple(counts)
  # The first fifty faces as a user would have them, without loss.
  pixels = (loaded.examples.x[:50, ..., 0] * 255).round().astype(np.uint8)
  for name, image in zip(names[:50], pixels, strict=True):
    Image.fromarray(image).save(tmp_path / name, "png")
  wanted = ImageFolder("UTKFace", "*.jpg")
  raw = faces.utkface_folder(Files([wanted], {"UTKFace": tmp_path}, ""))
  order = np.argsort(names[:50])
  np.testing.assert_array_equal(raw.images[..., 0], pixels[order])
  np.testing.assert_array_equal(raw.table["gender"], loaded.examples.y[:50][order])


@pytest.mark.slow
def test_real_fairface(data_root):
  loaded = data.load("fairface", root=data_root)
  assert loaded.examples.x.shape == (5000, 48, 48, 1)
  assert loaded.num_groups == 7
  by_age = data.load("fairface", root=data_root, group="age")
  assert by_age.size == 5000
  assert by_age.group_names[1:3] == ("3-9", "10-19")


def test_a_compact_file_cut_short_is_refused(tmp_path, monkeypatch):
  monkeypatch.delenv("JAXFAIR_DATA", raising=False)
  whole = lzma.compress(PIXELS.tobytes())
  (tmp_path / "utkface_48x48_gray_delta.npy.xz").write_bytes(whole[:-20])
  (tmp_path / "utkface_labels.csv").write_text("age,gender,ethnicity,filename\n")
  with pytest.raises(DataError, match=r"altered|truncated"):
    data.load("utkface", root=tmp_path)
