"""Asking: what is exact, what is never read, and who does better."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import disclosure_cases as cases
from jaxfair import checks, data, disclosure, models
from jaxfair.disclosure import _beliefs, _greedy_disclosure, _network
from jaxfair.disclosure import _choosers as choosers

X = cases.people(256)
LAW = disclosure.fit_gaussian(cases.people(2000, seed=9))
ASKED = cases.asked()
KEY = jax.random.key(3)
FEW = disclosure.ByEntropy(draws=50, label_draws=50)
CHOOSERS = (FEW, disclosure.ByVariance(), disclosure.ByProgress())


def ask(case, x=X, **options):
  model, params = case
  options = {"chooser": disclosure.ByVariance(), "key": KEY} | options
  return disclosure.disclose(model, params, LAW, ASKED, x, **options)


@pytest.mark.slow
@pytest.mark.parametrize("chooser", CHOOSERS, ids=lambda c: type(c).__name__)
def test_certain_labels_of_linear_models_are_the_models_own(chooser):
  model, params = cases.linear()
  found = ask((model, params), chooser=chooser)
  np.testing.assert_array_equal(found.label, models.predict(model, params, X))
  assert found.count.min() < found.count.max()
  np.testing.assert_array_equal(found.revealed.sum(axis=1), found.count)
  order = np.asarray(found.order)
  np.testing.assert_array_equal((order != _greedy_disclosure.NOT_ASKED).sum(1), found.count)
  for row, revealed in zip(order[:20], found.revealed[:20], strict=True):
    asked = row[row != _greedy_disclosure.NOT_ASKED]
    assert sorted(asked.tolist()) == np.flatnonzero(revealed).tolist()


@pytest.mark.slow
def test_hidden_values_change_neither_order_nor_label():
  progress = disclosure.ByProgress()
  certain = ask(cases.network(), chooser=progress)
  wanted = models.predict(*cases.network(), X)
  np.testing.assert_array_equal(certain.label, wanted)
  assert 0 < certain.count.mean() < 4
  for case, chooser in ((cases.linear(), FEW), (cases.network(), progress)):
    found = ask(case, chooser=chooser, delta=0.2)
    hidden = (~np.asarray(found.revealed) @ ASKED.members.astype(int)) > 0
    rng = np.random.default_rng(0)
    other = np.where(hidden, rng.uniform(-1, 1, X.shape), X).astype("f4")
    assert (other != X).any()
    again = ask(case, other, chooser=chooser, delta=0.2)
    for before, after in zip(found, again, strict=True):
      np.testing.assert_array_equal(before, after)


def test_a_larger_delta_asks_less_and_errs_about_that_often():
  case = cases.linear()
  counts = []
  for delta in (0.0, 0.05, 0.2):
    found = ask(case, delta=delta)
    counts.append(float(found.count.mean()))
    wrong = np.mean(np.asarray(found.label != models.predict(*case, X)))
    assert wrong <= delta + 5 * np.sqrt(delta / len(X))
  assert counts[0] > counts[1] > counts[2]


def test_the_variance_order_is_the_same_for_everybody():
  order = np.asarray(ask(cases.linear()).order)
  for column in order.T:
    assert len({*column.tolist()} - {_greedy_disclosure.NOT_ASKED}) <= 1


@pytest.mark.slow
def test_expected_entropy_is_that_of_numerical_integration():
  _, params = cases.linear()
  nodes, weights = np.polynomial.hermite_e.hermegauss(60)

  @jax.jit
  def both(x):
    known = _beliefs.beliefs(_network.as_network(params), LAW, ASKED)
    nothing = jnp.zeros(4, bool)
    drawn = disclosure.ByEntropy(draws=4000).build(known, key=KEY)
    center = _beliefs.pre_activation(known, nothing, x)

    def integral(alone, factor):
      rest = known.law(alone).covariance
      chances = jax.vmap(
        lambda node: _beliefs.label_probabilities(
          known.network, center + node * factor[0], rest, None
        )
      )(nodes)
      return -jnp.sum(weights * _beliefs.entropy(chances)) / weights.sum()

    exact = jax.vmap(integral)(jnp.eye(4, dtype=bool), known.factors(nothing))
    variance = disclosure.ByVariance().build(known, key=KEY)
    person = choosers.Person(x, KEY)
    return exact, drawn(nothing, person), variance(nothing, person)

  exact, drawn, variance = map(np.asarray, both(jnp.asarray(X[0])))
  # An entropy lies within log 2, so 4,000 draws stay within 5 * 0.35 / 63.
  np.testing.assert_allclose(drawn, exact, atol=0.028)
  assert np.argsort(exact).tolist() == np.argsort(variance).tolist()


@pytest.mark.slow
def test_the_number_of_people_side_by_side_changes_nothing(monkeypatch):

  whole = ask(cases.linear())
  monkeypatch.setattr(_greedy_disclosure, "CHUNK", 32)
  chunks = ask(cases.linear(), X[:70])  # the last chunk is not full
  for one, other in zip(whole, chunks, strict=True):
    np.testing.assert_array_equal(one[:70], other)


@pytest.mark.slow
def test_orders_and_deltas_together_are_those_apart():
  case = cases.linear()
  choosers = {"variance": disclosure.ByVariance(), "progress": CHOOSERS[2]}
  found = _greedy_disclosure.disclose_each(
    *case, LAW, ASKED, X, deltas=(0.0, 0.2), choosers=choosers, key=KEY
  )
  assert list(found) == list(choosers)
  for name, delta, row in (("variance", 0.2, 1), ("progress", 0.0, 0)):
    alone = ask(case, chooser=choosers[name], delta=delta)
    for one, other in zip(found[name], alone, strict=True):
      np.testing.assert_array_equal(one[row], other)


def test_people_in_other_units_need_their_scaler():
  model, params = cases.linear()
  raw = 10 * X
  with pytest.raises(checks.ArgumentError, match=r"outside \[-1, 1\].*scaler"):
    ask((model, params), raw)
  scaler = data.fit_scaler(raw, "minmax")
  found = ask((model, params), raw, scaler=scaler)
  wanted = models.predict(model, params, scaler.apply(raw))
  np.testing.assert_array_equal(found.label, wanted)


def test_one_program_for_all_deltas_and_questions():

  case = cases.linear()
  ask(case, delta=0.1)
  compiled = _greedy_disclosure._disclose._cache_size()
  ask(case, delta=0.3, key=jax.random.key(9))
  assert _greedy_disclosure._disclose._cache_size() == compiled


@pytest.mark.parametrize(
  ("options", "told"),
  [
    ({"delta": 0.5}, "delta=0.5 must be in"),
    ({"delta": -0.1}, "delta=-0.1 must be in"),
    ({"key": 3}, "key must be a random key"),
  ],
)
def test_impossible_arguments_are_refused(options, told):
  with pytest.raises(checks.ArgumentError, match=told):
    ask(cases.linear(), **options)


def test_nothing_to_compare_is_refused():
  with pytest.raises(checks.ArgumentError, match="at least one of each"):
    _greedy_disclosure.disclose_each(
      *cases.linear(), LAW, ASKED, X, deltas=(), choosers={}, key=KEY
    )


def test_variance_is_refused_with_three_classes():
  with pytest.raises(checks.ArgumentError, match="use ByEntropy"):
    ask(cases.linear(3))


def test_models_without_known_layers_are_refused():
  with pytest.raises(checks.ArgumentError, match=r"models.logistic or models"):
    _network.as_network({"kernel": np.zeros((2, 2))})
