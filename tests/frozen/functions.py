"""Key public functions on fixed inputs: `functions.py functions/NAME FOLDER`.

Each case returns arrays, numbers or trees of them. `freeze.py` keeps every
array, to say which ones differ and by how much.
"""

import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxfair import (
  accounting,
  analysis,
  decisions,
  fairness,
  frontier,
  models,
  pate,
  privacy,
  pruning,
  robustness,
  training,
)
from jaxfair.accounting import _composition, _dp_sgd, _pate_gnmax, _pate_threshold, _truncation
from jaxfair.analysis import _curvature, _group_gradients
from jaxfair.decisions import _curvature as decisions_curvature
from jaxfair.decisions import _problems
from jaxfair.fairness import _counter_sequence, _wasserstein
from jaxfair.pate import _aggregation
from jaxfair.robustness import _gaussians
from jaxfair.training import _erm
from jaxfair.types import Examples

KEY = jax.random.key(17)
CASES: dict[str, Callable[[], Any]] = {}
SOFTMAX = models.logistic(3)
MLP = models.mlp((8,), 3)
LOSS = models.cross_entropy
VOTES = np.array([[40, 6, 4], [20, 18, 12], [17, 17, 16], [0, 50, 0], [25, 25, 0]], np.int32)
COUNTS = np.array([120.0, 30.0, 7.0, 410.0])
WEIGHTS = np.array([1.0, 1.5, 1.2, 0.9])
ORDERS = (1.5, 2.0, 8.0, 32.0)


def frozen(function: Callable[[], Any]) -> Callable[[], Any]:
  """Adds a case, named by its function."""
  CASES[function.__name__] = function
  return function


def people(n: int = 48, shape: tuple[int, ...] = (5,)) -> Examples:
  """Made-up people of three classes and two groups."""
  rng = np.random.default_rng(5)
  y = rng.integers(0, 3, n).astype(np.int32)
  x = rng.normal(size=(n, *shape)) + y.reshape(n, *[1] * len(shape))
  group = rng.integers(0, 2, n).astype(np.int32)
  return Examples(x.astype(np.float32), y, group)


def network() -> tuple[Any, Examples]:
  """The small network's first parameters, and people for it."""
  examples = people()
  return MLP.init(KEY, examples.x[0]), examples


def plain() -> training.FitConfig:
  """A short plain training."""
  return training.FitConfig(learning_rate=0.2, steps=6, batch_size=8, optimizer=optax.sgd)


@frozen
def fit() -> Any:
  adam = training.FitConfig(steps=6, batch_size=16, weight_decay=0.1)
  return (
    training.fit(SOFTMAX, LOSS, people(), plain(), key=KEY),
    training.fit(MLP, LOSS, people(), adam, key=KEY),
  )


@frozen
def fit_convolutions() -> Any:
  net = models.convnet(3, (models.Conv(4),), (8,))
  return training.fit(net, LOSS, people(24, (8, 8, 1)), plain(), key=KEY)


@frozen
def fit_many() -> Any:
  keys = jax.random.split(KEY, 3)
  return training.fit_many(MLP, LOSS, people(), plain(), keys=keys)


@frozen
def dp_sgd() -> Any:
  config = training.DpSgdConfig(learning_rate=0.2, steps=6, batch_size=8)
  layers = dataclasses.replace(config, per_layer=True, l2_clip=0.5)
  slow = dataclasses.replace(config, method="vmap")
  return [training.dp_sgd(MLP, LOSS, people(), made, key=KEY) for made in (config, layers, slow)]


@frozen
def fair_dp_sgd() -> Any:
  config = training.DpSgdConfig(learning_rate=0.2, steps=4, batch_size=8)
  public = people(20)
  return training.fair_dp_sgd(
    SOFTMAX,
    LOSS,
    people(),
    config,
    public_x=public.x,
    public_group=public.group,
    num_groups=2,
    lam=1.0,
    sample=16,
    key=KEY,
  )


@frozen
def lagrangians() -> Any:
  notion = fairness.constraints.equalized_odds(2, 3)
  shared = {
    "constraint": notion,
    "learning_rate": 0.2,
    "rounds": 2,
    "steps_per_round": 3,
    "batch_size": 8,
    "optimizer": optax.sgd,
  }
  return (
    training.lagrangian(SOFTMAX, LOSS, people(), training.LagrangianConfig(**shared), key=KEY),
    training.private_lagrangian(
      SOFTMAX, LOSS, people(), training.PrivateLagrangianConfig(**shared), key=KEY
    ),
  )


@frozen
def solve() -> Any:
  config = _erm.SolveConfig(weight_decay=0.1)
  return _erm.solve(SOFTMAX, LOSS, people(), config, key=KEY)


@frozen
def output_perturbation() -> Any:
  examples = people()
  norms = np.linalg.norm(examples.x, axis=1, keepdims=True)
  examples = examples._replace(x=examples.x / np.maximum(norms, 1.0))
  return training.output_perturbation(SOFTMAX, LOSS, examples, key=KEY)


@frozen
def fair_robust() -> Any:
  config = training.FairRobustConfig(num_groups=2, plain=plain(), penalty=0.5)
  return training.fair_robust(SOFTMAX, LOSS, people(), config, key=KEY)


@frozen
def clipped_grad() -> Any:
  params, examples = network()
  found = {}
  for method in ("ghost", "vmap"):
    for per_layer in (False, True):
      clip = privacy.clipped_grad(MLP, LOSS, l2_clip=0.5, method=method, per_layer=per_layer)
      found[f"{method}, {per_layer}"] = clip(params, examples)
  return found


@frozen
def clipped_grad_convolutions() -> Any:
  net = models.convnet(3, (models.Conv(4),), (8,))
  examples = people(6, (8, 8, 1))
  clip = privacy.clipped_grad(net, LOSS, l2_clip=0.5)
  return clip(net.init(KEY, examples.x[0]), examples)


@frozen
def noises() -> Any:
  zeros, whole = jnp.zeros(50), jnp.zeros(50, jnp.int32)
  source = privacy.exact.seeded(3)
  return {
    "gaussian": privacy.noise.gaussian(zeros, sigma=2.0, key=KEY),
    "laplace": privacy.noise.laplace(zeros, scale=2.0, key=KEY),
    "discrete_gaussian": privacy.noise.discrete_gaussian(whole, sigma=2.0, key=KEY),
    "discrete_laplace": privacy.noise.discrete_laplace(whole, scale=2.0, key=KEY),
    "exact_gaussian": privacy.exact.discrete_gaussian(
      np.zeros(20, np.int64), sigma=2, source=source
    ),
    "exact_laplace": privacy.exact.discrete_laplace(np.zeros(20, np.int64), scale=2, source=source),
  }


@frozen
def samplers() -> Any:
  sampler = privacy.PoissonSampler(100, 0.2, 40)
  values = np.arange(60) % 3
  return (
    [sampler.draw(key=key) for key in jax.random.split(KEY, 3)],
    privacy.randomized_response(values, epsilon=1.0, num_categories=3, key=KEY),
  )


@frozen
def votes() -> Any:
  confident = {"threshold": 15, "sigma_threshold": 4.0, "sigma_answer": 3.0, "key": KEY}
  many = np.tile(VOTES, (8, 1))
  return {
    "plurality": _aggregation.plurality(VOTES, key=KEY),
    "gnmax": pate.gnmax(many, sigma=5.0, key=KEY),
    "confident": _aggregation.confident_gnmax(many, **confident),
    "soft": pate.soft_labels(many, sigma=5.0, key=KEY),
    "fair": pate.fair_gnmax(
      many, np.arange(40) % 2, num_groups=2, max_gap=0.2, min_count=5, **confident
    ),
  }


@frozen
def teachers() -> Any:
  parts = jax.tree.map(lambda leaf: leaf.reshape(4, 12, *leaf.shape[1:]), people())
  config = training.FitConfig(steps=5, batch_size=6)
  stacked = pate.train_teachers(MLP, LOSS, parts, config, key=KEY)
  return stacked, pate.predict_votes(MLP, stacked, people(10).x)


@frozen
def accountants() -> Any:
  steps = {"sampling_rate": 0.02, "steps": 300, "delta": 1e-5}
  return {
    "pld": _dp_sgd.dp_sgd_epsilon(noise_multiplier=1.1, **steps),
    "rdp": _dp_sgd.dp_sgd_epsilon(noise_multiplier=1.1, accountant="rdp", **steps),
    "calibrated": accounting.calibrate_dp_sgd(epsilon=2.0, accountant="rdp", **steps),
    "gaussian": accounting.gaussian_sigma(epsilon=1.0, delta=1e-5),
    "discrete": accounting.discrete_gaussian_sigma(epsilon=1.0, delta=1e-5),
    "zcdp": accounting.zcdp_epsilon(rho=0.1, delta=1e-5),
    "gnmax": _pate_gnmax.gnmax_rdp(VOTES, sigma=8.0, orders=ORDERS),
    "threshold": _pate_threshold.threshold_rdp(VOTES, threshold=20.0, sigma=8.0, orders=ORDERS),
    "composed": _composition.composed_epsilon(
      accounting.pate_events(sigma=20.0, num_queries=30), delta=1e-5
    ),
    "truncation": _truncation.truncation_delta(
      dataset_size=1000, sampling_rate=0.1, max_batch=150, steps=100
    ),
  }


@frozen
def metrics() -> Any:
  rng = np.random.default_rng(1)
  y, predicted, group = (rng.integers(0, 2, 200) for _ in range(3))
  found = {
    name: getattr(fairness, name)(y, predicted, sensitive_features=group)
    for name in fairness.__all__
    if name.endswith(("_rate", "_difference", "_ratio")) or name == "accuracy"
  }
  found["interval"] = fairness.bootstrap(
    fairness.accuracy, y, predicted, sensitive_features=group, key=KEY, num_draws=50
  )
  found["wasserstein"] = _wasserstein.wasserstein_distances(
    rng.normal(size=200), sensitive_features=group
  )
  rule = fairness.CounterRule(max_gap=0.1, min_count=5)
  found["counted"] = _counter_sequence.admit_in_order(y, group, rule, num_groups=2, num_classes=2)
  return found


@frozen
def curvature() -> Any:
  params, examples = network()
  start = (MLP, LOSS, params, examples)
  return {
    "auto": analysis.hessian_trace(*start, num_groups=2),
    "hutchinson": analysis.hessian_trace(
      *start, num_groups=2, method="hutchinson", key=KEY, probes=5
    ),
    "per person": _curvature.trace_per_person(*start),
    "eigenvalue": analysis.top_eigenvalue(*start, num_groups=2, key=KEY, steps=5),
    "gradients": _group_gradients.group_gradients(*start, num_groups=2),
    "norms": analysis.norms(*start, num_groups=2),
    "closeness": analysis.closeness(MLP.apply(params, examples.x)),
    "flips": analysis.flip_probability(VOTES, sigma=10.0),
  }


@frozen
def pruning_masks() -> Any:
  params, _ = network()
  return [pruning.magnitude_masks(params, 0.5, scope=scope) for scope in ("global", "layer")]


@frozen
def attacks() -> Any:
  params, examples = network()
  how = robustness.pgd(input_range=(-9.0, 9.0), steps=3)
  thresholds = (-1.0, 1.0, np.array([1.5, 2.0]))
  return (
    robustness.attack(MLP, params, examples, how, epsilons=(0.1, 0.5), key=KEY),
    _gaussians.natural_threshold(*thresholds),
    _gaussians.robust_threshold(*thresholds, 0.2),
  )


@frozen
def decision_rules() -> Any:
  problem = decisions.allotment(WEIGHTS)
  release = decisions.LaplaceRelease(2.0)
  return {
    "allotment": problem(COUNTS),
    "trace": decisions_curvature.allotment_trace(COUNTS, weights=WEIGHTS),
    "simulated": decisions.simulate(problem, COUNTS, release=release, draws=200, key=KEY),
    "language": _problems.minority_language(
      np.array([12000.0, 300.0]), np.array([11000.0, 200.0]), np.array([900.0, 10.0])
    ),
  }


@frozen
def frontiers() -> Any:
  values = np.random.default_rng(3).uniform(size=(30, 4))
  better = ("low", "low", "high", "high")
  made = frontier.points(values)
  return (
    frontier.non_dominated(values, better),
    frontier.hypervolume(values, better, reference=(1.0, 1.0, 0.0, 0.0)),
    frontier.select(made, "accurate"),
  )


def arrays(name: str) -> dict[str, np.ndarray]:
  """The arrays of one case by their place in what it returns."""
  found = _plain(CASES[name]())
  leaves = jax.tree_util.tree_leaves_with_path(found)
  return {f"{name}{jax.tree_util.keystr(path)}": _array(leaf) for path, leaf in leaves}


def _plain(value: Any) -> Any:
  """Frozen dataclasses that are no pytrees, as dictionaries."""
  if dataclasses.is_dataclass(value) and jax.tree.leaves(value) == [value]:
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
  if isinstance(value, dict):
    return {str(name): _plain(part) for name, part in value.items()}
  if isinstance(value, tuple | list):
    return [_plain(part) for part in value]
  return value


def _array(leaf: Any) -> np.ndarray:
  if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
    leaf = jax.random.key_data(leaf)
  array = np.asarray(leaf)
  return np.asarray(str(leaf)) if array.dtype == object else array


def main(name: str, folder: str) -> None:
  """Runs one case."""
  path = pathlib.Path(folder)
  path.mkdir(parents=True, exist_ok=True)
  np.savez(path / "arrays.npz", **arrays(name.removeprefix("functions/")))


if __name__ == "__main__":
  main(*sys.argv[1:])
