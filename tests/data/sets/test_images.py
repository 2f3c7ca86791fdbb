"""Image readers on files made here, and the real sets where they are."""

import io
import os
import pickle
import struct
import sys
import tarfile

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from jaxfair import data
from jaxfair.data import DataError, _loading
from jaxfair.data._files import Files, KnownFile
from jaxfair.data._sets import images


def idx(values):
  head = struct.pack(">HBB", 0, 8, values.ndim)
  axes = struct.pack(f">{values.ndim}I", *values.shape)
  return head + axes + values.tobytes()


def test_idx_is_read_back():
  values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
  np.testing.assert_array_equal(images.parse_idx(idx(values)), values)


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x0d\x01", idx(np.zeros(9, np.uint8))[:-1]])
def test_idx_that_is_none_is_refused(content):
  with pytest.raises(DataError, match="get it again"):
    images.parse_idx(content)


def test_four_idx_files_make_a_set_with_its_test_part(tmp_path):
  rng = np.random.default_rng(0)
  x = rng.integers(0, 256, (5, 3, 3), dtype=np.uint8)
  y = np.array([0, 1, 2, 3, 4], np.uint8)
  form = images.idx_form((None,) * 4)
  contents = (x[:3], y[:3], x[3:], y[3:])
  paths = {}
  for item, values in zip(form.files, contents, strict=True):
    paths[item.name] = tmp_path / item.name
    paths[item.name].write_bytes(idx(values))
  raw = form.read(Files(form.files, paths, ""))
  np.testing.assert_array_equal(raw.images[..., 0], x)
  np.testing.assert_array_equal(raw.table["class"], y)
  assert raw.test_rows.tolist() == [False] * 3 + [True] * 2


def batch(pixels, labels):
  return pickle.dumps({b"data": pixels, b"labels": labels}, protocol=2)


def test_cifar_batches_keep_rows_columns_and_channels():
  rng = np.random.default_rng(0)
  x = rng.integers(0, 256, (6, 3, 32, 32), dtype=np.uint8)
  batches = [batch(x[i : i + 1].reshape(1, -1), [i]) for i in range(6)]
  raw = images.cifar_from_batches(batches)
  np.testing.assert_array_equal(raw.images, x.transpose(0, 2, 3, 1))
  np.testing.assert_array_equal(raw.table["class"], np.arange(6))
  assert raw.test_rows.tolist() == [False] * 5 + [True]


def test_cifar_batches_as_python_2_pickled_them():
  """Old module name, and whole numbers where flags are meant."""
  new = batch(np.zeros((1, 3072), np.uint8), [4])
  old = new.replace(b"numpy._core", b"numpy.core")
  old = old.replace(b"\x89\x88\x87", b"K\x00K\x01\x87")
  assert old.count(b"K\x00K\x01\x87") == 1
  raw = images.cifar_from_batches([old, old])
  assert raw.images.dtype == np.uint8
  assert raw.table["class"].tolist() == [4, 4]


def test_a_batch_that_wants_to_run_something_is_refused(tmp_path):
  class Evil:
    def __reduce__(self):
      return os.mkdir, (str(tmp_path / "pwned"),)

  with pytest.raises(DataError, match="which no batch needs"):
    images.cifar_from_batches([pickle.dumps({b"data": Evil()}, protocol=2)])
  assert list(tmp_path.iterdir()) == []


def test_cifar_jpegs_take_class_and_part_from_the_path(tmp_path):
  path = tmp_path / "cifar10_jpeg_images.tar"
  with tarfile.open(path, "w") as archive:
    for part, name, shade in (("train", "cat", 10), ("test", "truck", 200)):
      buffer = io.BytesIO()
      Image.new("RGB", (32, 32), (shade,) * 3).save(buffer, "jpeg")
      member = tarfile.TarInfo(f"x/{part}/{name}/0001.jpg")
      member.size = buffer.tell()
      buffer.seek(0)
      archive.addfile(member, buffer)
  known = KnownFile("cifar10_jpeg_images.tar")
  raw = images.cifar_from_jpegs(Files([known], {known.name: path}, ""))
  assert raw.table["class"].tolist() == [3, 9]
  assert raw.test_rows.tolist() == [False, True]
  np.testing.assert_allclose(raw.images[:, 0, 0, 0], [10, 200], atol=2)


def test_digits_are_scikit_learns():
  bundled, reference = data.load("digits"), load_digits()
  np.testing.assert_array_equal(
    bundled.examples.x[..., 0], (reference.images / 16).astype(np.float32)
  )
  np.testing.assert_array_equal(bundled.examples.y, reference.target)
  assert "CC BY" in bundled.source.license


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_real_idx_sets(data_root, name):
  loaded = data.load(name, root=data_root)
  x, y, group = loaded.examples
  assert x.shape == (70000, 28, 28, 1)
  assert (x.min(), x.max()) == (0, 1)
  assert loaded.test_rows.sum() == 10000
  np.testing.assert_array_equal(y, group)
  # Published means of the training pixels: 0.1307 and 0.2860.
  mean = {"mnist": 0.1307, "fashion_mnist": 0.2860}[name]
  assert abs(x[~loaded.test_rows].mean(dtype=np.float64) - mean) < 5e-5


@pytest.mark.slow
def test_real_colored_set_is_the_gray_one_painted(data_root):
  gray, painted = (
    _loading.open_set(_loading.SPECS[name], data_root).raw for name in ("mnist", "colored_mnist")
  )
  np.testing.assert_array_equal(painted.images.max(-1, keepdims=True), gray.images)
  np.testing.assert_array_equal(painted.table["class"], gray.table["class"])
  assert painted.test_rows.sum() == 10000


@pytest.mark.slow
def test_real_cifar10(data_root):
  loaded = data.load("cifar10", root=data_root)
  train = loaded.examples.x[~loaded.test_rows]
  assert train.shape == (50000, 32, 32, 3)
  # Published channel means 125.3, 123.0, 113.9; this copy went through JPEG.
  means = train.mean((0, 1, 2), dtype=np.float64) * 255
  np.testing.assert_allclose(means, [125.3, 123.0, 113.9], atol=0.2)
  assert set(np.bincount(loaded.examples.y[loaded.test_rows])) == {1000}


def test_image_files_without_pillow_say_what_to_install(monkeypatch):
  monkeypatch.setitem(sys.modules, "PIL", None)
  with pytest.raises(data.DataError, match=r"jaxfair\[images\]"):
    images.image_opener()
