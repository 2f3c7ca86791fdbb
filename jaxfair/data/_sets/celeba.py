"""CelebA's forty attributes, without the images."""

import io
import zipfile

import numpy as np

from jaxfair.data import _rules
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import Files, KnownFile
from jaxfair.data._rules import Rule
from jaxfair.data._spec import Facts, Form, Raw, Spec

ROWS = 202_599


def _parse(text: str, separator: str | None, header: int) -> Raw:
  lines = text.splitlines()
  names = lines[header].split(separator)[-40:]
  body = lines[header + 1 :]
  values = np.loadtxt(body, dtype=np.int8, delimiter=separator, usecols=range(1, 41))
  return Raw({name: values[:, i] * 1.0 for i, name in enumerate(names)})


def _zipped(found: Files) -> Raw:
  with zipfile.ZipFile(io.BytesIO(found.read("celeba.csv.zip"))) as archive:
    text = archive.read("celeba.csv").decode()
  return _parse(text, ",", header=0)


def _attribute(name: str) -> Rule:
  absent = "Female" if name == "Male" else f"not {name}"
  return _rules.values(name, {"-1": absent, "1": name})


# fmt: off
ATTRIBUTES = (
  "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes",
  "Bald", "Bangs", "Big_Lips", "Big_Nose", "Black_Hair", "Blond_Hair",
  "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby", "Double_Chin",
  "Eyeglasses", "Goatee", "Gray_Hair", "Heavy_Makeup", "High_Cheekbones",
  "Male", "Mouth_Slightly_Open", "Mustache", "Narrow_Eyes", "No_Beard",
  "Oval_Face", "Pale_Skin", "Pointy_Nose", "Receding_Hairline", "Rosy_Cheeks",
  "Sideburns", "Smiling", "Straight_Hair", "Wavy_Hair", "Wearing_Earrings",
  "Wearing_Hat", "Wearing_Lipstick", "Wearing_Necklace", "Wearing_Necktie",
  "Young",
)
# fmt: on

CELEBA = Spec(
  name="celeba",
  source=Provenance(
    "CelebA attributes (no images)",
    "non-commercial research only",
    "Multimedia Laboratory, The Chinese University of Hong Kong",
    (
      "research only: do not package or redistribute",
      "attributes are annotators' impressions of celebrities, not facts",
    ),
  ),
  folders=("celeba", "celeba_attr"),
  forms=(
    Form(
      (
        KnownFile(
          "celeba.csv.zip",
          "98af210d68d240d7c587301f521b12fe163d49b526fb6c06e8792e4dde617388",
          as_is=True,
        ),
      ),
      _zipped,
    ),
    Form(
      (
        KnownFile("celeba.csv", "c5e0c057ac8590e4a916719d6e6ff792954f50f3ff41d441a1231c4a973eb1e3"),
      ),
      lambda found: _parse(found.text("celeba.csv"), ",", header=0),
    ),
    Form(
      (KnownFile("list_attr_celeba.txt"),),
      lambda found: _parse(found.text("list_attr_celeba.txt"), None, header=1),
    ),
    Form(
      (KnownFile("list_attr_celeba.csv"),),
      lambda found: _parse(found.text("list_attr_celeba.csv"), ",", header=0),
    ),
  ),
  labels={name: _attribute(name) for name in dict.fromkeys(("Smiling", *ATTRIBUTES))},
  groups={name: _attribute(name) for name in dict.fromkeys(("Male", *ATTRIBUTES))},
  facts=Facts((ROWS - 97669, 97669), {"Male": (ROWS - 84434, 84434)}),
)

SPECS = (CELEBA,)
