"""Pure tests against every combination of answers."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import disclosure_cases as cases
from jaxfair import checks, disclosure, models
from jaxfair.disclosure import _beliefs, _core_sets, _network

SUBSETS = _beliefs.all_subsets(4)


def verdicts(test, params, asked, x):
  built = test.build(_network.as_network(params), asked, key=jax.random.key(0))
  each = jax.vmap(jax.vmap(built, (0, None)), (None, 0))
  return jax.jit(each)(jnp.asarray(SUBSETS), jnp.asarray(x))


def labels_everywhere(params, asked, revealed, x):
  """The labels at all combinations of answers to what is not revealed."""
  hidden = [asked.values[j, : asked.counts[j]] for j in np.flatnonzero(~revealed)]
  known = np.where(asked.members[~revealed].any(axis=0), 0.0, x)
  points = [known + sum(chosen) for chosen in itertools.product(*hidden)]
  value = np.array(points)
  layers = [params] if "w" in params else list(params.values())
  for i, layer in enumerate(layers):
    value = value if i == 0 else np.maximum(value, 0)
    value = value @ np.asarray(layer["w"], float) + np.asarray(layer["b"])
  return np.unique(value.argmax(axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 3])
def test_for_linear_models_the_interval_test_is_exact(num_classes):
  _, params = cases.linear(num_classes)
  asked = cases.asked()
  x = cases.people(15)
  found = verdicts(disclosure.IntervalTest(), params, asked, x)
  seen = set()
  for i, person in enumerate(x):
    for k, revealed in enumerate(SUBSETS):
      labels = labels_everywhere(params, asked, revealed, person)
      assert bool(found.core[i, k]) == (len(labels) == 1)
      if len(labels) == 1:
        assert found.label[i, k] == labels[0]
      seen.add((len(labels) == 1, revealed.sum()))
  assert {(True, 2), (False, 2), (True, 4), (False, 0)} <= seen


@pytest.mark.slow
def test_a_margin_within_rounding_is_not_certain():
  _, params = cases.linear()
  asked = cases.asked("age")
  size = abs(float(params["w"][0, 1] - params["w"][0, 0]))
  rest = np.zeros(6, "f4")
  for extra, core in ((1e-6, False), (1e-2, True)):
    shifted = {**params, "b": jnp.asarray([0.0, size * (1 + extra)])}
    test = disclosure.IntervalTest().build(
      _network.as_network(shifted), asked, key=jax.random.key(0)
    )
    assert bool(test(jnp.zeros(1, bool), rest).core) == core


@pytest.mark.slow
@pytest.mark.parametrize("num_classes", [2, 3])
def test_interval_bounds_never_call_an_impure_set_pure(num_classes):
  _, params = cases.network(num_classes)
  asked = cases.asked()
  x = cases.people(24)
  found = verdicts(disclosure.IntervalTest(), params, asked, x)
  pure = 0
  for i, person in enumerate(x):
    for k, revealed in enumerate(SUBSETS):
      if found.core[i, k] and not revealed.all():
        labels = labels_everywhere(params, asked, revealed, person)
        assert labels.tolist() == [found.label[i, k]]
        pure += 1
  assert pure > 5


@pytest.mark.slow
def test_a_grid_that_fits_is_looked_at_completely():
  _, params = cases.network()
  asked = cases.asked()
  x = cases.people(8)
  whole = _core_sets.GridTest(points=5 * 3 * 5 * 5)
  found = verdicts(whole, params, asked, x)
  for i, person in enumerate(x):
    for k, revealed in enumerate(SUBSETS):
      labels = labels_everywhere(params, asked, revealed, person)
      assert bool(found.core[i, k]) == (len(labels) == 1)


@pytest.mark.slow
def test_a_grid_that_does_not_fit_is_sampled():
  _, params = cases.network()
  asked = cases.asked()
  x = cases.people(8)
  sampled = verdicts(_core_sets.GridTest(points=100), params, asked, x)
  whole = verdicts(_core_sets.GridTest(points=375), params, asked, x)
  # Fewer points can only miss labels; where 100 suffice they are the same.
  assert (sampled.core | ~whole.core).all()
  few = (~SUBSETS).sum(axis=1) <= 2
  np.testing.assert_array_equal(sampled.core[:, few], whole.core[:, few])


@pytest.mark.slow
def test_more_than_20_columns_are_refused_for_the_grid():
  names = [f"c{i}" for i in range(21)]
  _, asked = disclosure.questions(names, names, step=1.0)
  model = models.logistic(2)
  params = model.init(jax.random.key(0), jnp.zeros(21))
  law = disclosure.fit_gaussian(np.eye(21, dtype="f4"))
  with pytest.raises(checks.ArgumentError, match=r"at most 20 sensitive.*Inter"):
    disclosure.disclose(
      model,
      params,
      law,
      asked,
      np.zeros((3, 21), "f4"),
      pure=_core_sets.GridTest(),
      key=jax.random.key(0),
    )
