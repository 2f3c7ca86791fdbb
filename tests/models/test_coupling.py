"""Functions of a batch, coupled and not, before the search and the probe."""

import functools

import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxfair import checks, models
from jaxfair.models import _coupling, _dependence, _losses, _probe
from jaxfair.types import Model

KEY = jax.random.key(0)
FEATURES = 6


def flax_function(module, shape, **rngs):
  """apply in training mode, with what is not a parameter thrown away."""
  variables = module.init({"params": KEY, **rngs}, jnp.zeros((1, *shape)))
  params = variables.pop("params")

  def apply(params, x):
    out, _ = module.apply({"params": params, **variables}, x, mutable=True)
    return out

  return apply, params


@functools.cache
def flax_batch_norm():
  module = nn.Sequential([nn.Dense(4), nn.BatchNorm(use_running_average=False), nn.Dense(2)])
  return flax_function(module, (FEATURES,))


@functools.cache
def flax_running_norm():
  module = nn.Sequential([nn.Dense(4), nn.BatchNorm(use_running_average=True)])
  return flax_function(module, (FEATURES,))


@functools.cache
def haiku_batch_norm():
  def network(x):
    x = hk.Linear(4)(x)
    return hk.BatchNorm(True, True, 0.9)(x, is_training=True)

  pure = hk.transform_with_state(network)
  params, state = pure.init(KEY, jnp.zeros((1, FEATURES)))
  return lambda params, x: pure.apply(params, state, None, x)[0], params


def normal(*shape):
  return np.random.default_rng(0).standard_normal(shape, np.float32)


W = normal(FEATURES, 3)


def plain(function):
  """A linear map of what the function makes of the features."""
  return lambda: (lambda params, x: function(x) @ params, W)


def scaled(function):
  """The coupling is switched off by a zero parameter."""

  def apply(params, x):
    return x @ params["w"] + params["scale"] * function(x)

  return lambda: (apply, {"w": W, "scale": np.float32(0)})


@jax.custom_vjp
def coupled_backwards(x):
  return x


coupled_backwards.defvjp(lambda x: (x, x.mean()), lambda mean, g: (g * (1 + mean),))


def running(x):
  """A scan over the batch."""

  def step(total, row):
    return total + row, total + row

  return jax.lax.scan(step, jnp.zeros(FEATURES), x)[1]


# name: a thunk that makes (apply, params)
COUPLED = {
  "flax BatchNorm": flax_batch_norm,
  "haiku BatchNorm": haiku_batch_norm,
  "mean subtracted": plain(lambda x: x - x.mean(0)),
  "mean without gradient": plain(lambda x: x - jax.lax.stop_gradient(x.mean(0))),
  "softmax over axis 0": plain(lambda x: jax.nn.softmax(x, axis=0)),
  "attention over the batch": plain(lambda x: jax.nn.softmax(x @ x.T) @ x),
  "divided by the largest": plain(lambda x: x / jnp.max(x)),
  "running sum": plain(lambda x: jnp.cumsum(x, axis=0)),
  "sorted": plain(lambda x: jnp.sort(x, axis=0)),
  "ranks": plain(lambda x: jnp.argsort(x, axis=0).astype(jnp.float32)),
  "reversed": plain(lambda x: x[::-1]),
  "shifted": plain(lambda x: jnp.roll(x, 1, axis=0)),
  "the first row": plain(lambda x: x + x[:1]),
  "scan over the batch": plain(running),
  "zero scale times mean": scaled(lambda x: x.mean()),
  "zero scale times maximum": scaled(lambda x: jnp.max(jnp.abs(x))),
  "zeroed if any is not finite": plain(lambda x: jnp.where(jnp.all(jnp.isfinite(x)), x, 0.0)),
  "above the median": plain(lambda x: (x > jnp.median(x, 0)) * 1.0),
  "outer product": plain(lambda x: (x[:, None] * x[None]).sum(1)),
  "convolution along the batch": plain(
    lambda x: jnp.apply_along_axis(lambda column: jnp.convolve(column, jnp.ones(2), "same"), 0, x)
  ),
}
# Backwards only: nothing in the forward program shows it.
COUPLED_BACKWARDS = {"custom reverse rule": plain(coupled_backwards)}


@functools.cache
def attention():
  module = nn.MultiHeadDotProductAttention(num_heads=2)
  inner, params = flax_function(module, (3, 2))
  return lambda p, x: inner(p, x.reshape(-1, 3, 2)).sum(1), params


@functools.cache
def recurrent():
  module = nn.RNN(nn.GRUCell(4))
  inner, params = flax_function(module, (3, 2))
  return lambda p, x: inner(p, x.reshape(-1, 3, 2))[:, -1], params


def tokens():
  def apply(table, x):
    ids = (x > 0).astype(jnp.int32)
    return jnp.take(table, ids, axis=0).sum(1)

  return apply, normal(2, 5)


def merged(params, x):
  """Rows and positions in one axis, and apart again."""
  y = jnp.tanh(x.reshape(-1, 2) @ params)
  return y.reshape(x.shape[0], -1)


INDEPENDENT = {
  "linear": plain(lambda x: x),
  "wide": lambda: (lambda w, x: x @ w @ w.T, normal(FEATURES, 4096)),
  "GroupNorm": lambda: flax_function(nn.GroupNorm(3), (FEATURES,)),
  "LayerNorm": lambda: flax_function(nn.LayerNorm(), (FEATURES,)),
  "BatchNorm in evaluation": flax_running_norm,
  "attention within an example": attention,
  "recurrent": recurrent,
  "embedding": tokens,
  "merged rows": lambda: (merged, normal(2, 4)),
  "written for one example": lambda: (jax.vmap(lambda w, one: jnp.sort(one) @ w, (None, 0)), W),
  "NaN replaced": plain(jnp.nan_to_num),
  "feature statistics": plain(
    lambda x: jnp.concatenate([x[:, 1:], jnp.median(x, axis=1, keepdims=True)], axis=1)
  ),
  "best features": lambda: (lambda w, x: jax.lax.top_k(x, 3)[0] @ w, normal(3, 2)),
  "its own pairs": lambda: (
    lambda w, x: jnp.einsum("ni,nj,ijk->nk", x, x, w),
    normal(FEATURES, FEATURES, 2),
  ),
  "rematerialized": plain(jax.checkpoint(lambda x: jnp.sin(x) * 2)),
  "constant": lambda: (lambda w, x: jnp.zeros((x.shape[0], 2)) + w, W[0, 0]),
  "slope infinite at zero": plain(lambda x: jnp.sqrt(jnp.abs(x))),
}

X = normal(5, FEATURES)


def couples(model, params, x):
  return bool(_coupling._coupling(model.apply, params, (x,)))


def model_of(make):
  apply, params = make()
  return Model(lambda key, x_one: params, apply), params


@pytest.mark.slow
@pytest.mark.parametrize("name", COUPLED)
def test_the_search_never_passes_a_coupled_function(name):
  apply, params = COUPLED[name]()
  state = _dependence.analyze(apply, params, (X,))
  assert isinstance(state, _dependence.Mixed | _dependence.Unknown)


@pytest.mark.slow
@pytest.mark.parametrize("name", COUPLED | COUPLED_BACKWARDS)
def test_the_probe_finds_the_coupling_too(name):
  apply, params = (COUPLED | COUPLED_BACKWARDS)[name]()
  assert _probe.changes(apply, params, (X,))


# What the search leaves to the probe, because rows are moved or looped over.
PROBED = {"recurrent"}


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEPENDENT)
def test_the_search_proves_independence(name):
  apply, params = INDEPENDENT[name]()
  state = _dependence.analyze(apply, params, (X,))
  assert isinstance(state, _dependence.Unknown) == (name in PROBED)
  assert name in PROBED or state in (0, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEPENDENT)
def test_the_probe_has_no_false_alarm(name):
  apply, params = INDEPENDENT[name]()
  assert _probe.changes(apply, params, (X,)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", COUPLED | COUPLED_BACKWARDS)
def test_coupled_models_are_refused(name):
  model, params = model_of((COUPLED | COUPLED_BACKWARDS)[name])
  assert couples(model, params, X)
  with pytest.raises(_coupling.CouplingError, match="use GroupNorm or LayerNorm"):
    models.check_independent(model, params, X)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_models_pass(name):
  model, params = model_of(INDEPENDENT[name])
  assert not couples(model, params, X)
  models.check_independent(model, params, X)


def test_the_message_says_what_couples():
  model, params = model_of(COUPLED["mean subtracted"])
  with pytest.raises(checks.JaxfairError, match="reduce_sum across the batch"):
    models.check_independent(model, params, X)


def test_a_coupling_behind_a_comparison_is_found_by_the_search():
  """No value the probe tries crosses the bound, and NaN compares as false."""
  model, params = model_of(plain(lambda x: jnp.where(x.mean() > 1e9, 0.0, x)))
  assert couples(model, params, X)


def test_statistics_that_go_nowhere_are_no_coupling():
  def apply(w, x):
    unused = x.mean(0)
    del unused
    return x @ w

  model = Model(None, apply)
  assert not couples(model, W, X)


@pytest.mark.parametrize(
  "function",
  [
    lambda x: x / x.shape[0],
    lambda x: x / jnp.float32(x.shape[0]),
    lambda x: x if x.shape[0] > 1 else -x,
  ],
)
def test_a_function_of_the_batch_size_is_refused(function):
  model, params = model_of(plain(function))
  with pytest.raises(_coupling.CouplingError, match="one example alone"):
    models.check_independent(model, params, X)


def test_parameters_may_be_plain_numbers():
  model = Model(None, lambda scale, x: scale * coupled_backwards(x))
  assert couples(model, 2.0, X)
  model = Model(None, lambda scale, x: scale * x)
  assert not couples(model, 2.0, X)


def test_shapes_are_enough():
  shapes = jax.eval_shape(lambda: (jnp.asarray(W), jnp.asarray(X)))
  for table, coupled in ((COUPLED, True), (INDEPENDENT, False)):
    name = "scan over the batch" if coupled else "linear"
    model, _ = model_of(table[name])
    assert couples(model, *shapes) == coupled


def test_works_while_a_training_is_traced():
  model, params = model_of(INDEPENDENT["recurrent"])
  bad, bad_params = model_of(COUPLED["shifted"])

  @jax.jit
  def fit(params, bad_params, x):
    models.check_independent(model, params, x)
    assert couples(bad, bad_params, x)
    return x

  fit(params, bad_params, X)


def test_outputs_that_are_never_finite_show_nothing():
  def apply(w, x):
    # A loop, for which the search has no rule.
    return jax.lax.fori_loop(0, 2, lambda _, s: s / 0.0, x @ w)

  with pytest.raises(_coupling.CouplingError, match="not finite"):
    models.check_independent(Model(None, apply), W, X)


def test_integer_inputs_are_probed_by_exchanging_rows():
  ids = np.arange(10).reshape(5, 2) % 3
  table = normal(3, 4)

  def looked_up(table, ids):
    return table[ids].sum(1)

  def shifted(table, ids):
    return table[jnp.roll(ids, 1, axis=0)].sum(1)

  assert not couples(Model(None, looked_up), table, ids)
  assert couples(Model(None, shifted), table, ids)
  assert _probe.changes(looked_up, table, (ids,)) == ""


def test_what_shapes_decide_is_worked_out_once(monkeypatch):
  calls = []
  analyze = _dependence.analyze

  def counted(*args):
    calls.append(1)
    return analyze(*args)

  monkeypatch.setattr(_dependence, "analyze", counted)
  model, _ = model_of(INDEPENDENT["linear"])
  models.check_independent(model, W, X)
  models.check_independent(model, 2 * W, X[:2])
  assert len(calls) == 1
  models.check_independent(model, W[:4], X[:, :4])
  assert len(calls) == 2


LOSSES = [
  (models.cross_entropy, 0),
  (models.soft_cross_entropy, np.zeros(3)),
  (_losses.squared, 0),
  (_losses.squared, np.zeros(3)),
  (_losses.ramp, 0),
  (_losses.exponential, 0),
  (models.zero_one, 0),
  (optax.losses.softmax_cross_entropy_with_integer_labels, 0),
  (optax.losses.safe_softmax_cross_entropy, np.zeros(3)),
  (jax.vmap(lambda logits, y: -jax.nn.log_softmax(logits)[y]), 0),
]


@pytest.mark.parametrize(("loss", "y_one"), LOSSES)
def test_losses_per_example_pass(loss, y_one):
  _coupling.check_loss(loss, 3, y_one=y_one)


def test_a_regression_passes():
  _coupling.check_loss(_losses.squared, 1, y_one=0.0)


def test_a_target_without_a_value_is_enough():
  target = jax.ShapeDtypeStruct((3,), jnp.float32)
  _coupling.check_loss(models.soft_cross_entropy, 3, y_one=target)

  @jax.jit
  def traced(y):
    _coupling.check_loss(models.cross_entropy, 3, y_one=y[0])
    return y

  traced(np.arange(3))


@pytest.mark.slow
@pytest.mark.parametrize(
  ("loss", "message"),
  [
    (lambda logits, y: models.cross_entropy(logits, y).mean(), r"shape \(\),"),
    (lambda logits, y: models.cross_entropy(logits, y).sum(), r"shape \(\),"),
    (lambda logits, y: jax.nn.log_softmax(logits), r"shape \(4, 3\)"),
    (
      lambda logits, y: jnp.full(len(y), models.cross_entropy(logits, y).mean()),
      "reduce_sum across the batch",
    ),
    (lambda logits, y: models.cross_entropy(logits, y) / len(y), "one example alone"),
    (
      lambda logits, y: models.cross_entropy(logits - logits.max(), y),
      "reduce_max across the batch",
    ),
    (lambda logits, y: models.cross_entropy(logits, y) * jnp.bincount(y, length=3)[y], "couples"),
  ],
)
def test_other_losses_are_refused(loss, message):
  with pytest.raises(_coupling.CouplingError, match=message):
    _coupling.check_loss(loss, 3)


def test_errors_are_errors_of_the_library():
  assert issubclass(_coupling.CouplingError, checks.JaxfairError)
