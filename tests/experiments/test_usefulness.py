"""Constants are found out, and models that have learned something are not."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import experiments
from jaxfair.experiments import Table, _measures, _study, _usefulness

SIZE, POSITIVE = 2000, 0.25


def rows(model, predict, seeds):
  """What `measure_groups` would tell of everyone, for each seed."""
  found = []
  for seed in range(seeds):
    rng = np.random.default_rng(seed)
    y = (rng.random(SIZE) < POSITIVE).astype(np.int32)
    told = _measures.beside_constant(jnp.asarray(y), jnp.asarray(predict(y, rng)), 2)
    found.append(
      {"model": model, "seed": seed, "group": "everyone", **{k: float(v) for k, v in told.items()}}
    )
  return found


def flipped(share):
  return lambda y, rng: np.where(rng.random(len(y)) < share, 1 - y, y).astype(np.int32)


MODELS = {
  "plain": flipped(0.1),
  "weak": flipped(0.4),
  "constant": lambda y, rng: np.zeros_like(y),
  "guess": lambda y, rng: (rng.random(len(y)) < POSITIVE).astype(np.int32),
  "timid": lambda y, rng: (y * (rng.random(len(y)) < 0.04)).astype(np.int32),
}


@pytest.mark.parametrize("seeds", [1, 3, 8])
def test_what_a_constant_would_do_is_flagged(seeds):
  table = Table.from_rows([row for name in MODELS for row in rows(name, MODELS[name], seeds)])
  judged = _usefulness.judge(table, ["model"], {"model": "plain"})
  why = {one.setting["model"]: one.why for one in judged}
  assert why["plain"] == why["weak"] == ""
  assert "not better than the majority class" in why["constant"]
  assert "not better than the majority class" in why["guess"]
  assert "predicts one class for 9" in why["timid"]
  assert _usefulness.majority_accuracy(table) == pytest.approx(1 - POSITIVE, abs=0.03)


def test_a_class_that_nearly_everybody_has_may_be_given_to_nearly_everybody():
  rare = lambda y, rng: (y * (rng.random(len(y)) < 0.04)).astype(np.int32)  # noqa: E731
  table = Table.from_rows(rows("private", rare, 6) + rows("plain", rare, 6))
  assert all(not one.why for one in _usefulness.judge(table, ["model"], {"model": "plain"}))


def test_the_baseline_itself_is_not_judged():
  told = rows("majority_class", MODELS["constant"], 3) + rows("dp_sgd", MODELS["weak"], 3)
  table = Table.from_rows([{**row, "method": row["model"]} for row in told])
  (judged,) = _usefulness.judge(table, ["method"], {})
  assert judged.setting == {"method": "dp_sgd"}


def test_a_table_of_something_else_is_not_judged():
  table = Table({"seed": [0], "value": [1.0]})
  assert _usefulness.judge(table, [], {}) == []
  assert np.isnan(_usefulness.majority_accuracy(table))


def test_a_reference_model_that_all_settings_repeat_is_judged_once_and_as_claims_judge_it():
  """Figure 3.13: a cautious model has learnt, so its settings show something."""
  told = [
    {**row, "data": row["model"], "clip": clip, "value": clip}
    for name in ("timid", "constant")
    for row in rows(name, MODELS[name], 6)
    for clip in (0.1, 1.0)
  ]
  table = Table.from_rows(told)
  study = experiments.Study(
    name="own",
    summary="",
    config=object,
    cells=list,
    run=lambda config, cell, context: table,
    claims={"high: The value is high": experiments.mean("value") > 0},
    summaries=(experiments.summary("All", "value ~ data, clip"),),
  )
  assert [one.why != "" for one in study.judge(table)] == [True] * 4  # by the share of one class
  study = dataclasses.replace(study, repeats_reference=True)
  assert [(one.setting, one.why != "") for one in study.judge(table)] == [
    ({"data": "timid"}, False),
    ({"data": "constant"}, True),
  ]
  assert [level.learnt for level in study.levels(table)] == [True, False]
  ((_, found),) = _study.check_claims(study, table.where(data="constant"))
  assert found.verdict == "not run"
  assert "the model has not learnt" in found.why
