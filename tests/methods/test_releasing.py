"""The order of a release: charge, compute, write, erase."""

import dataclasses
import shutil

import jax
import numpy as np
import pytest

from jaxfair import accounting, methods, training
from jaxfair.accounting import Budget, DatasetLedger
from jaxfair.accounting._guarantee import BudgetError
from jaxfair.training import _checkpoints
from jaxfair.types import Examples

BUDGET = Budget(4.0, 1e-5)
SLOW = pytest.mark.slow
TEACHERS = {"num_teachers": 4, "queries": 20}
SMALL = {"output_perturbation": {}, "soft_pate": TEACHERS, "pate": TEACHERS, "sf_pate_s": TEACHERS}
METHOD = methods.get("output_perturbation")


@pytest.fixture
def people(tmp_path):
  rng = np.random.default_rng(0)
  y = (rng.random(80) < 0.5).astype(np.int32)
  x = (rng.normal(size=(80, 2)) + y[:, None]).astype(np.float32)
  return methods.Population(
    Examples(x, y, y), ("no", "yes"), ("a", "b"), ledger=DatasetLedger("toy", tmp_path / "book")
  )


@pytest.fixture
def plan(people):
  return METHOD.plan(METHOD.settings(), people.sizes, BUDGET)


def test_charges_are_on_disk_before_anything_is_computed(people, plan, tmp_path, monkeypatch):
  seen = []

  def computing(*args, **options):
    own = accounting.Ledger.read(tmp_path / "run" / "work" / "ledger.jsonl")
    seen.append([entry.event for entry in own])
    seen.append([spent.releases for spent in people.ledger.spent(1e-5)])
    raise KeyboardInterrupt

  monkeypatch.setattr(training, "output_perturbation", computing)
  for _ in range(2):  # the second call continues: one charge in all
    with pytest.raises(KeyboardInterrupt):
      METHOD.release(plan, people, folder=tmp_path / "run")
    assert seen[-2:] == [[plan.event], [1]]


def test_a_data_set_that_cannot_pay_is_refused_before_anything_is_written(people, plan, tmp_path):
  relation = accounting.Relation.REPLACE_ONE
  people.ledger.set_budget((1.0, 1e-4), relation=relation)
  with pytest.raises(BudgetError, match="does not cover"):
    METHOD.release(plan, people, folder=tmp_path / "run")
  assert not (tmp_path / "run").exists()
  assert all(s.releases == 0 for s in people.ledger.spent(1e-5))


@pytest.mark.slow
def test_two_releases_are_two_charges(people, plan, tmp_path):
  for name in ("first", "second"):
    METHOD.release(plan, people, folder=tmp_path / name)
  (spent,) = people.ledger.spent(3e-5)
  assert spent.releases == 2
  assert spent.guarantee.epsilon > BUDGET.epsilon


def test_another_budget_does_not_continue_a_release(people, plan, tmp_path):
  METHOD.release(plan, people, folder=tmp_path / "run")
  more = METHOD.plan(METHOD.settings(), people.sizes, Budget(5.0, 1e-5))
  with pytest.raises(_checkpoints.CheckpointError, match="epsilon"):
    METHOD.release(more, people, folder=tmp_path / "run")


def test_other_people_do_not_continue_a_release(people, plan, tmp_path):
  METHOD.release(plan, people, folder=tmp_path / "run")
  private = people.private._replace(y=1 - people.private.y)
  others = dataclasses.replace(people, private=private)
  with pytest.raises(_checkpoints.CheckpointError, match="other data"):
    METHOD.release(plan, others, folder=tmp_path / "run")


def test_what_was_written_down_is_not_drawn_again(people, plan, tmp_path, monkeypatch):
  """A kill between the parameters and the record that they are finished: anybody may see them."""
  folder, record = tmp_path / "run", _checkpoints.RECORD
  write = _checkpoints.write_whole

  def killed(path, content, **options):
    if path.name == record and '"finished"' in content:
      raise KeyboardInterrupt
    write(path, content, **options)

  with monkeypatch.context() as patch:
    patch.setattr(_checkpoints, "write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
      METHOD.release(plan, people, folder=folder)
  with np.load(folder / "work" / _checkpoints.RELEASED) as file:
    seen = [file[name] for name in file.files]
  made = METHOD.release(plan, people, folder=folder)
  for one, other in zip(seen, jax.tree.leaves(made.params), strict=True):
    np.testing.assert_array_equal(one, other)
  assert [path.name for path in (folder / "work" / "private").iterdir()] == [record]
  (spent,) = people.ledger.spent(1e-5)
  assert spent.releases == 1


@pytest.mark.parametrize(
  "name",
  [
    "output_perturbation",
    "soft_pate",
    *(pytest.param(n, marks=SLOW) for n in ("pate", "sf_pate_s")),
  ],
)
def test_a_restored_backup_draws_no_other_noise_for_one_charge(people, tmp_path, name, monkeypatch):
  """A copy of the folder, made when it was charged, gives the release that was seen before."""
  method, folder, copy = methods.get(name), tmp_path / "run", tmp_path / "copy"
  public = people.private.take(np.arange(40))
  people = dataclasses.replace(people, public=public)
  settings = method.settings(**SMALL[name])
  plan, compute = method.plan(settings, people.sizes, BUDGET), type(method)._release

  def copied(*arguments):
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    return compute(*arguments)

  with monkeypatch.context() as patch:
    patch.setattr(type(method), "_release", copied)
    first = method.release(plan, people, folder=folder)
  shutil.rmtree(folder)
  again = method.release(plan, people, folder=copy)
  for one, other in zip(*map(jax.tree.leaves, (first.params, again.params)), strict=True):
    np.testing.assert_array_equal(one, other)
  (spent,) = people.ledger.spent(1e-5)
  assert spent.releases == 1
  assert not list(copy.rglob("secret_key*"))
  other = method.release(plan, people, folder=tmp_path / "other")
  assert not np.array_equal(*(jax.tree.leaves(one.params)[0] for one in (first, other)))
