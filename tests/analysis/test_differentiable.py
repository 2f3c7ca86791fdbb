"""Derivatives of what the analysis returns, against finite differences in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxfair import analysis, models
from jaxfair.analysis import _boundary
from jaxfair.decisions import _curvature, temper
from jaxfair.decisions._problems import title_one
from jaxfair.types import Examples

RNG = np.random.default_rng(3)
PEOPLE = Examples(
  RNG.normal(size=(12, 3)), RNG.integers(0, 2, 12).astype(np.int32), np.arange(12) % 2
)
MODEL = models.mlp((4,), 2, "tanh")
FLAT = RNG.normal(size=26) * 0.7
WEIGHTS = RNG.normal(size=8)
LOSS = models.cross_entropy


def unflatten(flat):
  """The parameters of the network, in float64."""
  shapes = jax.eval_shape(lambda: MODEL.init(jax.random.key(0), PEOPLE.x[0]))
  leaves, treedef = jax.tree.flatten(shapes)
  sizes = np.cumsum([leaf.size for leaf in leaves])[:-1]
  parts = jnp.split(flat, sizes)
  shaped = [p.reshape(leaf.shape) for p, leaf in zip(parts, leaves, strict=True)]
  return jax.tree.unflatten(treedef, shaped)


def with_x(flat):
  return PEOPLE._replace(x=flat.reshape(12, 3))


def trace(params, people):
  found = analysis.hessian_trace(MODEL, LOSS, params, people, num_groups=2, method="exact")
  return found.traces.group


def eigenvalue(params, people):
  key = jax.random.key(1)
  found = analysis.top_eigenvalue(MODEL, LOSS, params, people, num_groups=2, key=key, steps=26)
  return found.values.group


def excess(private, optimum):
  stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(unflatten, private))
  found = analysis.excess_risk(MODEL, LOSS, stacked, unflatten(optimum), PEOPLE, num_groups=2)
  return jnp.concatenate([found.loss.group.estimate, found.loss.gap.high])


def decision_trace(counts):
  problem = functools.partial(title_one, weights=np.abs(WEIGHTS[:4]) + 1)
  return _curvature.decision_trace(problem, counts)


COUNTS = np.array([[30.0, 12.0, 8.0], [20.0, 18.0, 12.0], [50.0, 0.0, 0.0]])
CASES = {
  "closeness by logits": (analysis.closeness, RNG.normal(size=(3, 4))),
  "top_two_margin by scores": (_boundary.top_two_margin, RNG.normal(size=(3, 4))),
  "flip_probability by sigma": (
    lambda s: analysis.flip_probability(COUNTS, sigma=s[0]),
    np.array([7.0]),
  ),
  "flip_probability by counts": (
    lambda c: analysis.flip_probability(c, sigma=7.0),
    COUNTS[:2] + np.array([0.3, 0.0, 0.1]),
  ),
  "clipping_margin by norms, shares, clip and variance": (
    lambda v: analysis.StepSettings(0.1, v[4], 1.0, 0.1).clipping_margin(
      v[:2], v[2:4], batch_variance=v[5]
    ),
    np.array([40.0, 2.0, 0.6, 0.4, 0.3, 0.2]),
  ),
  "vote_margin by counts": (analysis.vote_margin, COUNTS[:2]),
  "hessian_trace by parameters": (lambda v: trace(unflatten(v), PEOPLE), FLAT),
  "hessian_trace by features": (lambda x: trace(unflatten(FLAT), with_x(x)), PEOPLE.x.ravel()),
  "top_eigenvalue by parameters": (lambda v: eigenvalue(unflatten(v), PEOPLE), FLAT),
  "top_eigenvalue by features": (
    lambda x: eigenvalue(unflatten(FLAT), with_x(x)),
    PEOPLE.x.ravel(),
  ),
  "predicted_excess by sigma": (
    lambda s: (
      analysis.predicted_excess(
        analysis.hessian_trace(MODEL, LOSS, unflatten(FLAT), PEOPLE, num_groups=2).traces,
        sigma=s[0],
      ).group
    ),
    np.array([0.3]),
  ),
  "excess_risk by private": (
    lambda p: excess(p, FLAT),
    FLAT + 0.3 * np.random.default_rng(1).normal(size=(3, 26)),
  ),
  "excess_risk by optimum": (
    lambda o: excess(FLAT + 0.3 * np.random.default_rng(1).normal(size=(3, 26)), o),
    FLAT,
  ),
  "decision_trace by counts": (decision_trace, np.array([30.0, 12.0, 80.0, 44.0])),
  "temper by values": (lambda v: temper(v, temperature=2.0), np.array([-3.0, 0.5, 4.0])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_that_of_finite_differences(name):
  function, at = CASES[name]
  with jax.enable_x64(True):
    at = jnp.asarray(at, jnp.float64)
    size = jax.eval_shape(lambda v: jnp.ravel(function(v)), at).size
    weights = jnp.asarray(np.random.default_rng(5).normal(size=size))
    direction = jnp.asarray(np.random.default_rng(7).normal(size=at.shape))

    @jax.jit
    def scalar(v):
      return weights @ jnp.ravel(function(v))

    slope = float(jnp.vdot(jax.grad(scalar)(at), direction))
    step = 1e-5
    differences = [
      float(scalar(at + h * direction) - scalar(at - h * direction)) / (2 * h)
      for h in (step, step / 2)
    ]
  # Richardson: what is left is of fourth order in the step.
  expected = (4 * differences[1] - differences[0]) / 3
  assert abs(expected) > 1e-7  # a test of zero would test nothing
  np.testing.assert_allclose(slope, expected, rtol=1e-6)


def _norms(v):
  people = Examples(*map(jnp.asarray, (np.float32(PEOPLE.x), PEOPLE.y, PEOPLE.group)))
  return analysis.norms(MODEL, LOSS, unflatten(v), people, num_groups=2).mean_gradient.group


def _terms(params, settings):
  people = Examples(*map(jnp.asarray, (np.float32(PEOPLE.x), PEOPLE.y, PEOPLE.group)))
  step = analysis.StepSettings(settings[0], settings[1], settings[2], 0.3)
  found = analysis.decompose(MODEL, LOSS, params, people, step, num_groups=2, method="exact")
  parts = (found.clipping_slope, found.clipping_curvature, found.noise)
  return jnp.concatenate([part.group for part in parts])


SETTINGS = np.array([0.1, 0.5, 1.0])  # rate, clip, noise
SINGLE = {
  "norms by parameters": (_norms, FLAT),
  "decompose by parameters": (lambda v: _terms(unflatten(v), SETTINGS), FLAT),
  "decompose by rate, clip and noise": (
    lambda s: _terms(unflatten(jnp.float32(FLAT)), s),
    SETTINGS,
  ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SINGLE)
def test_what_reads_clipped_gradients_has_a_gradient_in_float32(name):
  """Clipping refuses float64, so these agree to what differences in float32 can show."""
  function, at = SINGLE[name]
  at = jnp.asarray(at, jnp.float32)
  direction = jnp.asarray(np.random.default_rng(7).normal(size=at.shape), jnp.float32)
  direction = direction / jnp.linalg.norm(direction)

  @jax.jit
  def values(v):
    return jnp.ravel(function(v))

  slope = jax.jit(jax.jacrev(values))(at) @ direction
  step = 2e-2 * float(jnp.linalg.norm(at))
  expected = (values(at + step * direction) - values(at - step * direction)) / (2 * step)
  np.testing.assert_allclose(slope, expected, rtol=0.05, atol=0.03 * float(jnp.abs(expected).max()))
