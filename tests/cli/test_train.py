"""`jaxfair train`: two commands from a table to predictions, and what it refuses in one line."""

import csv
import functools
import json
import re

import jax
import numpy as np
import pytest

from helpers import hiring
from jaxfair import accounting, checks, data, methods, training
from jaxfair.cli import _train_on_disk
from jaxfair.methods import _method

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
    (ROLES, "--epsilon is missing: pass the privacy budget, such as 1"),
    ((*ROLES, "--epsilon", "0"), r"epsilon.*0.*above 0|above 0.*"),
    ((*USUAL, "--range", "age=60:20"), "must be increasing: write age=20:60"),
    ((*USUAL, "--range", "age=old"), "a column and two numbers, such as age=17:90"),
    ((*USUAL, "--range", "height=1:2"), "'height' is not a column"),
    ((*USUAL, "--method", "telepathy"), r"'telepathy'.*dp_sgd"),
    ((*USUAL, "--method", "pate"), "needs public people.*--public"),
    ((*USUAL, "--method", "plain"), "plain.*no guarantee.*dp_sgd"),
    ((*USUAL, "--scaler", "magic"), "scaling.*magic.*private"),
    ((*USUAL, "--scaler", "declared"), r"no range is declared for age, pay"),
    ((*USUAL, "--public", "nobody.csv"), "no such file; pass a file, or a share such as 0.1"),
    ((*USUAL, "--public", "0.8"), "leave people to train on"),
    ((*USUAL, "--delta", "0.1"), "publishing whole records.*use at most 0.0001"),
    ((*USUAL, "--method", "pate", "--tune", "3"), "--tune is for dp_sgd, not for pate"),
    ((*USUAL, "--set", "settings.dp_sgd.stesp=3"), "stesp.*steps"),
    (
      ("--label", "job", "--group", "sex", "--epsilon", "1"),
      r"'job'.*3.*pass --positive '\w+' for .* or --set data.multiclass=true for one class",
    ),
    (
      ("--label", "hired", "--group", "pay", "--epsilon", "1"),
      r"pass --set 'data.bins=\[25, 60\]', with your own edges, to cut",
    ),
  ],
)
def test_a_mistake_is_one_line_with_the_remedy(refused, people, arguments, told):
  line = refused("train", people, *arguments)
  assert re.search(told, line), line


def test_a_wrong_source_names_the_sets(refused):
  assert "there is no file peeple.csv; check the path" in refused("train", "peeple.csv", *USUAL)
  assert "is neither a file nor a named data set" in refused("train", "peeple", *USUAL)
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
  # Both figures of the card are for one delta: the model's, and that of all releases together.
  [spent] = card["privacy"]["all_spending"]
  assert f"epsilon {card['privacy']['epsilon']:.4g}, delta {card['privacy']['delta']:g} " in spent
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


@pytest.mark.parametrize(
  ("arguments", "told"),
  [
    ((), "people.csv' is not known; use a .parquet, .arrow or .feather file"),
    (("--public", "people.csv"), "people.csv' is not known; use a .parquet, .arrow or .feather"),
    (("--scaler", "public"), "scaling='public' needs public people"),
    (("--public", "0.1"), "name a file of public people"),
    (
      ("--public", "people.csv", "--method", "pate"),
      "pate reads all people at once.*such as dp_sgd",
    ),
    (("--public", "people.csv", "--tune", "3"), "--tune needs people in memory"),
    (("--public", "people.csv", "--devices", "many"), "--devices many: pass a number of devices"),
    (("--public", "people.csv", "--set", "seeds=3"), "--set seeds: use settings.dp_sgd.KEY=VALUE"),
  ],
)
def test_people_on_disk_that_cannot_be_trained_on(refused, people, arguments, told):
  line = refused("train", people, *USUAL, "--on-disk", *arguments)
  assert re.search(told, line), line


def test_ranges_that_are_missing_are_told_before_people_are_rewritten(refused, people, tmp_path):
  pandas = pytest.importorskip("pandas")
  pytest.importorskip("pyarrow")
  pandas.read_csv(people).to_parquet(tmp_path / "big.parquet")
  line = refused("train", "big.parquet", *USUAL, "--on-disk", "--scaler", "declared")
  assert "no range is declared for age, pay" in line


@pytest.mark.slow
def test_people_on_disk_and_a_mesh(jaxfair, people, tmp_path):
  """The released parameters are those of the same people in memory."""
  pandas = pytest.importorskip("pandas")
  pytest.importorskip("pyarrow")
  pandas.read_csv(people).to_parquet(tmp_path / "big.parquet")
  hiring.write(tmp_path / "public.csv", size=80)
  few = ("--set", "settings.dp_sgd.steps=5", "--set", "settings.dp_sgd.batch_size=50")
  more = ("--epsilon", "8", *few, "--devices", "all", "--out", "out", "--seed", "3")
  asked = ("train", "big.parquet", *ROLES, *more, "--on-disk", "--public", "public.csv")
  ended = jaxfair(*asked)
  assert ended.code == 0, ended.err
  for told in ("released model", "without privacy", "everyone", "predict:    jaxfair predict"):
    assert told in ended.out
  assert "taken from 80 public people" in ended.out
  assert jaxfair(*asked).out == ended.out  # finds all of it

  # By hand: encoded and scaled in memory, drawn in 64 shards on one device.
  public = data.from_csv("public.csv", label="hired", group="sex")
  whole = data.from_csv(people, encoder=public.encoder)
  drawn = np.random.default_rng(np.asarray(jax.random.key_data(jax.random.key(0))))
  rest = np.delete(np.arange(SIZE), drawn.choice(SIZE, SIZE // 5, replace=False, shuffle=False))
  x = data.fit_scaler(public.examples.x).apply(whole.examples.x)[rest]
  x = (x / np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))).astype(np.float32)
  settings = methods.get("dp_sgd").settings(steps=5, batch_size=50, shards=64)
  sizes = _method.Sizes(len(rest), 80, x.shape[1:], 2, 2)
  plan = methods.get("dp_sgd").plan(settings, sizes, accounting.Budget(8.0, 1e-4))
  by_hand = whole.examples.take(rest)._replace(x=x)
  fitted = training.dp_sgd(plan.model, plan.loss, by_hand, plan.config, key=jax.random.key(3))
  released = methods.load(tmp_path / "out" / "release").params
  for one, other in zip(jax.tree.leaves(fitted.params), jax.tree.leaves(released), strict=True):
    np.testing.assert_allclose(one, other, atol=1e-5)

  stored = tmp_path / "out" / "people"
  line = jaxfair("release", "--data", stored, "--method", "dp_sgd", *ROLES, "--epsilon", "1").err
  assert "already determines group, label; leave it out" in line
  plain = ("release", "--data", stored, "--method", "dp_sgd", "--epsilon", "1", "--dry-run")
  assert "Means and ranges of the features are bought: epsilon 0.0" in jaxfair(*plain).out


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["big.parquet", "public.csv"])
def test_people_on_disk_are_those_of_the_file_that_is_named(tmp_path, changed):
  """A second call must not train on the people of another file, or encoded in another way."""
  pandas = pytest.importorskip("pandas")
  pytest.importorskip("pyarrow")
  own, public = tmp_path / "big.parquet", tmp_path / "public.csv"
  table = {"csv": str(own), "label": "hired", "group": "sex"}
  stored = functools.partial(
    _train_on_disk._stored, table, {"public_csv": str(public)}, tmp_path / "out"
  )
  for path, size in ((tmp_path / "people.csv", 100), (public, 80)):
    hiring.write(path, size=size)
  pandas.read_csv(tmp_path / "people.csv").to_parquet(own)
  assert stored() == stored()  # a run that is continued
  if changed == "public.csv":
    known = pandas.read_csv(public)
    known[known["job"] != "cook"].to_csv(public, index=False)
  else:
    pandas.read_csv(tmp_path / "people.csv").iloc[1:].to_parquet(own)
  with pytest.raises(checks.ArgumentError, match="choose another folder"):
    stored()
