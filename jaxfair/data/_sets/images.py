"""Image sets: idx files, CIFAR-10, and the digits that come with jaxfair."""

import importlib.resources
import io
import math
import pickle
import tarfile
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxfair.data import _rules
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import DataError, Files, KnownFile
from jaxfair.data._spec import Facts, Form, Raw, Spec

DIGIT_NAMES = tuple("0123456789")
# The order of ids; also the alphabetical one, as in the folder names.
CIFAR_NAMES = (
  "airplane",
  "automobile",
  "bird",
  "cat",
  "deer",
  "dog",
  "frog",
  "horse",
  "ship",
  "truck",
)
FASHION_NAMES = (
  "T-shirt/top",
  "Trouser",
  "Pullover",
  "Dress",
  "Coat",
  "Sandal",
  "Shirt",
  "Sneaker",
  "Bag",
  "Ankle boot",
)


def class_rule(names: tuple[str, ...]) -> _rules.Rule:
  """The rule of a column "class" that already holds ids."""
  return _rules.values("class", {str(position): name for position, name in enumerate(names)})


def parse_idx(content: bytes) -> np.ndarray:
  """Reads the idx format of unsigned bytes (MNIST's).

  Two zero bytes, the type 8, the number of axes; the length of each axis as a
  big-endian 32-bit integer; then the values.
  """
  if len(content) < 4 or content[:3] != b"\x00\x00\x08":
    raise DataError("this is not an idx file of unsigned bytes; get it again")
  rank, head = content[3], 4 + 4 * content[3]
  if not 0 < rank <= 4 or len(content) < head:
    raise DataError(
      f"this idx file has {rank} axes and ends within its head; it was cut short, get it again"
    )
  shape = np.frombuffer(content, ">u4", count=rank, offset=4).tolist()
  size = math.prod(shape)  # of Python's numbers: these do not wrap around
  if len(content) - head != size:
    raise DataError(
      f"this idx file holds {len(content) - head} values where its head says "
      f"{size}; it was cut short, get it again"
    )
  return np.frombuffer(content, np.uint8, offset=head).reshape(shape)


def idx_form(sums: Sequence[str | None]) -> Form:
  """Four idx files: training images and labels, test images and labels."""
  names = (
    ("train-images-idx3-ubyte", "train-images.idx3-ubyte"),
    ("train-labels-idx1-ubyte", "train-labels.idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"),
    ("t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"),
  )
  known = tuple(
    KnownFile(name, digest, aliases=(alias,))
    for (name, alias), digest in zip(names, sums, strict=True)
  )

  def read(found: Files) -> Raw:
    x, y, x_test, y_test = (parse_idx(found.read(file.name)) for file in known)
    labels = np.concatenate([y, y_test])
    return Raw(
      {"class": labels.astype(np.float64)},
      images=np.concatenate([x, x_test])[..., None],
      test_rows=np.arange(len(labels)) >= len(y),
    )

  return Form(known, read)


def image_opener() -> types.ModuleType:
  """Pillow's `Image`, which opens JPEG and PNG files; an error names the extra that brings it."""
  try:
    from PIL import Image
  except ImportError:
    raise DataError(
      "reading JPEG and PNG files needs pillow; pip install 'jaxfair[images]'"
    ) from None
  return Image


def cifar_from_jpegs(found: Files) -> Raw:
  """train/<class>/NNNN.jpg and test/<class>/NNNN.jpg in a tar file."""
  opener = image_opener()
  images, labels, test = [], [], []
  content = io.BytesIO(found.read("cifar10_jpeg_images.tar"))
  with tarfile.open(fileobj=content, mode="r:") as archive:
    for member in archive:
      parts = member.name.split("/")
      if member.isfile() and len(parts) >= 3 and parts[-1].endswith(".jpg"):
        part, label = parts[-3:-1]
        file = archive.extractfile(member)
        assert file is not None
        images.append(np.asarray(opener.open(file).convert("RGB")))
        labels.append(CIFAR_NAMES.index(label))
        test.append(part == "test")
  return Raw({"class": np.array(labels, np.float64)}, np.stack(images), np.array(test))


CIFAR_BATCHES = {
  "data_batch_1": "c99cafc152244af753f735de768cd75f",
  "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
  "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
  "data_batch_4": "634d18415352ddfa80567beed471001a",
  "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
  "test_batch": "40351d587109b95175f43aff81a1287e",
}


def cifar_from_batches(contents: list[bytes]) -> Raw:
  """The six pickled batches of the original, the test batch last."""
  batches = [_Unpickler(io.BytesIO(item)).load() for item in contents]
  pixels = np.concatenate([batch[b"data"] for batch in batches])
  labels = np.concatenate([batch[b"labels"] for batch in batches])
  first_test = len(labels) - len(batches[-1][b"labels"])
  return Raw(
    {"class": labels.astype(np.float64)},
    images=pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1),
    test_rows=np.arange(len(labels)) >= first_test,
  )


class _Unpickler(pickle.Unpickler):
  """Unpickles arrays and nothing else: a pickle can run any program."""

  def __init__(self, file: io.BytesIO):
    super().__init__(file, encoding="bytes")

  def find_class(self, module: str, name: str) -> Any:
    of_numpy = module == "numpy" or module.startswith("numpy.")
    if of_numpy and name == "dtype":
      return _dtype
    if of_numpy and name in ("_reconstruct", "ndarray"):
      return super().find_class(module, name)
    if (module, name) == ("_codecs", "encode"):
      return super().find_class(module, name)
    raise DataError(
      f"this CIFAR-10 batch asks to load {module}.{name}, which no batch "
      "needs; delete it and get the original again"
    )


def _dtype(code: Any, align: Any = False, copy: Any = False) -> np.dtype:
  # Pickles of old say 0 and 1 where numpy now wants False and True.
  return np.dtype(code, align=bool(align), copy=bool(copy))


def _cifar_from_archive(found: Files) -> Raw:
  content = io.BytesIO(found.read("cifar-10-python.tar.gz"))
  with tarfile.open(fileobj=content, mode="r:gz") as archive:
    opened = [archive.extractfile(f"cifar-10-batches-py/{name}") for name in CIFAR_BATCHES]
    return cifar_from_batches([file.read() for file in opened if file])


def _digits(found: Files) -> Raw:
  del found  # they come with the package
  resource = importlib.resources.files("jaxfair.data") / "digits.npz"
  with resource.open("rb") as file, np.load(file) as arrays:
    images, labels = arrays["images"], arrays["labels"]
  return Raw(
    {"class": labels.astype(np.float64)}, images=(images.astype(np.float32) / 16)[..., None]
  )


DIGITS = Spec(
  name="digits",
  source=Provenance(
    "Optical recognition of handwritten digits, 8 x 8 (the UCI test part)",
    "CC BY 4.0",
    "E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998",
    ("comes with jaxfair; a stand-in for teaching and tests",),
  ),
  folders=("digits",),
  forms=(Form((), _digits),),
  labels={"digit": class_rule(DIGIT_NAMES)},
  groups={},
  facts=Facts((178, 182, 177, 183, 181, 182, 181, 179, 174, 180)),
)


def _idx_set(
  name: str,
  source: Provenance,
  folders: tuple[str, ...],
  label: dict[str, _rules.Rule],
  facts: Facts,
  *sums: str,
) -> Spec:
  """A set that comes as four IDX files, with these digests."""
  forms = (idx_form(sums),)
  return Spec(
    name=name, source=source, folders=folders, forms=forms, labels=label, groups={}, facts=facts
  )


MNIST = _idx_set(
  "mnist",
  Provenance("MNIST handwritten digits", "CC BY-SA 3.0", "Y. LeCun, C. Cortes, C. Burges"),
  ("mnist", "MNIST", "MNIST/raw"),
  {"digit": class_rule(DIGIT_NAMES)},
  Facts((6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958)),
  "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
  "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
  "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
  "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
)
FASHION_MNIST = _idx_set(
  "fashion_mnist",
  Provenance("Fashion-MNIST", "MIT", "Zalando SE"),
  ("fashion_mnist", "fashion-mnist", "FashionMNIST/raw"),
  {"article": class_rule(FASHION_NAMES)},
  Facts((7000,) * 10),
  "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
  "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
  "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
  "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
)

CIFAR10 = Spec(
  name="cifar10",
  source=Provenance(
    "CIFAR-10",
    "none stated",
    "A. Krizhevsky, 2009",
    (
      "the compact copy went through JPEG: its pixels differ slightly from "
      "the original batches, and its rows are in another order",
    ),
    "class, in the compact copy",
  ),
  folders=("cifar10", "cifar-10"),
  forms=(
    Form(
      (
        KnownFile(
          "cifar-10-python.tar.gz",
          "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
          as_is=True,
        ),
      ),
      _cifar_from_archive,
    ),
    Form(
      tuple(
        KnownFile(f"cifar-10-batches-py/{name}", digest) for name, digest in CIFAR_BATCHES.items()
      ),
      lambda found: cifar_from_batches(
        [found.read(f"cifar-10-batches-py/{name}") for name in CIFAR_BATCHES]
      ),
    ),
    Form(
      (
        KnownFile(
          "cifar10_jpeg_images.tar",
          "78a12bf9b69a9524c5aa28ae5036c65a8e11beb9680e7de1b05e1fb98663506f",
        ),
      ),
      cifar_from_jpegs,
    ),
  ),
  labels={"object": class_rule(CIFAR_NAMES)},
  groups={},
  facts=Facts((6000,) * 10),
)

SPECS = (DIGITS, MNIST, FASHION_MNIST, CIFAR10)
