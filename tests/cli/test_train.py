"""`jaxfair train`: two commands from a table to predictions, and what it refuses in one line."""

import csv
import json
import re

import numpy as np
import pytest

from helpers import hiring

SIZE = hiring.SIZE


@pytest.fixture
def people(tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path.parent / f"{tmp_path.name}-state"))
  return hiring.write(tmp_path / "people.csv")


ROLES = ("--label", "hired", "--group", "sex")
USUAL = (*ROLES, "--epsilon", "1")


@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    (("--label", "hird", "--group", "sex", "--epsilon", "1"), r"'hird' is not a column.*hired"),
    (("--label", "hired", "--group", "gender", "--epsilon", "1"), r"'gender' is not a column"),
    (("--group", "sex", "--epsilon", "1"), "--label is missing: name the column"),
    (("--label", "hired", "--epsilon", "1"), "--group is missing: name the column"),
    (ROLES, "--epsilon is missing: pass how much may be spent, such as 1"),
    ((*ROLES, "--epsilon", "0"), r"epsilon.*0.*above 0|above 0.*"),
    ((*USUAL, "--range", "age=60:20"), "must rise: write age=20:60"),
    ((*USUAL, "--range", "age=old"), "a column and two numbers, such as age=17:90"),
    ((*USUAL, "--range", "height=1:2"), "'height' is not a column"),
    ((*USUAL, "--method", "telepathy"), r"'telepathy'.*dp_sgd"),
    ((*USUAL, "--method", "pate"), "needs public people.*--public"),
    ((*USUAL, "--method", "plain"), "plain.*no guarantee.*dp_sgd"),
    ((*USUAL, "--scaler", "magic"), "scaling.*magic.*private"),
    ((*USUAL, "--scaler", "declared"), r"no range is declared for age, pay"),
    ((*USUAL, "--public", "nobody.csv"), "no such file; name one, or a share such as 0.1"),
    ((*USUAL, "--public", "0.8"), "leave people to train on"),
    ((*USUAL, "--delta", "0.1"), "publish whole records.*use at most 0.0001"),
    ((*USUAL, "--method", "pate", "--tune", "3"), "--tune is for dp_sgd, not for pate"),
    ((*USUAL, "--set", "settings.dp_sgd.stesp=3"), "stesp.*steps"),
    (("--label", "job", "--group", "sex", "--epsilon", "1"), "'job'.*3.*positive"),
  ],
)
def test_a_mistake_is_one_line_with_the_remedy(refused, people, arguments, told):
  line = refused("train", people, *arguments)
  assert re.search(told, line), line


def test_a_wrong_source_names_the_sets(refused):
  assert "is neither a file nor a named data set" in refused("train", "peeple.csv", *USUAL)
  assert "adult" in refused("train", "adlut", "--epsilon", "1")


def test_a_group_of_one_person_is_refused(refused, tmp_path):
  sexes = ["F", "M"] * (SIZE // 2 - 1) + ["F", "X"]
  path = hiring.write(tmp_path / "people.csv", sex=sexes)
  assert re.search(r"group.*X.*1", refused("train", path, *USUAL))


def test_a_config_of_another_study_is_refused(refused, people):
  told = refused("train", people, *USUAL, "--config", "audit/dp_sgd")
  assert "config of study 'audit'; name one of 'methods'" in told


SMALL = ("--epsilon", "8", "--set", "seeds=2", "--set", "settings.plain.steps=100")


@pytest.mark.slow
def test_two_commands_from_a_table_to_predictions(jaxfair, people, tmp_path):
  ended = jaxfair("train", people, *ROLES, *SMALL, "--out", "out")
  assert ended.code == 0, ended.err
  assert ended.out.startswith("epsilon ")  # the guarantee; nothing is red before it
  for told in ("released model", "majority class", "without privacy", "Who pays: ", "everyone"):
    assert told in ended.out
  assert "NOT FOR RELEASE" not in ended.out
  (command,) = [line for line in ended.out.splitlines() if line.startswith("predict: ")]
  words = command.split()[1:]
  assert words == ["jaxfair", "predict", "out/release", str(people)]
  predicted = jaxfair(*words[1:]).out.splitlines()
  assert len(predicted) == SIZE + 1
  with open(people) as file:
    truth = [row["hired"] for row in csv.DictReader(file)]
  right = [line.split(",")[1] == y for line, y in zip(predicted[1:], truth, strict=True)]
  assert np.mean(right) > 0.8
  card = json.loads((tmp_path / "out" / "release" / "model_card.json").read_text())
  assert card["privacy"]["epsilon"] <= 8
  assert not any("scaling of features" in what for what in card["privacy"]["not_protected"])
  assert not list((tmp_path / "out").rglob("*secret*"))
  # The same command finds all of it; another one is refused.
  again = jaxfair("train", people, *ROLES, *SMALL, "--out", "out")
  assert (again.code, again.out) == (0, ended.out)
  other = jaxfair("train", people, *USUAL, "--out", "out")
  assert other.code == 2
  assert "--out" in other.err


@pytest.mark.slow
def test_public_people_declared_ranges_and_a_useless_model(jaxfair, people, tmp_path):
  rng = np.random.default_rng(5)
  guess = rng.choice(["yes", "no"], SIZE).tolist()
  path = hiring.write(tmp_path / "guess.csv", hired=guess)
  hiring.write(tmp_path / "public.csv", size=100)
  ended = jaxfair(
    *("train", path, *ROLES, *SMALL, "--out", "guess", "--public", "public.csv", "--seed", "3")
  )
  assert ended.code == 0, ended.err
  assert "not better than a constant" in ended.out.splitlines()[0]
  assert "NOT FOR RELEASE" in ended.out
  ranges = ("--range", "age=20:60", "--range", "pay=0:6000")
  ended = jaxfair("train", people, *ROLES, *SMALL, "--out", "declared", *ranges, "--seed", "3")
  assert "range of age, pay was declared" in ended.out
