"""Everything that runs on a device lowers for TPU and CUDA, and the programs are fit for them.

No accelerator is needed: `jax.export` lowers for another platform, and the program is read.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from training import test_conformance as trainers

from jaxfair import analysis, models, pate, privacy, robustness, training
from jaxfair.data import bound_rows
from jaxfair.pate import _aggregation
from jaxfair.privacy import noise
from jaxfair.robustness import _attacks, _norm_balls
from jaxfair.training import _erm, fit_many
from jaxfair.types import Examples

PLATFORMS = ("tpu", "cuda")
KEY = jax.random.key(0)
MLP, LOSS = models.mlp((5,), 3), models.cross_entropy
PEOPLE = trainers.make(n=12)
PARAMS = MLP.init(KEY, PEOPLE.x[0])
COUNTS = np.random.default_rng(0).integers(0, 9, (6, 3)).astype(np.int32)


class Row(NamedTuple):
  """A program.

  Attributes:
    function: of arrays.
    arguments: examples of them.
    float64: why it computes in float64; "" if it does not.
    calls: custom calls that it may make: the platform's own kernels.
  """

  function: Callable[..., Any]
  arguments: tuple[Any, ...]
  float64: str = ""
  calls: frozenset[str] = frozenset()


def of_model(function, calls=frozenset(), **options):
  """An analysis of a model and its people."""
  return Row(
    lambda params, people: jax.tree.leaves(function(MLP, LOSS, params, people, **options)),
    (PARAMS, PEOPLE),
    calls=calls,
  )


def of_counts(function, **options):
  """An aggregator of votes."""
  return Row(lambda counts, key: function(counts, key=key, **options), (COUNTS, KEY))


def of_noise(mechanism, **options):
  return Row(lambda value, key: mechanism(value, key=key, **options), (COUNTS, KEY))


def attacked(how, stop):
  def run(params, people, key):
    found = robustness.attack(
      MLP, params, people, how, epsilons=[0.1, 0.2], key=key, batch_size=8, stop=stop
    )
    return found.x, found.success

  return Row(run, (PARAMS, PEOPLE._replace(x=np.clip(PEOPLE.x, 0, 1)), KEY))


def solved(method, *, bounded=False):
  """The device's part of `solve`, and of output perturbation, whose noise is drawn on the host."""

  def run(start, people):
    if bounded:
      people = people._replace(x=bound_rows(people.x, 1.0))
    return _erm._solved(
      models.logistic(3), LOSS, people, start, 0.1, 1e-8, method=method, max_steps=9
    )

  start = models.logistic(3).init(KEY, PEOPLE.x[0])
  wide = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), start)
  # Cholesky factors: cuSOLVER and cuBLAS on CUDA; a TPU has them built in.
  calls = frozenset({"Cholesky", "cusolver_potrf_ffi", "cublas_trsm_ffi"})
  return Row(
    run,
    (wide, PEOPLE._replace(x=PEOPLE.x.astype(np.float64))),
    float64="to a gradient norm of 1e-8 and below",
    calls=calls,
  )


def many(people, key):
  config = training.FitConfig(steps=3, batch_size=4)
  return fit_many(MLP, LOSS, people, config, keys=jax.random.split(key, 2))


def drawn(size, rate, cap):
  sampler = privacy.PoissonSampler(size, rate, cap)
  return Row(lambda key: sampler.draw(key=key), (KEY,))


def clipped(method):
  gradient = privacy.clipped_grad(MLP, LOSS, l2_clip=1.0, method=method)
  return Row(lambda params, people: gradient(params, people).total, (PARAMS, PEOPLE))


def one_hessian(params, people):
  return analysis.hessian_trace(
    MLP, LOSS, params, people, num_groups=2, method="hutchinson", key=jax.random.key(0), probes=3
  )


UNIT = (0.0, 1.0)
STEP = analysis.StepSettings(0.1, 1.0, 1.0, 0.5)
ROWS = {
  **{
    name: Row(row.train, (PEOPLE, KEY))
    for name, row in trainers.TRAINERS.items()
    if not row.untraceable
  },
  "solve, Newton": solved("newton"),
  "solve, L-BFGS": solved("lbfgs"),
  "output_perturbation": solved("newton", bounded=True),
  "fit_many": Row(many, (PEOPLE, KEY)),
  "clipped_grad": clipped("ghost"),
  "clipped_grad, vmap": clipped("vmap"),
  "PoissonSampler": drawn(40, 0.2, 20),
  "PoissonSampler, many people": drawn(10**8, 1e-6, 150),
  "gaussian": Row(lambda v, key: noise.gaussian(v, sigma=1.0, key=key), (PARAMS, KEY)),
  "laplace": Row(lambda v, key: noise.laplace(v, scale=1.0, key=key), (PARAMS, KEY)),
  "discrete_gaussian": of_noise(noise.discrete_gaussian, sigma=2.0),
  "discrete_laplace": of_noise(noise.discrete_laplace, scale=2.0),
  "randomized_response": of_noise(privacy.randomized_response, epsilon=1.0, num_categories=9),
  "gnmax": of_counts(pate.gnmax, sigma=2.0),
  "confident_gnmax": of_counts(
    _aggregation.confident_gnmax, threshold=5.0, sigma_threshold=2.0, sigma_answer=1.0
  ),
  "soft_labels": of_counts(pate.soft_labels, sigma=2.0),
  "plurality": of_counts(_aggregation.plurality),
  "hessian_trace": of_model(analysis.hessian_trace, num_groups=2),
  "hessian_trace, estimated": Row(one_hessian, (PARAMS, PEOPLE)),
  "top_eigenvalue": of_model(
    # Of a matrix as small as the number of steps.
    analysis.top_eigenvalue,
    frozenset({"Eigh", "cusolver_syevd_ffi"}),
    num_groups=2,
    key=KEY,
    steps=4,
  ),
  "norms": of_model(analysis.norms, num_groups=2),
  "decompose": of_model(analysis.decompose, settings=STEP, num_groups=2),
  "excess_risk": Row(
    lambda private, best, people: jax.tree.leaves(
      analysis.excess_risk(MLP, LOSS, private, best, people, num_groups=2)
    ),
    (jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), PARAMS), PARAMS, PEOPLE),
  ),
  "closeness": Row(analysis.closeness, (COUNTS.astype(np.float32),)),
  "flip_probability": Row(
    lambda counts: analysis.flip_probability(counts, sigma=2.0),
    (COUNTS.astype(np.float32),),
    float64="differences of probabilities that are nearly 1",
  ),
  "FGSM": attacked(_attacks.fgsm(input_range=UNIT), "end"),
  "R+FGSM": attacked(_attacks.rfgsm(input_range=UNIT), "end"),
  "PGD": attacked(_attacks.pgd(_norm_balls.L2, input_range=UNIT, steps=2), "end"),
  "PGD, smallest": attacked(_attacks.pgd(input_range=UNIT, steps=2), "smallest"),
}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
  """Code that asks where it runs is told an accelerator."""
  monkeypatch.setattr(jax, "default_backend", lambda: "tpu")


def lowered(row: Row) -> str:
  """The program for both platforms, as text."""
  with jax.enable_x64(bool(row.float64)):
    made = jax.export.export(jax.jit(row.function), platforms=PLATFORMS)(*row.arguments)
  return made.mlir_module()


def contractions(text: str) -> list[str]:
  """The lines of all matrix products and convolutions."""
  return re.findall(r"^.*stablehlo\.(?:dot_general|convolution).*$", text, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_lowers_for_accelerators(name):
  row = ROWS[name]
  text = lowered(row)
  calls = set(re.findall(r"custom_call @(\w+)", text))
  assert not [call for call in calls if "callback" in call], "the host is called"
  assert calls <= row.calls
  wide = re.search(r"tensor<(?:\w+x)*f64>", text) is not None
  assert wide == bool(row.float64)


def test_every_trainer_has_a_row():
  missing = set(trainers.TRAINERS) - set(ROWS)
  assert missing == {"solve"}  # which has two, one for each method


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ghost", "vmap"])
def test_clipping_keeps_all_digits(method):
  """What norms and clipped sums are made of is multiplied in full precision.

  Products of default precision are the network's own: as many as its forward pass and the
  gradient by its data take.
  """

  def own(params, people):
    losses = lambda x: jnp.sum(LOSS(MLP.apply(params, x), people.y))  # noqa: E731
    return jax.value_and_grad(losses)(people.x)

  short = [
    [line for line in contractions(lowered(row)) if "precision = [HIGHEST, HIGHEST]" not in line]
    for row in (clipped(method), Row(own, (PARAMS, PEOPLE)))
  ]
  full = len(contractions(lowered(clipped(method)))) - len(short[0])
  if method == "ghost":
    assert len(short[0]) <= len(short[1])
    assert full >= 2  # the clipped sums of two layers
  else:
    assert full >= 1


@pytest.mark.slow
def test_only_a_cpu_takes_thin_products_by_columns(monkeypatch):
  """Two classes: products with two columns stay products."""
  people = Examples(np.tile(PEOPLE.x, 2), PEOPLE.y % 2, PEOPLE.group)

  def train(people, key):
    config = training.FitConfig(steps=2, batch_size=4)
    return training.fit(models.logistic(2), LOSS, people, config, key=key).params

  there = contractions(lowered(Row(train, (people, KEY))))
  jax.clear_caches()
  monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
  here = contractions(lowered(Row(train, (people, KEY))))
  jax.clear_caches()
  single = re.compile(r"\(tensor<\d+xf32>|tensor<\d+xf32>\)")  # a vector is multiplied
  assert there
  assert not any(map(single.search, there))
  assert any(map(single.search, here))
