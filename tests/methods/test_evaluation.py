"""What the evaluation says is what was measured, and it warns of useless models."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from sklearn import metrics

from jaxfair.data import Encoder, _rules
from jaxfair.data._columns import Numeric
from jaxfair.data._scaling import Scaler
from jaxfair.fairness import CounterRule
from jaxfair.methods._evaluation import ANSWERED, MAJORITY, PLAIN, RELEASED, evaluate
from jaxfair.types import Examples

from .test_released import released

RNG = np.random.default_rng(2)
X = RNG.normal(5.0, 20.0, (400, 3)).astype(np.float32)
PARAMS = {"w": np.float32([[-1, 1], [1, -1], [0, 0]]), "b": np.zeros(2, np.float32)}
GROUP = (RNG.random(400) < 0.05).astype(np.int32)
OWN = released("logistic", params=PARAMS, group_names=("a", "b"), abstention=CounterRule(0.1, 5))
LABELS = OWN.predict(X)
TEST = Examples(X, np.where(RNG.random(400) < 0.8, LABELS, 1 - LABELS), GROUP)


@pytest.fixture(scope="module")
def found():
  return evaluate(OWN, TEST, plain=TEST.y, key=jax.random.key(0))


@pytest.mark.slow
def test_figures_are_those_of_scikit_learn(found, tmp_path):
  told = found.models[RELEASED]
  for name, score in (
    ("accuracy", metrics.accuracy_score),
    ("balanced_accuracy", metrics.balanced_accuracy_score),
  ):
    value, low, high = told[name]
    assert value == pytest.approx(score(TEST.y, LABELS), abs=1e-6)
    assert low < value < high
  shares = [LABELS[g == GROUP].mean() for g in (0, 1)]
  assert told["parity_gap"][0] == pytest.approx(abs(shares[0] - shares[1]), abs=1e-6)
  assert found.groups["b"]["share of yes"][0] == pytest.approx(shares[1], abs=1e-6)
  assert found.models[PLAIN]["accuracy"][0] == 1.0
  assert found.models[MAJORITY]["balanced_accuracy"] == [0.5, 0.5, 0.5]
  assert found.sizes == {"a": int((GROUP == 0).sum()), "b": int(GROUP.sum())}
  assert set(found.coverage) == {"a", "b"}
  shown = OWN.abstainer().answer(LABELS, GROUP)
  some = shown >= 0
  assert some.sum() < 400
  told = found.models[ANSWERED]["accuracy"][0]
  assert told == pytest.approx(metrics.accuracy_score(TEST.y[some], shown[some]), abs=1e-6)
  page = found.write(tmp_path)
  assert json.loads(page.with_suffix(".json").read_text())["sizes"] == found.sizes
  text = page.with_suffix(".md").read_text()
  assert "NOT FOR RELEASE" in text
  assert "too few test people" in text  # 5% of 400 are fewer than 30
  assert "not better than a constant" not in text
  assert page.parent.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_columns_that_the_model_does_not_use_are_named(found):
  del found  # compiled before
  columns = tuple(Numeric(name, origin="bought") for name in ("age", "pay", "gain"))
  rule = _rules.everyone()
  hidden = Scaler(np.zeros(3), np.float32([1, 0, 0]), np.zeros(3), 5.0)
  own = dataclasses.replace(OWN, encoder=Encoder(columns, rule, rule), scaler=hidden)
  told = evaluate(own, TEST, key=jax.random.key(0)).warnings[-1]
  assert "does not use pay, gain:" in told
  assert "--range 'pay=LOW:HIGH'" in told


@pytest.mark.slow
def test_a_model_that_is_no_better_than_a_constant_is_flagged(found):
  del found  # compiled before
  params = jax.tree.map(np.zeros_like, OWN.params)
  useless = dataclasses.replace(OWN, params=params)
  told = evaluate(useless, TEST, plain=TEST.y, key=jax.random.key(0)).warnings
  assert "not better than a constant" in told[0]
  assert "one class for 100.0%" in told[1]
