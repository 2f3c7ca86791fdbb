"""Training to a budget: calibrated, charged first, resumed to the same bits."""

import dataclasses
import json
import pathlib
import signal
import stat
import subprocess
import sys
import textwrap
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from helpers.crowds import crowd
from jaxfair import accounting, checks, models
from jaxfair.accounting import _composition, _guarantee, _truncation
from jaxfair.privacy._adaptive import QuantileClip
from jaxfair.training import DpSgdConfig, _checkpoints, _segments, calibrate, train_to_budget
from jaxfair.training._checkpoints import CheckpointError, Checkpoints

CONFIG = DpSgdConfig(steps=20, batch_size=16, learning_rate=0.5)
BUDGET = {"epsilon": 2.0, "delta": 1e-5}


def people(seed=0):
  return crowd(200, 3, apart=(2, 0, 0), seed=seed)


def train(
  folder=None,
  key=None,
  config=CONFIG,
  examples=None,
  model=models.logistic(2),
  loss=models.cross_entropy,
  **options,
):
  return train_to_budget(
    model, loss, examples or people(), config, key=key, folder=folder, **(BUDGET | options)
  )


def bits(fit):
  return [np.asarray(v).tobytes() for v in jax.tree.leaves((fit.params, fit.trace))]


@pytest.mark.slow
def test_guarantee_is_within_the_budget_and_says_all():
  fit = train()
  assert 1.99 < fit.guarantee.epsilon <= 2.0
  assert fit.guarantee.delta == 1e-5
  assert fit.guarantee.relation is accounting.Relation.ADD_OR_REMOVE_ONE
  assert "one person added or removed" in str(fit.guarantee)
  assert fit.for_release
  assert not train(key=jax.random.key(0)).for_release


def test_fresh_noise_every_time_without_a_key():
  assert bits(train()) != bits(train())


def test_calibration_spends_the_budget_with_the_cap_paid():
  config = calibrate(CONFIG, 200, **BUDGET)
  spent = _composition.composed_epsilon([config.event(200)], delta=1e-5)
  assert 1.99 < spent <= 2.0
  added = _truncation.truncation_delta(
    dataset_size=200, sampling_rate=0.08, max_batch=config.max_batch, steps=20
  )
  assert added <= 1e-8


@pytest.mark.slow
def test_adaptive_clip_shares_the_budget():
  adaptive = QuantileClip(count_noise=20.0)
  config = calibrate(DpSgdConfig(steps=20, batch_size=16, adaptive=adaptive), 200, **BUDGET)
  alone = calibrate(CONFIG, 200, **BUDGET)
  assert config.noise_multiplier > alone.noise_multiplier
  spent = _composition.composed_epsilon([config.event(200)], delta=1e-5)
  assert 1.99 < spent <= 2.0


@pytest.mark.slow
def test_folder_changes_no_bit_and_keeps_a_ledger(tmp_path):
  key = jax.random.key(4)
  plain, kept = train(key=key), train(tmp_path / "run", key=key, data="toy")
  assert bits(plain) == bits(kept)
  ledger = accounting.Ledger.read(tmp_path / "run" / "ledger.jsonl")
  assert ledger.data == "toy"
  assert ledger.epsilon(1e-5) == pytest.approx(kept.guarantee.epsilon, rel=1e-9)
  assert ledger.budget.epsilon == 2.0
  private = tmp_path / "run" / "private"
  assert stat.S_IMODE(private.stat().st_mode) == 0o700
  assert stat.S_IMODE((private / "secret_key").stat().st_mode) == 0o600
  assert len(list(private.glob("step-*"))) == 2


@pytest.mark.slow
def test_a_finished_training_is_only_loaded(tmp_path):
  first = train(tmp_path / "run", keep_private=True)
  told = []
  again = train(tmp_path / "run", keep_private=True, progress=lambda *now: told.append(now))
  assert bits(first) == bits(again)
  assert told == []
  assert again.for_release


@pytest.mark.slow
def test_stopped_training_continues_to_the_same_bits(tmp_path):
  key = jax.random.key(4)

  def stop(done, total):
    if done == 8:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    train(tmp_path / "run", key=key, progress=stop)
  ledger = accounting.Ledger.read(tmp_path / "run" / "ledger.jsonl")
  assert sum(entry.event.steps for entry in ledger) == 20  # from the start
  told = []
  continued = train(tmp_path / "run", key=key, progress=lambda *now: told.append(now))
  assert told[0] == (10, 20)
  assert bits(continued) == bits(train(key=key))
  ledger = accounting.Ledger.read(tmp_path / "run" / "ledger.jsonl")
  assert sum(entry.event.steps for entry in ledger) == 20


@pytest.mark.slow
def test_a_crash_between_charge_and_checkpoint_is_not_charged_twice(tmp_path):
  key = jax.random.key(4)

  def stop(done, total):
    if done == 8:
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    train(tmp_path / "run", key=key, progress=stop)
  # As if the process had died after charging and before saving steps 6 to 8.
  newest = tmp_path / "run" / "private" / "step-00000008"
  newest.rename(tmp_path / "gone")
  continued = train(tmp_path / "run", key=key)
  ledger = accounting.Ledger.read(tmp_path / "run" / "ledger.jsonl")
  assert sum(entry.event.steps for entry in ledger) == 20
  assert bits(continued) == bits(train(key=key))


def other_ledger(path, budget=(9.0, 1e-5)):
  return accounting.Ledger.create(
    path, data="toy", budget=budget, relation=accounting.Relation.ADD_OR_REMOVE_ONE
  )


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, jax.random.key(4)])
def test_every_ledger_is_charged_for_the_whole_training(tmp_path, key):
  """Begun on one ledger, continued on another, found finished on a third."""

  def stop(done, total):
    if done == 8:
      raise KeyboardInterrupt

  folder, steps = tmp_path / "run", {}
  for name in ("a", "b", "c"):
    with other_ledger(tmp_path / name) as ledger:
      if name == "a":
        with pytest.raises(KeyboardInterrupt):
          train(folder, key=key, ledger=ledger, progress=stop)
      else:
        fit = train(folder, key=key, ledger=ledger)
        train(folder, key=key, ledger=ledger)  # and it knows it then
      steps[name] = [entry.event.steps for entry in ledger]
      spent = ledger.epsilon()
  assert steps == {"a": [20], "b": [20], "c": [20]}
  assert spent == pytest.approx(fit.guarantee.epsilon, rel=1e-9)
  poor = other_ledger(tmp_path / "d", (1.0, 1e-5))
  with poor, pytest.raises(_guarantee.BudgetError):
    train(folder, key=key, ledger=poor)


@pytest.mark.slow
def test_another_training_in_the_folder_is_refused(tmp_path):
  folder = tmp_path / "run"
  train(folder, key=jax.random.key(0))
  with pytest.raises(CheckpointError, match=r"epsilon=2\.0, not 3\.0"):
    train(folder, epsilon=3.0)
  with pytest.raises(CheckpointError, match="learning_rate"):
    train(folder, config=DpSgdConfig(steps=20, batch_size=16, learning_rate=0.4))
  with pytest.raises(CheckpointError, match="another key"):
    train(folder, key=jax.random.key(1))
  with pytest.raises(CheckpointError, match="other data"):
    train(folder, examples=people(seed=1))
  other = tmp_path / "other"
  other.mkdir()
  (other / "thesis.tex").write_text("")
  with pytest.raises(CheckpointError, match="not empty"):
    train(other)


def scaled(logits, y):
  return models.cross_entropy(2 * logits, y)


def momentum(rate):
  return optax.sgd(rate, momentum=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"model": models.mlp((4,), 2, "tanh")}, "another model; pass the model"),
    ({"loss": scaled}, "another loss; pass the loss .* or choose another"),
    ({"config": dataclasses.replace(CONFIG, optimizer=momentum)}, "optimizer"),
  ],
)
def test_another_program_in_the_folder_is_refused(tmp_path, change, told):
  same = {"key": jax.random.key(0), "model": models.mlp((4,), 2)}
  config = dataclasses.replace(CONFIG, optimizer=rebuilt_momentum())
  first = train(tmp_path, **(same | {"config": config}))
  with pytest.raises(CheckpointError, match=told):
    train(tmp_path, **(same | {"config": config} | change))
  config = dataclasses.replace(CONFIG, optimizer=rebuilt_momentum())
  again = train(tmp_path, **(same | {"config": config}))
  assert bits(first) == bits(again)


def rebuilt_momentum():
  return lambda rate: optax.sgd(rate, momentum=0.9)


@pytest.mark.slow
def test_a_folder_of_an_earlier_version_is_refused(tmp_path):
  train(tmp_path, key=jax.random.key(0))
  path = tmp_path / "private" / "run.json"
  record = json.loads(path.read_text())
  path.write_text(json.dumps(record | {"jax": "0.0.1"}))
  train(tmp_path)  # the same programs, whoever made them
  with pytest.raises(CheckpointError, match=r"with jax 0\.0\.1, or choose"):
    train(tmp_path, loss=scaled)
  del record["programs"]
  path.write_text(json.dumps(record))
  with pytest.raises(CheckpointError, match="does not record its model and loss; choose"):
    train(tmp_path)


@pytest.mark.slow
def test_a_training_killed_in_its_first_moment_is_begun_again(tmp_path):
  """Its key was written, and what it is the key of was not."""
  private = tmp_path / "private"
  private.mkdir()
  (private / "secret_key").write_text("[1, 2]")
  (private / "run.json.partial").write_text("{")
  key = jax.random.key(0)
  assert bits(train(tmp_path, key=key)) == bits(train(key=key))


@pytest.mark.slow
def test_nothing_in_the_folder_identifies_the_data_without_the_key(tmp_path):
  record = []
  for name in ("a", "b"):
    train(tmp_path / name)
    text = (tmp_path / name / "private" / "run.json").read_text()
    record.append(json.loads(text)["data"])
  assert record[0] != record[1]  # same data, other key


def test_a_shared_ledger_refuses_what_its_budget_does_not_pay(tmp_path):
  path = tmp_path / "ledger.jsonl"
  relation = accounting.Relation.ADD_OR_REMOVE_ONE
  with accounting.Ledger.create(path, data="toy", relation=relation, budget=(2.5, 1e-5)) as ledger:
    train(ledger=ledger)
    with pytest.raises(_guarantee.BudgetError):
      train(ledger=ledger)
    assert sum(entry.event.steps for entry in ledger) == 20


@pytest.mark.parametrize(
  ("options", "told"),
  [
    ({"epsilon": 0.0}, "epsilon=0.0 must be above 0"),
    ({"epsilon": -1.0}, "epsilon=-1.0"),
    ({"delta": 0.0}, "delta=0.0 must be in (0, 1)"),
    ({"delta": 1.5}, "delta=1.5"),
  ],
)
def test_bad_budgets_are_refused(options, told, tmp_path):
  with pytest.raises(checks.ArgumentError) as caught:
    train(tmp_path / "run", **options)
  assert told in str(caught.value)
  assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_large_delta_is_warned_of():
  with pytest.warns(_guarantee.DeltaWarning, match="1/n"):
    train(delta=0.01)


def private_files(folder):
  return sorted(path.name for path in (folder / "private").iterdir())


def parameters(fit):
  return [np.asarray(v).tobytes() for v in jax.tree.leaves(fit.params)]


@pytest.mark.slow
def test_a_release_is_found_again_without_its_key(tmp_path):
  folder = tmp_path / "run"
  first = train(folder)
  assert first.trace is not None
  names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))
  assert names == ["ledger.jsonl", "private", "private/run.json", "released.npz"]
  again = train(folder)
  assert parameters(again) == parameters(first)
  assert again.trace is None
  assert again.guarantee == first.guarantee
  assert again.for_release
  with pytest.raises(CheckpointError, match="other data"):
    train(folder, examples=people(seed=1))


@pytest.mark.slow
def test_private_files_are_kept_if_asked_and_then_erased(tmp_path):
  kept = train(tmp_path / "run", keep_private=True)
  assert "secret_key" in private_files(tmp_path / "run")
  assert bits(train(tmp_path / "run", keep_private=True)) == bits(kept)
  erased = train(tmp_path / "run")
  assert parameters(erased) == parameters(kept)
  assert private_files(tmp_path / "run") == ["run.json"]


def test_a_training_with_a_key_of_one_s_own_is_kept(tmp_path):
  """It is no release: its noise is known to whoever chose the key."""
  train(tmp_path / "run", key=jax.random.key(0))
  assert "secret_key" in private_files(tmp_path / "run")
  assert not (tmp_path / "run" / "released.npz").exists()


def test_a_release_is_charged_to_its_data_set_once(tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  book = accounting.DatasetLedger.of(b"toy", name="toy")

  def stop(done, total):
    raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    train(tmp_path / "run", dataset_ledger=book, progress=stop)
  (spent,) = book.spent(1e-5)
  assert 1.99 < spent.guarantee.epsilon <= 2.0  # all of it, before it is done
  train(tmp_path / "run", dataset_ledger=book)
  train(tmp_path / "run", dataset_ledger=book)  # found finished
  assert book.spent(1e-5) == [spent]
  train(dataset_ledger=book)
  assert [spent.releases for spent in book.spent(1e-5)] == [2]
  train(dataset_ledger=book, key=jax.random.key(0))  # no release
  assert [spent.releases for spent in book.spent(1e-5)] == [2]


def test_nothing_is_computed_that_the_data_set_does_not_pay_for(tmp_path, monkeypatch):
  monkeypatch.setenv("JAXFAIR_STATE", str(tmp_path / "state"))
  book = accounting.DatasetLedger.of(b"toy", name="toy")
  relation = accounting.Relation.ADD_OR_REMOVE_ONE
  book.set_budget((1.0, 1e-5), relation=relation)
  told = []
  with pytest.raises(_guarantee.BudgetError):
    train(tmp_path / "run", dataset_ledger=book, progress=lambda *now: told.append(now))
  assert told == []


PROGRAM = textwrap.dedent("""
  import sys
  sys.path[:0] = sys.argv[2:]
  from test_budget import jax, train
  print("ready", flush=True)
  train(sys.argv[1], key=jax.random.key(4),
        progress=lambda done, total: print(done, flush=True))
""")


@pytest.mark.slow
def test_kill_at_any_moment_never_under_reports_and_resumes(tmp_path):
  """kill -9 after random delays; the ledger always covers the checkpoint."""
  here = pathlib.Path(__file__).parent
  folder, places = tmp_path / "run", (str(here), str(here.parent))
  rng = np.random.default_rng(0)
  killed = 0
  for attempt in range(8):
    with subprocess.Popen(
      [sys.executable, "-c", PROGRAM, str(folder), *places], stdout=subprocess.PIPE, text=True
    ) as process:
      assert process.stdout.readline() == "ready\n"
      if attempt < 7:
        time.sleep(rng.uniform(0.0, 3.0))
        process.send_signal(signal.SIGKILL)
      killed += process.wait() == -signal.SIGKILL
    path = folder / "ledger.jsonl"
    saved = [int(p.name[5:]) for p in (folder / "private").glob("step-*") if p.name[5:].isdigit()]
    charged = 0
    if path.exists() and path.stat().st_size:
      charged = sum(e.event.steps for e in accounting.Ledger.read(path))
    assert charged >= max(saved, default=0)
  assert killed >= 3
  assert bits(train(folder, key=jax.random.key(4))) == bits(train(key=jax.random.key(4)))


@pytest.mark.parametrize("name", ["jax_debug_nans", "jax_debug_infs"])
def test_a_mode_in_which_a_broken_record_ends_a_release_is_refused(name):
  jax.config.update(name, True)
  try:
    with pytest.raises(checks.ArgumentError, match=f"{name} is on"):
      train()
  finally:
    jax.config.update(name, False)


def test_numbers_of_numpy_and_jax_begin_and_continue_a_folder(tmp_path):
  one = Checkpoints(
    tmp_path, {"epsilon": np.float32(2.0), "steps": np.int64(4)}, (), None, programs={}
  )
  again = Checkpoints(tmp_path, {"epsilon": jnp.float32(2), "steps": 4}, (), None, programs={})
  assert one.run_id == again.run_id


def test_parameters_that_were_written_down_are_not_computed_again(tmp_path, monkeypatch):
  """A kill between them and the record; on another device they would have other last bits."""
  write = _checkpoints.write_whole

  def killed(path, content, **options):
    if path.name == _checkpoints.RECORD and '"finished"' in content:
      raise KeyboardInterrupt
    write(path, content, **options)

  short = dataclasses.replace(CONFIG, steps=2)
  with monkeypatch.context() as patch:
    patch.setattr(_checkpoints, "write_whole", killed)
    with pytest.raises(KeyboardInterrupt):
      train(tmp_path, config=short)
  with np.load(tmp_path / _checkpoints.RELEASED) as file:
    seen = [file[name] for name in file.files]
  monkeypatch.setattr(_segments.Training, "run", None)
  again = train(tmp_path, config=short)
  for one, other in zip(seen, jax.tree.leaves(again.params), strict=True):
    np.testing.assert_array_equal(one, other)
  assert private_files(tmp_path) == ["run.json"]
