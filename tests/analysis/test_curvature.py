"""Traces against jax.hessian, closed forms by hand, and their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.curved import KEY, ZOO, moved, people
from jaxfair import checks, models, types
from jaxfair.analysis import hessian_trace
from jaxfair.analysis._by_group import ByGroup
from jaxfair.analysis._curvature import NonPrivateTraces, trace_per_person
from jaxfair.analysis._hessian import group_hessians
from jaxfair.analysis._hessian_residual import plan_residual
from jaxfair.models import _losses
from jaxfair.types import Examples

PEOPLE = people()


def trace(name, method, **more):
  model = ZOO[name]
  params = moved(model, PEOPLE)
  return hessian_trace(
    model, models.cross_entropy, params, PEOPLE, num_groups=2, method=method, **more
  )


def oracle(model, loss, params, examples=PEOPLE):
  found = group_hessians(model, loss, params, examples, num_groups=2)
  return ByGroup(*(np.trace(h, axis1=-2, axis2=-1) for h in found))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "gelu", "shared"])
def test_exact_traces_are_those_of_the_hessian(name):
  model = ZOO[name]
  truth = oracle(model, models.cross_entropy, moved(model, PEOPLE))
  found = trace(name, "auto")
  np.testing.assert_allclose(found.traces.group, truth.group, rtol=1e-5)
  np.testing.assert_allclose(found.traces.population, truth.population, rtol=1e-5)
  assert found.probes == 0
  assert not np.any(found.standard_error.group)


@pytest.mark.slow
def test_all_parameters_one_by_one_give_the_same_for_every_person():
  exact, slow = trace("softmax", "exact"), trace("softmax", "all_parameters")
  np.testing.assert_allclose(exact.per_person, slow.per_person, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def _two_layers(path):
  """Two curved layers; what else there is between the first and the logits differs."""

  def init(key, x_one):
    keys = jax.random.split(key, 4)
    sizes = ((x_one.shape[0], 3), (3, 5), (5, 3), (3, 3 if path == "skip" else 0))
    return [jax.random.normal(k, size) for k, size in zip(keys, sizes, strict=True)]

  def apply(params, x):
    first, second, out, skip = params
    h = jnp.tanh(x @ first)
    if path == "coupled":
      h = h / jnp.sum(jnp.square(h), axis=-1, keepdims=True)
    if path == "reversed":
      h = h[..., ::-1]
    logits = jnp.tanh(h @ second) @ out
    return logits + h @ skip if path == "skip" else logits

  return types.Model(init, apply)


@pytest.mark.slow
@pytest.mark.parametrize(
  ("path", "directions"), [("alone", 3), ("skip", 4), ("coupled", 4), ("reversed", 4)]
)
def test_two_directions_do_only_where_a_layer_acts_through_the_next_matrix(path, directions):
  model = _two_layers(path)
  params = moved(model, PEOPLE)
  assert plan_residual(model, params, PEOPLE.x).directions == directions
  exact, slow = (
    hessian_trace(model, models.cross_entropy, params, PEOPLE, num_groups=2, method=method)
    for method in ("exact", "all_parameters")
  )
  np.testing.assert_allclose(exact.per_person, slow.per_person, rtol=2e-4, atol=1e-4)


def test_gauss_newton_alone_is_not_the_trace_of_a_smooth_network():
  whole, part = trace("gelu", "exact"), trace("gelu", "gauss_newton")
  off = np.abs(part.traces.group / whole.traces.group - 1)
  assert off.min() > 0.01
  assert np.all(part.per_person >= 0)


def test_softmax_regression_has_its_closed_form():
  model = models.logistic(3)
  params = moved(model, PEOPLE)
  f = np.asarray(jax.nn.softmax(model.apply(params, PEOPLE.x)), np.float64)
  length = np.sum(PEOPLE.x.astype(np.float64) ** 2, axis=1) + 1
  by_hand = length * (1 - np.sum(f**2, axis=1))
  found = trace("softmax", "exact").per_person
  np.testing.assert_allclose(found, by_hand, rtol=1e-5)


def one_hidden_layer(params, x, y):
  """The closed form of (3.36) and (3.37), with biases.

  The slope's sign is f - y, where the thesis prints y - f, and the curvature
  of the softmax has cross terms beside its f_k (1 - f_k).
  """
  first, last = params["layer_0"], params["layer_1"]
  hidden = jnp.tanh(x @ first["w"] + first["b"])
  f = jax.nn.softmax(hidden @ last["w"] + last["b"])
  slope = f - jnp.eye(3)[y]
  w = last["w"]  # [hidden, classes]
  up, bend = 1 - hidden**2, -2 * hidden * (1 - hidden**2)
  within = f @ (w.T**2) - (f @ w.T) ** 2
  gamma = bend * (slope @ w.T) + up**2 * within
  top = (1 - jnp.sum(f**2, 1)) * (jnp.sum(hidden**2, 1) + 1)
  return top + (jnp.sum(x**2, 1) + 1) * jnp.sum(gamma, 1)


@pytest.mark.slow
def test_one_hidden_layer_has_its_closed_form_and_derivatives():
  model = models.mlp(4, 3, "tanh")

  @jax.jit
  def both(params):
    def mean_square(of):
      return lambda p: (jnp.mean(of(p) ** 2), of(p))

    return [
      jax.grad(mean_square(of), has_aux=True)(params)
      for of in (
        lambda p: trace_per_person(model, models.cross_entropy, p, PEOPLE),
        lambda p: one_hidden_layer(p, PEOPLE.x, PEOPLE.y),
      )
    ]

  (slopes, found), (expected_slopes, expected) = both(moved(model, PEOPLE))
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
  for ours, theirs in zip(jax.tree.leaves(slopes), jax.tree.leaves(expected_slopes), strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_another_loss_and_real_targets():
  model = models.logistic(1)
  rng = np.random.default_rng(0)
  targets = rng.normal(size=PEOPLE.size).astype(np.float32)
  examples = PEOPLE._replace(y=targets)
  params = model.init(KEY, PEOPLE.x[0])
  found = hessian_trace(model, _losses.squared, params, examples, num_groups=2)
  # Corollary 3.1: twice the mean squared norm, plus 2 for the bias.
  squared = 2 * np.sum(PEOPLE.x**2, axis=1) + 2
  np.testing.assert_allclose(found.per_person, squared, rtol=1e-5)


def test_an_empty_group_is_nan_and_spoils_nobody():
  model = models.logistic(3)
  params = moved(model, PEOPLE)
  found = hessian_trace(model, models.cross_entropy, params, PEOPLE, num_groups=3)
  assert np.isnan(found.traces.group).tolist() == [False, False, True]
  assert np.isfinite(found.traces.population)


def test_the_choice_is_explained():
  model = models.mlp((2000, 30, 30), 2, "tanh")
  examples = people(8, num_classes=2)
  params = model.init(KEY, examples.x[0])
  assert plan_residual(model, params, examples.x).directions == 2003
  with pytest.raises(checks.ArgumentError, match="2003 directions per person"):
    hessian_trace(model, models.cross_entropy, params, examples, num_groups=2)


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"method": "exakt"}, "did you mean exact"),
    ({"method": "hutchinson"}, "pass key="),
    ({"num_groups": 1}, "examples.group has ids from 0 to 1"),
    ({"method": "hutchinson", "key": KEY, "probes": 1}, "probes=1"),
  ],
)
def test_refuses(change, message):
  model = models.logistic(3)
  with pytest.raises(checks.ArgumentError, match=message):
    hessian_trace(
      model, models.cross_entropy, moved(model, PEOPLE), PEOPLE, **{"num_groups": 2, **change}
    )


def test_refuses_nobody():
  nobody = Examples(np.zeros((0, 4), np.float32), *(np.zeros(0, np.int32),) * 2)
  with pytest.raises(checks.ArgumentError, match="examples is empty"):
    hessian_trace(models.logistic(3), models.cross_entropy, {}, nobody, num_groups=2)


def test_intervals_are_student_s():
  found = NonPrivateTraces(
    ByGroup(np.array([10.0]), np.array(20.0)),
    np.zeros(3),
    ByGroup(np.array([1.0]), np.array(2.0)),
    5,
  ).interval(0.95)
  # t with 4 degrees of freedom: 2.776445.
  np.testing.assert_allclose(found.group.low, [10 - 2.776445], rtol=1e-6)
  np.testing.assert_allclose(found.population.high, 20 + 2 * 2.776445)
  exact = trace("softmax", "exact").interval()
  np.testing.assert_array_equal(exact.group.low, exact.group.high)
