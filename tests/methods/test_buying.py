"""A scaler that is bought for a release: charged first, once, and part of what is promised."""

import dataclasses
import json
import shutil

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, data, methods
from jaxfair.accounting import Budget, DatasetLedger, Relation, _guarantee
from jaxfair.accounting._locked_file import LedgerError
from jaxfair.methods import _buying, _preprocessing, _releasing

RNG = np.random.default_rng(0)
SIZE = 600
PEOPLE = data.from_frame(
  {
    "pay": RNG.normal(3000, 400, SIZE),
    "job": RNG.choice(["cook", "nurse"], SIZE),
    "sex": RNG.choice(["F", "M"], SIZE),
    "hired": RNG.choice(["no", "yes"], SIZE),
  },
  label="hired",
  group="sex",
)
WHOLE = Budget(1.0, 1e-5)
PLAN = methods.plan_preprocessing(PEOPLE.encoder, epsilon=0.1, delta=5e-6)


def bought(folder, ledger=None, **options):
  return _buying.buy_once(
    PLAN, PEOPLE.examples.x, folder=folder, budget=WHOLE, name="own", ledger=ledger, **options
  )


def test_it_is_charged_to_both_ledgers_before_a_bit_is_drawn(tmp_path, monkeypatch):
  book = DatasetLedger("own", tmp_path / "book")
  seen = []

  def watched(own, x, *, source):
    seen.append(len(list(accounting.Ledger.read(tmp_path / "run/preprocessing/ledger.jsonl"))))
    seen.append(book.spent(1e-5)[0].releases)
    raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(_preprocessing.PreprocessingPlan, "buy", watched)
    with pytest.raises(KeyboardInterrupt):
      bought(tmp_path / "run", book)
  assert seen == [1, 1]
  first = bought(tmp_path / "run", book)  # goes on, and is not charged again
  again = bought(tmp_path / "run", book)  # finds what was bought
  (spent,) = book.spent(1e-5)
  assert spent.releases == 1
  assert spent.guarantee.epsilon <= 0.1 * (1 + 1e-6)
  for one, other in zip(first.scaler, again.scaler, strict=True):
    np.testing.assert_array_equal(one, other)
  assert again.encoder == first.encoder
  x = PEOPLE.examples.x
  np.testing.assert_array_equal(first.apply(x), again.apply(x))
  other = bought(tmp_path / "other", book)
  assert not np.array_equal(other.scaler.center, first.scaler.center)


def test_two_processes_do_not_buy_twice_for_one_charge(tmp_path, monkeypatch):
  buy, drawn = _preprocessing.PreprocessingPlan.buy, []

  def meanwhile(own, x, *, source):
    drawn.append(1)
    if len(drawn) == 1:
      with pytest.raises(LedgerError, match="is being written by process"):
        bought(tmp_path)
    return buy(own, x, source=source)

  monkeypatch.setattr(_preprocessing.PreprocessingPlan, "buy", meanwhile)
  bought(tmp_path)
  assert drawn == [1]


def test_a_budget_that_does_not_pay_buys_nothing(tmp_path):
  book = DatasetLedger("own", tmp_path / "book")
  book.set_budget((0.01, 1e-5), relation=Relation.ADD_OR_REMOVE_ONE)
  with pytest.raises(_guarantee.BudgetError):
    bought(tmp_path / "run", book)
  assert not (tmp_path / "run" / "preprocessing" / "bought.json").exists()


def test_with_a_key_it_is_repeated_and_not_charged_to_the_data_set(tmp_path):
  book = DatasetLedger("own", tmp_path / "book")
  key = jax.random.key(3)
  one, two = (bought(tmp_path / name, book, key=key) for name in "ab")
  np.testing.assert_array_equal(one.scaler.center, two.scaler.center)
  assert book.spent(1e-5) == []


def test_the_model_s_guarantee_covers_what_was_bought(tmp_path):
  made = bought(tmp_path, key=jax.random.key(0))
  private = PEOPLE.examples._replace(x=made.apply(PEOPLE.examples.x))
  people = methods.Population(
    private=private,
    class_names=PEOPLE.class_names,
    group_names=PEOPLE.group_names,
    scaler=made.scaler,
    encoder=made.encoder,
    assumed_public=made.assumed_public,
    bought=PLAN.event,
  )
  method = methods.get("dp_sgd")
  plan = method.plan(method.settings(steps=5), people.sizes, Budget(0.9, 5e-6))
  start = jax.tree.map(np.asarray, plan.model.init(jax.random.key(0), private.x[0]))
  model = _releasing.publish(plan, people, start, tmp_path, for_release=False)
  told, alone = model.guarantee.guarantee, plan.guarantee.guarantee
  assert alone.epsilon < told.epsilon <= WHOLE.epsilon * (1 + 1e-9)
  assert told.delta == pytest.approx(WHOLE.delta)
  # Never below what composing both events by Renyi divergence shows at twice the delta.
  assert told.epsilon > alone.epsilon + 0.01
  without = dataclasses.replace(people, bought=None)
  (tmp_path / "plain").mkdir()
  other = _releasing.publish(plan, without, start, tmp_path / "plain", for_release=False)
  assert other.guarantee.guarantee == alone
  card = json.loads((tmp_path / "release" / "model_card.json").read_text())
  assert not any("scaling of features" in what for what in card["privacy"]["not_protected"])


def test_people_on_disk_are_charged_before_they_are_read(tmp_path):
  book = DatasetLedger("own", tmp_path / "book")
  charged = []

  class Stopped:
    size = SIZE

    def take(self, rows):
      charged.append(book.spent(1e-5)[0].releases)
      if len(charged) == 2:  # after a first look
        raise KeyboardInterrupt
      return PEOPLE.examples.take(rows)

    def fingerprint(self):
      return "people"

  def streamed(folder, **options):
    return _buying.buy_once(
      PLAN, Stopped(), folder=folder, budget=WHOLE, name="own", ledger=book, **options
    )

  with pytest.raises(KeyboardInterrupt):
    streamed(tmp_path / "run")
  assert charged == [1, 1]
  streamed(tmp_path / "run")  # goes on
  made = streamed(tmp_path / "run")  # finds what was bought
  assert book.spent(1e-5)[0].releases == 1
  seeded = streamed(tmp_path / "seeded", key=jax.random.key(3))
  in_memory = bought(tmp_path / "memory", key=jax.random.key(3))
  np.testing.assert_array_equal(seeded.scaler.center, in_memory.scaler.center)
  assert not np.array_equal(made.scaler.center, seeded.scaler.center)


def test_noise_of_a_seed_is_not_taken_for_a_release(tmp_path):
  book = DatasetLedger("own", tmp_path / "book")
  bought(tmp_path / "seeded", book, key=jax.random.key(3))  # stopped before its training began
  with pytest.raises(checks.ArgumentError, match="was begun with a fixed seed"):
    bought(tmp_path / "seeded", book)
  assert book.spent(1e-5) == []
  bought(tmp_path / "released", book)
  with pytest.raises(checks.ArgumentError, match="was begun without a fixed seed"):
    bought(tmp_path / "released", book, key=jax.random.key(3))


def test_what_was_bought_dearly_is_not_told_to_be_cheap(tmp_path):
  rich = methods.plan_preprocessing(PEOPLE.encoder, epsilon=5.0, delta=5e-6)
  options = {"folder": tmp_path, "budget": Budget(50.0, 1e-5), "name": "own", "ledger": None}
  _buying.buy_once(rich, PEOPLE.examples.x, **options)
  with pytest.raises(checks.ArgumentError, match="another price"):
    bought(tmp_path)


def test_what_was_bought_is_charged_to_every_ledger_that_is_named(tmp_path):
  bought(tmp_path / "run")
  for name in ("first", "second"):
    book = DatasetLedger("own", tmp_path / name)
    bought(tmp_path / "run", book)
    assert book.spent(1e-5)[0].releases == 1


def test_what_was_bought_for_other_columns_is_refused(tmp_path):
  bought(tmp_path)
  first, *rest = PEOPLE.encoder.columns
  columns = (dataclasses.replace(first, name="income"), *rest)
  other = dataclasses.replace(PLAN, encoder=dataclasses.replace(PLAN.encoder, columns=columns))
  options = {"folder": tmp_path, "budget": WHOLE, "name": "own", "ledger": None}
  with pytest.raises(checks.ArgumentError, match="other columns or categories"):
    _buying.buy_once(other, PEOPLE.examples.x, **options)


def test_a_restored_backup_buys_the_same_scaling(tmp_path, monkeypatch):
  book, run = DatasetLedger("own", tmp_path / "book"), tmp_path / "run"
  write = _buying._whole_files.write_whole

  def stopped(path, *args, **options):
    if path.name == "bought.json":
      raise KeyboardInterrupt
    write(path, *args, **options)

  with monkeypatch.context() as patch:
    patch.setattr(_buying._whole_files, "write_whole", stopped)
    with pytest.raises(KeyboardInterrupt):
      bought(run, book)
  shutil.copytree(run, tmp_path / "copy")
  first = bought(run, book)
  assert not list(run.rglob("secret_key*"))
  again = bought(tmp_path / "copy", book)
  for one, other in zip(first.scaler, again.scaler, strict=True):
    np.testing.assert_array_equal(one, other)
  assert book.spent(1e-5)[0].releases == 1
  # The secret is gone, so what was bought cannot be computed again.
  (run / "preprocessing" / "bought.json").unlink()
  with pytest.raises(checks.ArgumentError, match=r"bought\.json is missing"):
    bought(run, book)


def test_a_purchase_is_not_continued_with_other_people(tmp_path, monkeypatch):
  with monkeypatch.context() as patch:
    patch.setattr(_preprocessing.PreprocessingPlan, "buy", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
      bought(tmp_path)
  options = {"folder": tmp_path, "budget": WHOLE, "name": "own", "ledger": None}
  with pytest.raises(checks.ArgumentError, match="other people"):
    _buying.buy_once(PLAN, PEOPLE.examples.x[1:], **options)
