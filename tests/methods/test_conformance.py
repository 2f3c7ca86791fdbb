"""Every method goes through the same tests; a new one adds a row.

A row names settings that train in a moment. What a method needs, what it
protects and whether it can be traced is read from the method itself.
"""

import csv
import dataclasses
import functools
import json
import pathlib
import subprocess
import sys
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, data, methods
from jaxfair.accounting import Budget, DatasetLedger
from jaxfair.experiments import _config as configs
from jaxfair.experiments import _releases
from jaxfair.methods import _method
from jaxfair.methods._serving import serve
from jaxfair.types import Examples

BUDGET = Budget(20.0, 1e-4)  # 300 people are few for teachers
KEY = jax.random.key(3)
NAMES = {"class_names": ("no", "yes"), "group_names": ("a", "b")}


class Row(NamedTuple):
  """A method with settings that train in a moment."""

  method: str
  settings: dict[str, Any]
  slow: bool = True


STEPS = {"steps": 30, "batch_size": 60}
ROWS = [
  Row("dp_sgd", STEPS, slow=False),
  Row("dp_sgd_global", {**STEPS, "bound": 2.0}),
  Row("dp_sgd_f", {**STEPS, "count_noise": 20.0}),
  Row("dp_sgd_parity", {**STEPS, "max_gap": 0.3, "count_noise": 40.0}),
  Row("fair_dp_sgd", {**STEPS, "lam": 0.5}),
  Row("fair_dp_sgd", {**STEPS, "lam": 0.5, "placement": "inside"}),
]
TEACHERS = {
  "num_teachers": 15,
  "queries": 25,
  "teacher_steps": 40,
  "student_steps": 60,
  "learning_rate": 0.1,
}
MARGIN = {**TEACHERS, "max_gap": 0.5, "min_count": 3}
FAIR = {
  "rounds": 6,
  "steps_per_round": 5,
  "plain_steps": 40,
  "learning_rate": 0.05,
  "batch_size": 100,
}
ATTRIBUTE = {**FAIR, "num_teachers": 10, "queries": 50, "teacher_steps": 24, "teacher_rate": 0.1}
ROWS += [
  Row("tuned_dp_sgd", {**STEPS, "mean_runs": 2.0, "rate_factors": (1.0,), "step_factors": (1.0,)}),
  Row("output_perturbation", {"weight_decay": 0.03, "row_norm": 2.0}),
  Row("pate", TEACHERS),
  Row("confident_pate", {**TEACHERS, "answers": 20}),
  Row("fairpate", MARGIN),
  Row("fairpate", {**MARGIN, "guard": "own", "choice": "allowed"}),
  Row("pate_s_pre", MARGIN),
  Row("pate_s_in", {**TEACHERS, "lam": 0.2}),
  Row("soft_pate", {}, slow=False),
  Row("fair_soft_pate", {"max_gap": 0.5, "min_count": 3}),
  Row("sf_pate_s", ATTRIBUTE),
  Row("sf_pate_t", ATTRIBUTE),
  Row("sf_pate_t", {**ATTRIBUTE, "proximity": 0.0}),
  Row("randomized_groups", FAIR),
  Row("randomized_groups", {**FAIR, "corrected": True}),
  Row("private_lagrangian", FAIR),
]
BASELINES = [
  Row("plain", {"steps": 60, "learning_rate": 0.05}),
  Row("majority_class", {}, slow=False),
]


def cases(rows):
  return [
    pytest.param(
      row,
      id="-".join([row.method, *map(str, filter(_told, row.settings.values()))]),
      marks=[pytest.mark.slow] if row.slow else [],
    )
    for row in rows
  ]


def _told(value):
  return isinstance(value, str | bool) or value == 0


def easy(size, seed):
  """People whose class is easy to tell; a third of them are in class 1."""
  rng = np.random.default_rng(seed)
  y = (rng.random(size) < 1 / 3).astype(np.int32)
  group = (rng.random(size) < 0.4 + 0.2 * y).astype(np.int32)
  x = rng.normal(size=(size, 3)) + np.stack([3.0 * y, group, 0 * y], axis=1)
  return Examples(x.astype(np.float32), y, group)


def population(tmp_path=None, **changes):
  raw = easy(60, 1)
  scaler = data.fit_scaler(raw.x)
  public, private = (people._replace(x=scaler.apply(people.x)) for people in (raw, easy(300, 2)))
  book = tmp_path and DatasetLedger("easy", tmp_path / "book")
  made = methods.Population(
    private=private, public=public, scaler=scaler, ledger=book, name="easy", **NAMES
  )
  return dataclasses.replace(made, **changes)


def planned(row, people, budget=BUDGET):
  method = methods.get(row.method)
  own = None if method.protects is None else budget
  return method, method.plan(method.settings(**row.settings), people.sizes, own)


def same(first, second):
  first, second = map(jax.tree.leaves, (first, second))
  return all(map(np.array_equal, first, second))


def test_every_method_has_a_row():
  assert {row.method for row in ROWS + BASELINES} == set(methods.METHODS)


@pytest.mark.parametrize("row", cases(ROWS + BASELINES))
def test_refuses_before_any_work(row):
  people = population()
  method = methods.get(row.method)
  settings = method.settings(**row.settings)
  assert method.needs <= {"public", "groups", "public_groups"}
  if method.protects is not None:
    for budget in (None, Budget(0.0, 1e-5), Budget(1.0, 0.0), Budget(1.0, 2)):
      with pytest.raises(checks.ArgumentError, match=r"budget|epsilon|delta"):
        method.plan(settings, people.sizes, budget)
  if "public" in method.needs:
    with pytest.raises(checks.ArgumentError, match="needs public people"):
      method.plan(settings, people.sizes._replace(public=0), BUDGET)
  if method.needs & {"groups", "public_groups"}:
    with pytest.raises(checks.ArgumentError, match="there is only one"):
      method.plan(settings, people.sizes._replace(groups=1), BUDGET)
  with pytest.raises(checks.ArgumentError, match="settings"):
    method.plan(object(), people.sizes, BUDGET)
  with pytest.raises(checks.ArgumentError, match="network"):
    method.settings(network="telepathy")


@pytest.mark.parametrize("row", cases(ROWS))
def test_is_never_over_budget_and_says_what_it_promises(row):
  people = population()
  for budget in (BUDGET, Budget(0.5, 1e-6)):
    method, plan = planned(row, people, budget)
    spent = accounting.composed_guarantee(
      [plan.event], delta=budget.delta, relation=method.relation
    )
    assert 0 < spent.epsilon <= budget.epsilon * (1 + 1e-9)
    told = plan.guarantee.guarantee
    # What is published covers what is charged.
    assert spent.epsilon <= told.epsilon * (1 + 1e-9)
    assert told.epsilon <= budget.epsilon * (1 + 1e-9)
    assert told.delta <= budget.delta
    assert told.relation is method.relation
  text = str(plan.guarantee)
  meaning = {
    accounting.Relation.ADD_OR_REMOVE_ONE: "added or removed",
    accounting.Relation.REPLACE_ONE: "replaced by another",
    accounting.Relation.ATTRIBUTE: "changed in the private attribute alone",
  }
  assert "one person" in text
  assert meaning[method.relation] in text
  assert "public" in "".join(plan.guarantee.not_protected)
  assert plan.says


@pytest.mark.parametrize("row", cases(ROWS + BASELINES))
def test_fit_is_pure(row):
  people = population()
  method, plan = planned(row, people)
  first, second = jax.random.split(KEY)
  one = method.fit(plan, people, key=first).params
  assert same(one, method.fit(plan, people, key=first).params)
  if not method.traceable:
    return
  many = jax.vmap(lambda key: method.fit(plan, people, key=key).params)(
    jax.numpy.stack([first, second])
  )
  two = method.fit(plan, people, key=second).params
  for i, own in enumerate((one, two)):
    # Sums of a batch in another order: a few units in the last place.
    mine = jax.tree.map(lambda leaf, i=i: leaf[i], many)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), mine, own)


@pytest.mark.parametrize("row", cases(ROWS))
def test_reads_what_it_needs_and_no_more(row):
  people = population()
  method, plan = planned(row, people)
  expected = method.fit(plan, people, key=KEY).params
  public, private = people.public, people.private
  public = public._replace(y=1 - public.y)  # labels of public people: never
  if "public_groups" not in method.needs:
    public = public._replace(group=1 - public.group)
  if "groups" not in method.needs:
    private = private._replace(group=1 - private.group)
  if "public" in method.needs:
    changed = dataclasses.replace(people, private=private, public=public)
  else:
    changed = dataclasses.replace(people, private=private, public=None)
  assert same(expected, method.fit(plan, changed, key=KEY).params)


class Run(NamedTuple):
  """A release that was interrupted before its model was written, and resumed.

  Attributes:
    people: whose ledger was charged.
    plan: what was planned.
    folder: of the release.
    released: the model.
    charged: what the data set's ledger held before the model was written.
  """

  people: methods.Population
  plan: methods.Plan
  folder: pathlib.Path
  released: methods.Released
  charged: list[Any]


def write_people(path, examples, *, label=True):
  """A table as people have it: words for classes and groups, columns in any order."""
  columns = {"c": examples.x[:, 2], "a": examples.x[:, 0], "note": ["new"] * examples.size}
  columns |= {"b": examples.x[:, 1], "kind": np.array(["left", "right"])[examples.group]}
  if label:
    columns |= {"won": np.array(["no", "yes"])[examples.y]}
    del columns["note"]
  with open(path, "w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
  """Releases a row's model once for all tests, as `jaxfair release CONFIG` does."""

  @functools.cache
  def run(name, settings):
    place = tmp_path_factory.mktemp("run")
    # Other people for each: a data set has one ledger.
    write_people(place / "people.csv", easy(400, 10 + run.cache_info().misses))
    table = {"method": name, "epsilon": BUDGET.epsilon, "delta": BUDGET.delta, "public": 60}
    table |= {"settings": dict(settings), "test": 40}
    people = {"csv": str(place / "people.csv"), "label": "won", "group": "kind"}
    text = configs.dump({"release": {**table, "data": people}})
    (place / "config.toml").write_text(text, encoding="utf-8")
    planned = _releases.plan_release(_releases.read_release(place / "config.toml", {}))
    method, plan = methods.get(name), planned.plan
    people = dataclasses.replace(planned.parted.population, ledger=planned.ledger)
    assert not people.ledger.spent(BUDGET.delta)  # a plan charges nothing
    charged = []

    def interrupted(own, folder):
      charged.extend(people.ledger.spent(BUDGET.delta))
      raise KeyboardInterrupt

    folder = place / "run"
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(methods.Released, "save", interrupted)
      with pytest.raises(KeyboardInterrupt):
        method.release(plan, people, folder=folder)
    assert not (folder / "release").exists()
    released = method.release(plan, people, folder=folder)
    return Run(people, plan, folder, released, charged)

  return lambda row: run(row.method, tuple(row.settings.items()))


@pytest.mark.parametrize("row", cases(ROWS))
def test_a_release_is_charged_once_before_the_model_is_written(row, run_of):
  run, relation = run_of(row), methods.get(row.method).relation
  (spent,) = run.charged
  assert spent.releases == 1
  assert 0 < spent.guarantee.epsilon <= BUDGET.epsilon * (1 + 1e-9)
  assert spent.guarantee.relation is relation
  assert run.people.ledger.spent(BUDGET.delta)[0].releases == 1
  ledger = accounting.Ledger.read(run.folder / "work" / "ledger.jsonl")
  assert [entry.event for entry in ledger] == [run.plan.event]
  with accounting.Ledger.open(ledger.path):
    pass  # nobody holds it any more
  answers = run.folder / "work" / "answers" / "ledger.jsonl"
  if answers.exists():  # charged by every batch: never more than was planned
    found, told = accounting.Ledger.read(answers), run.plan.guarantee.guarantee
    assert found.budget == BUDGET
    assert 0 < found.guarantee().epsilon <= told.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("row", cases(ROWS))
def test_a_release_leaves_nothing_that_undoes_its_noise(row, run_of):
  run = run_of(row)
  files = [path for path in run.folder.rglob("*") if path.is_file()]
  left = {str(path.relative_to(run.folder)) for path in files}
  assert not [name for name in left if "secret" in name or "step-" in name]
  private = {name for name in left if "private/" in name}
  assert private <= {"work/private/run.json"}
  assert {name for name in left if name.startswith("release/")} == {
    f"release/{name}"
    for name in (
      *("release.json", "arrays.npz", "sha256.json"),
      *("model_card.json", "model_card.md", "model_card.html"),
    )
  }
  record = json.loads((run.folder / "release" / "release.json").read_text())
  assert set(record) == {
    "format",
    "method",
    "settings",
    "network",
    "guarantee",
    "class_names",
    "group_names",
    "shape",
    "dtype",
    "encoder",
    "row_norm",
    "abstention",
    "data_name",
    "spending",
    "intended_use",
    "released_on",
    "versions",
  }
  with np.load(run.folder / "release" / "arrays.npz") as arrays:
    assert all(name.startswith(("params", "scaler.")) for name in arrays.files)
  assert run.released.guarantee.for_release
  assert "study only" not in str(run.released.guarantee)
  assert run.people.assumed_public
  assert set(run.people.assumed_public) <= set(run.released.guarantee.not_protected)


@pytest.mark.parametrize("row", cases(ROWS))
def test_the_same_call_finds_a_finished_release(row, run_of):
  run = run_of(row)
  method, settings = methods.get(row.method), run.plan.settings
  again = method.release(run.plan, run.people, folder=run.folder)
  assert same(again.params, run.released.params)
  other = dataclasses.replace(settings, hidden=(7,))
  plan = method.plan(other, run.people.sizes, BUDGET)
  with pytest.raises(checks.JaxfairError, match="choose another folder"):
    method.release(plan, run.people, folder=run.folder)


PREDICT = """
import sys
from jaxfair.cli import main
people, *folders = sys.argv[1:]
for folder in folders:
  sys.argv = ["jaxfair", "predict", folder, people, "--probabilities", "--out", folder + ".csv"]
  try:
    main()
  except SystemExit as ended:
    assert ended.code == 0, ended.code
"""


@pytest.mark.slow
def test_the_command_line_of_another_process_predicts_the_same_bits(run_of, tmp_path):
  new = easy(50, 9)
  write_people(tmp_path / "new.csv", new, label=False)
  runs = [run_of(row) for row in ROWS]
  folders = [str(run.folder / "release") for run in runs]
  done = subprocess.run(
    [sys.executable, "-c", PREDICT, str(tmp_path / "new.csv"), *folders],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  x = new.x[:, [2, 0, 1]]  # in the order of the table
  for run, folder in zip(runs, folders, strict=True):
    expected = serve(run.released, x, new.group)
    with open(f"{folder}.csv", encoding="utf-8", newline="") as file:
      found = list(csv.reader(file))[1:]
    names = [(*run.released.class_names, "")[label] for label in expected.labels]
    assert [row[1] for row in found] == names
    shown = expected.labels >= 0
    bits = np.array([row[2:] for row in found])[shown].astype(np.float32)
    np.testing.assert_array_equal(bits, expected.scores[shown])
  assert len({len(np.unique(run.released.predict(x))) for run in runs}) == 1  # no constants


@pytest.mark.parametrize("row", cases(ROWS))
def test_a_key_marks_the_model_as_not_for_release(row, tmp_path):
  people = population(tmp_path)
  method, plan = planned(row, people)
  found = method.release(plan, people, folder=tmp_path / "run", key=KEY)
  assert not found.guarantee.for_release
  assert "for study only" in str(found.guarantee)
  assert not people.ledger.spent(BUDGET.delta)
  assert same(found.params, method.fit(plan, people, key=KEY).params)


@pytest.mark.parametrize("row", cases(ROWS + BASELINES[:1]))
def test_beats_the_majority_class(row):
  people = population()
  method, plan = planned(row, people)
  params = method.fit(plan, people, key=KEY).params
  test = easy(400, 5)
  x = people.scaler.apply(test.x)
  if plan.row_norm is not None:
    x = data.bound_rows(x, plan.row_norm)
  logits = plan.model.apply(params, x)
  right = np.argmax(logits, axis=1) == test.y
  balanced = np.mean([right[test.y == label].mean() for label in (0, 1)])
  assert balanced > 0.75


@pytest.mark.parametrize("row", cases(BASELINES))
def test_baselines_are_not_released(row, tmp_path):
  people = population()
  method, plan = planned(row, people)
  assert plan.guarantee is None
  assert plan.event is None
  with pytest.raises(_method.NotReleasableError, match="without privacy"):
    method.release(plan, people, folder=tmp_path / "run")
  assert not (tmp_path / "run").exists()


def test_other_people_need_another_plan(tmp_path):
  people = population()
  method, plan = planned(ROWS[0], people)
  fewer = dataclasses.replace(people, private=easy(200, 2))
  with pytest.raises(checks.ArgumentError, match="plan again"):
    method.release(plan, fewer, folder=tmp_path / "run")
  assert not (tmp_path / "run").exists()


def test_names_are_taken_once():
  with pytest.raises(checks.ArgumentError, match="already"):
    methods.register(methods.get("dp_sgd"))
  with pytest.raises(checks.ArgumentError, match="dp_sgd"):
    methods.get("dp_sdg")
