"""A release folder: what it holds, what is refused."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from jaxfair import accounting, checks, data, methods
from jaxfair.fairness import CounterRule
from jaxfair.methods import _released
from jaxfair.pate._attribute import Protection

GUARANTEE = Protection(
  accounting.PrivacyGuarantee(1.0, 1e-5, accounting.Relation.REPLACE_ONE, "one person", "zcdp"),
  ("a record",),
  ("the number of people, which is public",),
  for_release=True,
)
X = np.array([[1.0, np.nan, -2.0], [0.5, 3.0, 4.0]], np.float32)


def released(network="mlp", **changes):
  spec = _released.Network(network, 2, (4,))
  one = np.zeros(3, np.float32)
  made = methods.Released(
    method="dp_sgd",
    settings={"steps": 3, "hidden": [4], "max_gap": None},
    network=spec,
    params=spec.model.init(jax.random.key(1), one),
    guarantee=GUARANTEE,
    class_names=("no", "yes"),
    group_names=("a", "b", "c"),
    shape=(3,),
    scaler=data.fit_scaler(np.arange(12, dtype=np.float32).reshape(4, 3)),
    abstention=CounterRule(0.1, 5, "pairwise", "own"),
    data_name="people",
    spending=("epsilon 3 for one person",),
    intended_use="to see who asks",
    released_on="2026-11-18",
  )
  return dataclasses.replace(made, **changes)


def test_what_is_saved_is_loaded(tmp_path):
  own = released()
  own.save(tmp_path / "release")
  found = methods.load(tmp_path / "release")
  for field in dataclasses.fields(own):
    if field.name not in ("params", "scaler"):
      assert getattr(found, field.name) == getattr(own, field.name), field.name
  for name in ("params", "scaler"):
    jax.tree.map(np.testing.assert_array_equal, getattr(found, name), getattr(own, name))
  assert np.array_equal(found.scores(X), own.scores(X))


def test_a_person_gets_the_same_bits_whoever_else_is_asked_about():
  own = released()
  x = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
  labels, scores = own.answer(x)
  for rows in ([0], [7, 299], range(250, 300)):
    some, few = own.answer(x[list(rows)])
    np.testing.assert_array_equal(few, scores[list(rows)])
    np.testing.assert_array_equal(some, labels[list(rows)])
  logits = own.network.model.apply(own.params, own.prepare(x))
  np.testing.assert_allclose(scores, jax.nn.softmax(logits), rtol=1e-5)
  np.testing.assert_array_equal(labels, np.argmax(logits, axis=1))
  assert own.predict(x[:0]).shape == (0,)


def test_new_people_are_scaled_and_bounded_as_at_training():
  own = released(row_norm=0.5)
  rows = own.prepare(X)
  assert np.all(np.linalg.norm(rows, axis=1) <= 0.5 * (1 + 1e-6))
  expected = data.bound_rows(own.scaler.apply(X), 0.5)
  np.testing.assert_array_equal(rows, expected)
  with pytest.raises(checks.ArgumentError, match="unscaled"):
    own.predict(X[:, :2])


@pytest.mark.parametrize("name", ["release.json", "arrays.npz", "model_card.md"])
def test_a_changed_file_is_refused(tmp_path, name):
  folder = tmp_path / "release"
  released().save(folder)
  content = bytearray((folder / name).read_bytes())
  content[len(content) // 2] ^= 1
  (folder / name).write_bytes(bytes(content))
  with pytest.raises(_released.ReleaseError, match=f"{name} was changed"):
    methods.load(folder)


@pytest.mark.parametrize("name", ["release.json", "arrays.npz", "model_card.html", "sha256.json"])
def test_a_missing_file_is_refused(tmp_path, name):
  folder = tmp_path / "release"
  released().save(folder)
  (folder / name).unlink()
  with pytest.raises(_released.ReleaseError, match="no complete release"):
    methods.load(folder)


def test_a_record_that_does_not_fit_its_arrays_is_refused(tmp_path):
  folder = tmp_path / "release"
  released().save(folder)
  edit(folder, lambda record: record["network"].update(hidden=[5]))
  with pytest.raises(_released.ReleaseError, match="release the model again"):
    methods.load(folder)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    (lambda record: record.update(format=99), "format 99"),
    (lambda record: record.pop("guarantee"), "guarantee: missing"),
    (lambda record: record["network"].update(name="x"), "network"),
    (lambda record: record["guarantee"].update(relation="x"), "cannot be read"),
  ],
)
def test_a_strange_record_is_refused(tmp_path, change, message):
  folder = tmp_path / "release"
  released().save(folder)
  edit(folder, change)
  with pytest.raises(_released.ReleaseError, match=message):
    methods.load(folder)


def edit(folder, change):
  """Changes the record and its digest, as a careful hand would."""
  import hashlib

  record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
  change(record)
  content = json.dumps(record).encode()
  (folder / "release.json").write_bytes(content)
  digests = json.loads((folder / "sha256.json").read_text(encoding="utf-8"))
  digests["release.json"] = hashlib.sha256(content).hexdigest()
  (folder / "sha256.json").write_text(json.dumps(digests), encoding="utf-8")


def test_no_pickle_is_ever_read(tmp_path):
  folder = tmp_path / "release"
  own = released(network="logistic")
  strange = {**own.params, "b": np.array([object(), object()], object)}
  dataclasses.replace(own, params=strange).save(folder)
  with pytest.raises(_released.ReleaseError, match="cannot be read"):
    methods.load(folder)


def test_a_folder_is_written_once(tmp_path):
  released().save(tmp_path / "release")
  with pytest.raises(checks.ArgumentError, match="exists"):
    released().save(tmp_path / "release")


def test_the_abstainer_travels_along(tmp_path):
  released().save(tmp_path / "release")
  gate = methods.load(tmp_path / "release").abstainer()
  assert gate.rule == CounterRule(0.1, 5, "pairwise", "own")
  assert gate.answer([0, 1], [0, 2]).tolist() == [0, 1]
  with pytest.raises(checks.ArgumentError, match="without a margin"):
    released(abstention=None).abstainer()
  gate.save(tmp_path / "gate.json")
  again = released().abstainer(tmp_path / "gate.json")
  assert again.counters.tolist() == [[1, 0], [0, 0], [0, 1]]
  planned = released(answer_targets=np.array([2 / 3, 1 / 3]))
  planned.save(tmp_path / "planned")
  found = methods.load(tmp_path / "planned")
  assert found.answer_targets.tolist() == planned.answer_targets.tolist()
  assert found.abstainer().answer([1, 1, 0], [0, 0, 0]).tolist() == [1, -1, 0]
  with pytest.raises(checks.ArgumentError, match="another plan of answers"):
    planned.abstainer(tmp_path / "gate.json")
  other = released(abstention=CounterRule(0.2, 5))
  with pytest.raises(checks.ArgumentError, match="another rule"):
    other.abstainer(tmp_path / "gate.json")
