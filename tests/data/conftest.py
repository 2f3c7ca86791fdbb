"""A small named set of our own, so that loading is tested without real data."""

import hashlib

import pytest

from jaxfair.data import _loading, _rules
from jaxfair.data._dataset import Provenance
from jaxfair.data._files import KnownFile
from jaxfair.data._sets.text_form import text_form
from jaxfair.data._spec import Facts, Figure, Spec

TOY_TEXT = (
  "id,age,sex,race,job,owns\n"
  "1,20,F,black,cook,yes\n"
  "2,30,F,white,,no\n"
  "3,40,M,white,nurse,no\n"
  "4,?,M,white,cook,yes\n"
  "5,60,M,black,cook,no\n"
)
TOY_SUM = hashlib.sha256(TOY_TEXT.encode()).hexdigest()


@pytest.fixture
def toy_text():
  """What the file of the set `toy` says."""
  return TOY_TEXT


@pytest.fixture
def toy(monkeypatch, tmp_path):
  """Registers the set `toy`; files are looked for in fresh folders only."""
  monkeypatch.setenv("JAXFAIR_DATA", str(tmp_path / "variable"))
  monkeypatch.setenv("JAXFAIR_CACHE", str(tmp_path / "cache"))
  spec = Spec(
    name="toy",
    source=Provenance("Toy", "free", "tests", ("small",)),
    folders=("toy", "toys"),
    forms=(text_form(KnownFile("toy.csv", TOY_SUM)),),
    labels={
      "owns": _rules.values("owns", {"no": "no", "yes": "yes"}),
      "cook": _rules.against("job", "cook", ("other", "cook")),
    },
    groups={
      "sex": _rules.values("sex"),
      "race": _rules.values("race"),
      "age": _rules.bins("age", (35,)),
      "white_only": _rules.values("race", {"white": "white"}),
    },
    facts=Facts(
      (3, 2), {"sex": (2, 3), "race": (2, 3)}, (Figure("oldest", lambda t: float(t["age"][4]), 60),)
    ),
    drop=("id",),
  )
  monkeypatch.setitem(_loading.SPECS, "toy", spec)
  return spec


@pytest.fixture
def toy_file(toy, tmp_path):
  """The toy set, lying in the folder of $JAXFAIR_DATA."""
  path = tmp_path / "variable" / "toy" / "toy.csv"
  path.parent.mkdir(parents=True)
  path.write_text(TOY_TEXT)
  return path
