"""Published figures: charged first, once, with the noise that is charged."""

import json
import math
import shutil

import numpy as np
import pytest

from jaxfair import accounting
from jaxfair.accounting import DatasetLedger, Relation
from jaxfair.accounting._locked_file import LedgerError
from jaxfair.methods import _noisy_figures
from jaxfair.methods._noisy_figures import buy_figures, plan_figures, share
from jaxfair.privacy import exact
from jaxfair.types import Examples

from .test_released import released

RNG = np.random.default_rng(5)
PARAMS = {"w": np.float32([[-1, 1], [1, -1], [0, 0]]), "b": np.zeros(2, np.float32)}
OWN = released("logistic", params=PARAMS, group_names=("a", "b"), abstention=None)
X = RNG.normal(5.0, 20.0, (300, 3)).astype(np.float32)
TEST = Examples(X, RNG.integers(0, 2, 300), (RNG.random(300) < 0.4).astype(np.int32))


@pytest.mark.parametrize("relation", [Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE])
def test_the_noise_is_what_is_charged(relation):
  plan = plan_figures(epsilon=0.5, delta=1e-5, relation=relation)
  far = 2 if relation is Relation.REPLACE_ONE else 1  # cells that one person moves
  assert plan.event.rho == pytest.approx(far / (2 * plan.sigma**2), rel=1e-9)
  assert 0.4 < plan.guarantee.epsilon <= 0.5


def test_neighbors_move_the_table_by_what_is_charged():
  table = _noisy_figures._counts(OWN, TEST)
  assert table.sum() == 300
  for relation, other in (
    (Relation.ADD_OR_REMOVE_ONE, TEST.take(np.arange(299))),
    (Relation.REPLACE_ONE, TEST._replace(x=np.concatenate([TEST.x[:-1], -TEST.x[-1:]]))),
    (Relation.ATTRIBUTE, TEST._replace(group=np.append(TEST.group[:-1], 1 - TEST.group[-1]))),
  ):
    moved = np.linalg.norm((_noisy_figures._counts(OWN, other) - table).ravel())
    assert moved == pytest.approx(_noisy_figures.moves(relation))


def test_counts_have_noise_of_that_size(tmp_path):
  """Each is off by a discrete Gaussian: the mean square of 800 lies within 6 standard errors."""
  plan = plan_figures(epsilon=2.0, delta=1e-5, relation=Relation.ADD_OR_REMOVE_ONE)
  source, table = exact.seeded(1), _noisy_figures._counts(OWN, TEST)
  drawn = []
  for i in range(100):
    buy_figures(plan, OWN, TEST, folder=tmp_path / str(i), ledger=None, source=source)
    text = (tmp_path / str(i) / "published_figures" / "figures.json").read_text()
    drawn.append(np.array(json.loads(text)["counts"]) - table)
  ratio = np.mean(np.square(drawn)) / plan.sigma**2
  assert abs(ratio - 1) < 6 * math.sqrt(2 / np.size(drawn))


def test_they_are_charged_before_they_are_drawn_and_bought_once(tmp_path):
  plan = plan_figures(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE)
  book = DatasetLedger("people", tmp_path / "book")

  def stopped(size):
    (spent,) = book.spent(1e-5)
    assert spent.releases == 1
    raise KeyboardInterrupt

  options = {"folder": tmp_path / "run", "ledger": book}
  with pytest.raises(KeyboardInterrupt):
    buy_figures(plan, OWN, TEST, **options, source=stopped)
  assert not (tmp_path / "run" / "published_figures").exists()
  first = buy_figures(plan, OWN, TEST, **options).read_text()
  assert buy_figures(plan, OWN, TEST, **options, source=stopped).read_text() == first
  (spent,) = book.spent(1e-5)
  assert spent.releases == 1
  own = accounting.Ledger.read(tmp_path / "run" / "work" / "figures" / "ledger.jsonl")
  assert [entry.event for entry in own] == [plan.event]
  assert str(plan.guarantee) in first
  assert "a model that always says" in first


def test_shares_cover_the_truth_as_often_as_they_say():
  rng = np.random.default_rng(0)
  covered = 0
  for _ in range(2000):
    cells = rng.multinomial(400, [0.4, 0.1, 0.15, 0.35]) + rng.normal(0, 8, 4).round()
    low, high = share(cells[0] + cells[3], cells.sum(), 2, 64.0).split(" [")[1][:-1].split(", ")
    covered += float(low) <= 0.75 <= float(high)
  assert abs(covered / 2000 - 0.95) < 0.02
  assert share(3, 10, 2, 64.0) == "too few people for the noise"


def test_figures_that_were_removed_are_not_drawn_again_for_their_charge(tmp_path):
  plan = plan_figures(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE)
  book, run = DatasetLedger("people", tmp_path / "book"), tmp_path / "run"
  options = {"folder": run, "ledger": book}
  buy_figures(plan, OWN, TEST, **options)
  shutil.rmtree(run / "published_figures")
  buy_figures(plan, OWN, TEST, **options)
  (spent,) = book.spent(1e-5)
  assert spent.releases == 2


def test_a_restored_backup_gives_the_same_figures(tmp_path, monkeypatch):
  """Its noise follows from a secret and the counts; other counts are charged for themselves."""
  plan = plan_figures(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE)
  book, run = DatasetLedger("people", tmp_path / "book"), tmp_path / "run"
  options = {"folder": run, "ledger": book}

  def stopped(path):
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(_noisy_figures._whole_files, "new_folder", stopped)
    with pytest.raises(KeyboardInterrupt):
      buy_figures(plan, OWN, TEST, **options)
  shutil.copytree(run, tmp_path / "copy")
  first = buy_figures(plan, OWN, TEST, **options).read_text()
  assert not list(run.rglob("secret_key*"))
  shutil.rmtree(run)
  shutil.copytree(tmp_path / "copy", run)
  assert buy_figures(plan, OWN, TEST, **options).read_text() == first
  (spent,) = book.spent(1e-5)
  assert spent.releases == 1
  shutil.rmtree(run)
  shutil.copytree(tmp_path / "copy", run)
  buy_figures(plan, OWN, TEST.take(np.arange(299)), **options)
  (spent,) = book.spent(1e-5)
  assert spent.releases == 2


def test_two_processes_do_not_draw_figures_for_one_charge(tmp_path, monkeypatch):
  plan = plan_figures(epsilon=1.0, delta=1e-5, relation=Relation.REPLACE_ONE)
  count = _noisy_figures._counts

  def meanwhile(*people):
    monkeypatch.setattr(_noisy_figures, "_counts", count)
    with pytest.raises(LedgerError, match="is being written by process"):
      buy_figures(plan, OWN, TEST, folder=tmp_path, ledger=None)
    return count(*people)

  monkeypatch.setattr(_noisy_figures, "_counts", meanwhile)
  buy_figures(plan, OWN, TEST, folder=tmp_path, ledger=None)
