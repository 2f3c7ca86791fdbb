import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special

from jaxfair import checks, models
from jaxfair.models import _losses

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(50, 4)).astype(np.float32)
Y = RNG.integers(0, 4, 50).astype(np.int32)
LOSSES = {
  "cross_entropy": models.cross_entropy,
  "soft_cross_entropy": lambda logits, y: models.soft_cross_entropy(
    logits, jax.nn.one_hot(y, logits.shape[-1])
  ),
  "squared": _losses.squared,
  "ramp": _losses.ramp,
  "exponential": _losses.exponential,
  "zero_one": models.zero_one,
}
HUGE = np.array(
  [
    [1e4, -1e4, 0, 0],
    [-1e4, 1e4, 0, 0],
    [1e4, 1e4, 1e4, 1e4],
    [-1e4, -1e4, -1e4, -1e4],
    [0, 0, 0, 0],
    [1e4, 1e4 - 5, 0, 0],
  ],
  np.float32,
)


def others(logits, y):
  """The best score that is not y's, one row at a time."""
  return np.array(
    [
      max(score for c, score in enumerate(row) if c != label)
      for row, label in zip(logits.tolist(), y.tolist(), strict=True)
    ]
  )


def margins(logits, y):
  return logits[np.arange(len(y)), y].astype(float) - others(logits, y)


def test_cross_entropy_equals_scipy():
  expected = -scipy.special.log_softmax(LOGITS.astype(float), axis=1)
  np.testing.assert_allclose(models.cross_entropy(LOGITS, Y), expected[np.arange(50), Y], rtol=1e-5)


def test_cross_entropy_of_huge_scores_equals_scipy():
  for label in range(4):
    y = np.full(len(HUGE), label)
    expected = -scipy.special.log_softmax(HUGE.astype(float), axis=1)[:, label]
    np.testing.assert_allclose(models.cross_entropy(HUGE, y), expected, rtol=1e-5, atol=1e-6)


def test_gradient_of_cross_entropy_is_softmax_minus_the_label():
  grad = jax.grad(lambda logits: models.cross_entropy(logits, Y).sum())
  expected = scipy.special.softmax(LOGITS.astype(float), axis=1)
  expected[np.arange(50), Y] -= 1
  np.testing.assert_allclose(grad(LOGITS), expected, atol=1e-6)


def test_soft_cross_entropy_is_linear_in_its_weights():
  """sum_c a_c CE_c, for weights that are negative and do not sum to one."""
  weights = RNG.normal(size=LOGITS.shape).astype(np.float32)
  by_class = [np.asarray(models.cross_entropy(LOGITS, np.full(50, c)), float) for c in range(4)]
  expected = sum(weights[:, c] * by_class[c] for c in range(4))
  np.testing.assert_allclose(
    models.soft_cross_entropy(LOGITS, weights), expected, rtol=1e-4, atol=1e-5
  )


def test_one_hot_weights_give_the_hard_loss():
  one_hot = np.eye(4, dtype=np.float32)[Y]
  np.testing.assert_allclose(
    models.soft_cross_entropy(LOGITS, one_hot), models.cross_entropy(LOGITS, Y), rtol=1e-6
  )


def test_soft_cross_entropy_equals_optax():
  weights = RNG.dirichlet(np.ones(4), 50).astype(np.float32)
  np.testing.assert_allclose(
    models.soft_cross_entropy(LOGITS, weights),
    optax.losses.softmax_cross_entropy(LOGITS, weights),
    rtol=1e-5,
  )


def test_squared_of_class_ids_regresses_on_one_hot_rows():
  expected = ((LOGITS - np.eye(4)[Y]) ** 2).sum(1)
  np.testing.assert_allclose(_losses.squared(LOGITS, Y), expected, rtol=1e-5)


def test_squared_of_real_targets():
  targets = RNG.normal(size=LOGITS.shape).astype(np.float32)
  np.testing.assert_allclose(
    _losses.squared(LOGITS, targets), ((LOGITS - targets) ** 2).sum(1), rtol=1e-5
  )
  np.testing.assert_allclose(
    _losses.squared(LOGITS[:, :1], targets[:, 0]), (LOGITS[:, 0] - targets[:, 0]) ** 2, rtol=1e-5
  )


@pytest.mark.slow
def test_squared_has_twice_the_squared_input_norm_as_hessian_trace():
  """One linear output: Tr = 2 |x|^2, which output perturbation relies on."""
  x = np.array([[1.0, 2.0, -2.0]], np.float32)
  hessian = jax.hessian(lambda w: _losses.squared(x @ w[:, None], x[:, 0])[0])
  np.testing.assert_allclose(jnp.trace(hessian(np.zeros(3))), 18.0)


def test_margin_by_hand():
  logits = np.array([[3.0, 1.0, 2.5], [3.0, 1.0, 2.5], [0.0, 0.0, 0.0]])
  np.testing.assert_allclose(_losses.margin(logits, np.array([0, 1, 2])), [0.5, -2.0, 0.0])


def test_margin_of_two_classes_is_y_times_the_difference():
  logits = LOGITS[:, :2]
  y = Y % 2
  signed = np.where(y == 1, 1, -1) * (logits[:, 1] - logits[:, 0])
  np.testing.assert_allclose(_losses.margin(logits, y), signed, rtol=1e-5)


def test_ramp_and_exponential_of_the_margin():
  m = margins(LOGITS, Y)
  np.testing.assert_allclose(_losses.ramp(LOGITS, Y), np.clip(1 - m, 0, 1), atol=1e-6)
  np.testing.assert_allclose(_losses.exponential(LOGITS, Y), np.exp(-m), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("m", [-100.0, -20.0, -19.0, -3.0, 0.5, 30.0])
def test_exponential_and_its_slope(m):
  """exp(-m) down to -20, its tangent below; the slope has no jump."""
  logits = np.array([[m, 0.0]], np.float32)
  value, grad = jax.value_and_grad(lambda logits: _losses.exponential(logits, np.array([0]))[0])(
    logits
  )
  cap = max(m, -20.0)
  np.testing.assert_allclose(value, np.exp(-cap) * (1 + cap - m), rtol=1e-5)
  np.testing.assert_allclose(grad[0, 0], -np.exp(-cap), rtol=1e-5)
  np.testing.assert_allclose(grad[0, 1], np.exp(-cap), rtol=1e-5)


def test_ramp_moves_a_model_that_starts_at_zero():
  grad = jax.grad(lambda z: _losses.ramp(z, np.array([0]))[0])(np.zeros((1, 2)))
  np.testing.assert_allclose(grad, [[-0.5, 0.5]])


def test_zero_one_counts_errors():
  expected = LOGITS.argmax(1) != Y
  np.testing.assert_array_equal(models.zero_one(LOGITS, Y), expected)
  tie = np.zeros((2, 3), np.float32)
  np.testing.assert_array_equal(models.zero_one(tie, np.array([0, 1])), [0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_huge_scores_give_finite_losses_and_gradients(name):
  @jax.jit
  def losses_and_grads(logits, y):
    losses, back = jax.vjp(lambda logits: LOSSES[name](logits, y), logits)
    return losses, back(jnp.ones(len(y)))[0]

  for label in range(4):
    losses, grads = losses_and_grads(HUGE, np.full(len(HUGE), label))
    assert np.all(np.isfinite(losses))
    assert np.all(np.isfinite(grads))
    assert np.isfinite(np.sum(np.square(grads)))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_one_value_for_each_example_alone_or_in_a_batch(name):
  together = LOSSES[name](LOGITS, Y)
  assert together.shape == (50,)
  assert together.dtype == jnp.float32
  alone = jax.vmap(LOSSES[name])(LOGITS, Y)
  np.testing.assert_allclose(together, alone, rtol=1e-6, atol=1e-6)
  rolled = LOSSES[name](np.roll(LOGITS, 1, 0), np.roll(Y, 1))
  np.testing.assert_array_equal(np.roll(rolled, -1), together)


@pytest.mark.parametrize("name", ["cross_entropy", "squared", "ramp", "exponential", "zero_one"])
@pytest.mark.parametrize("label", [-1, 4])
def test_a_class_that_does_not_exist_is_nan(name, label):
  y = Y.copy()
  y[3] = label
  losses = LOSSES[name](LOGITS, y)
  assert np.isnan(losses[3])
  assert np.isfinite(np.delete(losses, 3)).all()


@pytest.mark.parametrize(
  ("call", "message"),
  [
    (lambda: models.cross_entropy(LOGITS, Y[:, None]), r"y \[n\], got"),
    (lambda: models.cross_entropy(LOGITS, Y[:7]), r"\(50, 4\) and int32 \(7,"),
    (lambda: models.cross_entropy(LOGITS, Y * 1.0), "float"),
    (lambda: _losses.ramp(LOGITS, Y * 1.0), "margin: needs"),
    (lambda: _losses.ramp(LOGITS[:, :1], 0 * Y), "at least two classes"),
    (lambda: models.zero_one(LOGITS, LOGITS), "zero_one: needs"),
    (lambda: models.soft_cross_entropy(LOGITS, Y), "one shape"),
    (lambda: _losses.squared(LOGITS[:, :1], 0 * Y), "float targets"),
    (lambda: _losses.squared(LOGITS, Y * 1.0), "one shape"),
  ],
)
def test_arguments_that_do_not_fit_are_refused(call, message):
  with pytest.raises(checks.ArgumentError, match=message):
    call()
