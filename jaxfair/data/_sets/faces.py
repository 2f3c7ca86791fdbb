"""Faces: UTKFace and FairFace, as images or in the compact 48 x 48 form."""

import csv
import io
import pathlib

import numpy as np

from jaxfair.data import _rules, _tables
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import DataError, Files, ImageFolder, KnownFile
from jaxfair.data._reading import parse
from jaxfair.data._sets.images import image_opener
from jaxfair.data._spec import Facts, Figure, Form, Raw, Spec
from jaxfair.data._tables import Table

SIDE = 48  # pixels; the resolution the papers' face experiments use


def undo_delta(content: bytes) -> np.ndarray:
  """[n, h, w, 1] pixels from differences along each line, modulo 256."""
  deltas = np.load(io.BytesIO(content), allow_pickle=False)
  return np.cumsum(deltas, axis=2, dtype=np.uint8)[..., None]


def read_images(paths: list[pathlib.Path]) -> np.ndarray:
  """[n, 48, 48, 1] gray images, scaled down by bilinear filtering."""
  opener = image_opener()
  images = np.empty((len(paths), SIDE, SIDE, 1), np.uint8)
  for row, path in enumerate(paths):
    try:
      with opener.open(path) as image:
        small = image.convert("L").resize((SIDE, SIDE), opener.Resampling.BILINEAR)
    except OSError as error:
      raise DataError(
        f"{path} cannot be read as an image ({error}); unpack the set again"
      ) from None
    images[row, ..., 0] = np.asarray(small)
  return images


def _utkface_compact(found: Files) -> Raw:
  table = parse(found.text("utkface_labels.csv"))
  return Raw(
    _people(table["age"], table["gender"], table["ethnicity"]),
    undo_delta(found.read("utkface_48x48_gray_delta.npy")),
  )


def utkface_folder(found: Files) -> Raw:
  """age_gender_race_date.jpg files; those without a race label are skipped."""
  known: list[tuple[list[str], pathlib.Path]] = []
  for path in sorted(found.paths["UTKFace"].glob("*.jpg")):
    parts = path.name.split("_")
    numbers = parts[:3]
    if len(parts) >= 4 and all(part.isdecimal() for part in numbers):
      known.append((numbers, path))
  if not known:
    raise DataError(
      f"{found.paths['UTKFace']} has no file named age_gender_race_date.jpg; "
      "unpack UTKFace's aligned and cropped faces there"
    )
  labels = np.array([numbers for numbers, _ in known], np.float64)
  return Raw(_people(*labels.T), read_images([path for _, path in known]))


def utkface_csv(found: Files) -> Raw:
  """Kaggle's age_gender.csv, whose last column holds the pixels."""
  # Not read as a table: a column of such long words would fill the memory.
  rows = csv.DictReader(io.StringIO(found.text("age_gender.csv")))
  labels, images = [], []
  for row in rows:
    labels.append([float(row[name]) for name in ("age", "gender", "ethnicity")])
    images.append(np.fromstring(row["pixels"], np.uint8, sep=" "))
  return Raw(_people(*np.array(labels).T), np.stack(images).reshape(-1, SIDE, SIDE, 1))


def _people(age: np.ndarray, gender: np.ndarray, race: np.ndarray) -> Table:
  return {"age": age, "gender": gender, "race": race}


GENDER = _rules.values("gender", {"0": "male", "1": "female"})
RACE = _rules.values(
  "race", {"0": "White", "1": "Black", "2": "Asian", "3": "Indian", "4": "Other"}
)
AGE = _rules.bins(
  "age",
  (10, 15, 20, 25, 30, 40, 50, 60),
  ("0-9", "10-14", "15-19", "20-24", "25-29", "30-39", "40-49", "50-59", "60+"),
)

UTKFACE = Spec(
  name="utkface",
  source=Provenance(
    "UTKFace, aligned and cropped, gray 48 x 48",
    "non-commercial research only",
    "Z. Zhang, Y. Song, H. Qi, 2017",
    (
      "research only: do not package or redistribute",
      "age and race were estimated by a program and checked by annotators; "
      "inferring them from a face is a flawed task",
    ),
    "age",
  ),
  folders=("utkface", "UTKFace"),
  forms=(
    Form(
      (
        KnownFile(
          "utkface_48x48_gray_delta.npy",
          "f29fc336aed6b161de93a6631fbdd51df994760c5cbbf07e2dd0ff04bd532eb8",
        ),
        KnownFile(
          "utkface_labels.csv", "a693b34ac6a051dea6a19f45711c6a6b96a98fc4907b1f75cf51103cc4ee8a49"
        ),
      ),
      _utkface_compact,
    ),
    Form((KnownFile("age_gender.csv"),), utkface_csv),
    Form((ImageFolder("UTKFace", "*_*_*_*.jpg"),), utkface_folder),
  ),
  labels={"gender": GENDER, "race": RACE, "age": AGE},
  groups={"race": RACE, "age": AGE, "gender": GENDER},
  facts=Facts(
    (12391, 11314),
    {"race": (10078, 4526, 3434, 3975, 1692)},
    (Figure("mean age", lambda t: round(float(t["age"].mean()), 4), 33.3009),),
  ),
)

# Excel took two of the age ranges for dates in the copies that circulate.
FAIRFACE_AGES = {"9-Mar": "3-9", "19-Oct": "10-19", "03-Sep": "3-9"}


def _fairface_table(text: str) -> Table:
  table = parse(text)
  return {**table, "age": _tables.recode(table["age"], FAIRFACE_AGES)}


def _fairface_compact(found: Files) -> Raw:
  images = undo_delta(found.read("fairface_val5000_48x48_gray_delta.npy"))
  table = _fairface_table(found.text("fairface_label_val.csv"))
  return Raw(_tables.take(table, np.arange(len(images))), images)


def fairface_folder(found: Files) -> Raw:
  """The label files and the jpg files they name, training part first."""
  parts = [_fairface_table(found.text(f"fairface_label_{part}.csv")) for part in ("train", "val")]
  table = _tables.concatenate(parts)
  # The folder that was found is train/; the labels name train/1.jpg.
  base = found.paths["train"].parent
  paths = [base / name for name in table["file"].tolist()]
  lost = [path for path in paths if not path.is_file()]
  if lost:
    raise DataError(
      f"{len(lost)} images named by the labels are not there, first {lost[0]}; "
      "unpack FairFace's train/ and val/ next to the label files"
    )
  return Raw(table, read_images(paths), test_rows=np.arange(len(paths)) >= _tables.size(parts[0]))


FAIRFACE_GENDER = _rules.values("gender", {"Male": "male", "Female": "female"})
FAIRFACE_RACE = _rules.values("race")
FAIRFACE_AGE = _rules.values(
  "age",
  {
    name: name
    for name in ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")
  },
)

FAIRFACE = Spec(
  name="fairface",
  source=Provenance(
    "FairFace, gray 48 x 48",
    "CC BY 4.0",
    "K. Karkkainen, J. Joo, 2021",
    (
      "the compact copy holds the first 5,000 validation images only",
      "race and age are annotators' impressions",
    ),
  ),
  folders=("fairface", "FairFace"),
  forms=(
    Form(
      (
        KnownFile("fairface_label_train.csv"),
        KnownFile("fairface_label_val.csv"),
        ImageFolder("train", "*.jpg"),
        ImageFolder("val", "*.jpg"),
      ),
      fairface_folder,
    ),
    Form(
      (
        KnownFile(
          "fairface_val5000_48x48_gray_delta.npy",
          "fdef2a8dc3e570a7f1de54c4070ffcd5e6068a4d8cdfb1fe625f765840ca9985",
        ),
        KnownFile(
          "fairface_label_val.csv",
          "ec55e277f6a9b2d818be31537a8bea0896b8e77ab3d24dd1a262fe57b5af98fb",
        ),
      ),
      _fairface_compact,
      Facts((2633, 2367), {"race": (726, 725, 681, 715, 527, 664, 962)}),
    ),
  ),
  labels={"gender": FAIRFACE_GENDER, "race": FAIRFACE_RACE, "age": FAIRFACE_AGE},
  groups={"race": FAIRFACE_RACE, "age": FAIRFACE_AGE, "gender": FAIRFACE_GENDER},
  facts=Facts((51778, 45920), {"race": (13789, 13837, 13835, 14990, 10425, 12210, 18612)}),
)

SPECS = (UTKFACE, FAIRFACE)
